// Resizing device tensors: metadata at once, contents in the stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace torch_accel {

// Sets sizes and strides (contiguous ones without `strides`). A storage that is too small grows: a
// new block, a queued copy of the contents, and the old block freed in stream order.
void resizeTensor(c10::TensorImpl* tensor, at::IntArrayRef sizes,
                  std::optional<at::IntArrayRef> strides = std::nullopt);

// aten::resize_
const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef sizes,
                         std::optional<at::MemoryFormat> memory_format = std::nullopt);

}  // namespace torch_accel
