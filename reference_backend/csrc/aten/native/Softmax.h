// softmax, log_softmax and their backwards.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/_log_softmax_backward_data_meta.h>
#include <ATen/ops/_log_softmax_meta.h>
#include <ATen/ops/_softmax_backward_data_meta.h>
#include <ATen/ops/_softmax_meta.h>

namespace torch_accel {

struct SoftmaxOut : at::meta::structured__softmax {
  void impl(const at::Tensor& self, int64_t dim, bool half_to_float, const at::Tensor& out);
};
struct LogSoftmaxOut : at::meta::structured__log_softmax {
  void impl(const at::Tensor& self, int64_t dim, bool half_to_float, const at::Tensor& out);
};
struct SoftmaxBackwardOut : at::meta::structured__softmax_backward_data {
  void impl(const at::Tensor& grad, const at::Tensor& output, int64_t dim,
            c10::ScalarType input_dtype, const at::Tensor& grad_input);
};
struct LogSoftmaxBackwardOut : at::meta::structured__log_softmax_backward_data {
  void impl(const at::Tensor& grad, const at::Tensor& output, int64_t dim,
            c10::ScalarType input_dtype, const at::Tensor& grad_input);
};

}  // namespace torch_accel
