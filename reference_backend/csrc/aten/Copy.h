// The copy engine: any layout, dtype, device and overlap, host to device, back, and between
// devices.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_accel {

// aten::_copy_from: writes `self` into `destination` (broadcasting) and returns `destination`. At
// least one of them is an accel tensor. Blocking unless non_blocking, and then:
//   host to device, pageable: the source is read before the call returns (it may die at once);
//   host to device, pinned: asynchronous, the pinned block is kept until the copy has run;
//   device to host, pinned: asynchronous, covered by a later event of the stream;
//   device to host, pageable: as blocking.
at::Tensor copyFrom(const at::Tensor& self, const at::Tensor& destination, bool non_blocking);
at::Tensor copyFromAndResize(const at::Tensor& self, const at::Tensor& destination);
at::Scalar localScalarDense(const at::Tensor& self);

}  // namespace torch_accel
