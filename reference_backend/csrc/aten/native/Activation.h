// Activations whose CPU implementation PyTorch would take elsewhere (to oneDNN).
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/gelu_backward_meta.h>
#include <ATen/ops/gelu_meta.h>

namespace torch_accel {

struct GeluOut : at::meta::structured_gelu {
  void impl(const at::Tensor& self, std::string_view approximate, const at::Tensor& out);
};
struct GeluBackwardOut : at::meta::structured_gelu_backward {
  void impl(const at::Tensor& grad, const at::Tensor& self, std::string_view approximate,
            const at::Tensor& grad_input);
};

}  // namespace torch_accel
