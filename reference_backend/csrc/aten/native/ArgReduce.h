// argmax, argmin, and max and min along a dimension.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/argmax_meta.h>
#include <ATen/ops/argmin_meta.h>

namespace torch_accel {

struct ArgmaxOut : at::meta::structured_argmax {
  void impl(const at::Tensor& self, std::optional<int64_t> dim, bool keepdim,
            const at::Tensor& out);
};
struct ArgminOut : at::meta::structured_argmin {
  void impl(const at::Tensor& self, std::optional<int64_t> dim, bool keepdim,
            const at::Tensor& out);
};

}  // namespace torch_accel
