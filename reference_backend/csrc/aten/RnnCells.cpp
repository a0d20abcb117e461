// The cells of LSTM and GRU: torch calls these fused operators on devices, and has them for CUDA
// only.
//
// Composed of operators that the device has. The workspace, which forward hands to backward, holds
// the gates after their activation.
//
// A vendor replaces: these with one kernel each.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

namespace torch_accel {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

bool given(const OptionalTensor& tensor) {
  return tensor && tensor->defined();
}

at::Tensor plusBias(const at::Tensor& gates, const OptionalTensor& bias) {
  return given(bias) ? gates + *bias : gates;
}

// Gates (batch, 4 * hidden) in the order input, forget, cell, output; cx (batch, hidden).
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstmCell(const at::Tensor& input_gates,
                                                        const at::Tensor& hidden_gates,
                                                        const at::Tensor& cx,
                                                        const OptionalTensor& input_bias,
                                                        const OptionalTensor& hidden_bias) {
  const auto gates =
      (plusBias(input_gates, input_bias) + plusBias(hidden_gates, hidden_bias)).chunk(4, 1);
  const at::Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid();
  const at::Tensor cell = gates[2].tanh(), out = gates[3].sigmoid();
  const at::Tensor cy = forget * cx + in * cell;
  return {out * cy.tanh(), cy, at::cat(std::vector<at::Tensor>{in, forget, cell, out}, 1)};
}

// Gradients of the gates, of cx, and of the biases (undefined without).
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstmCellBackward(
    const OptionalTensor& grad_hy, const OptionalTensor& grad_cy, const at::Tensor& cx,
    const at::Tensor& cy, const at::Tensor& workspace, bool has_bias) {
  if (!given(grad_hy) && !given(grad_cy)) return {};
  const auto gates = workspace.chunk(4, 1);
  const at::Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  const at::Tensor tanh_cy = cy.tanh();
  const at::Tensor grad_h = given(grad_hy) ? *grad_hy : at::zeros_like(cx);
  at::Tensor grad_c = grad_h * out * (1 - tanh_cy * tanh_cy);
  if (given(grad_cy)) grad_c = grad_c + *grad_cy;
  const at::Tensor grad_gates =
      at::cat({grad_c * cell * in * (1 - in), grad_c * cx * forget * (1 - forget),
               grad_c * in * (1 - cell * cell), grad_h * tanh_cy * out * (1 - out)},
              1);
  return {grad_gates, grad_c * forget, has_bias ? grad_gates.sum(0) : at::Tensor()};
}

// Gates (batch, 3 * hidden) in the order reset, update, new; hx (batch, hidden).
std::tuple<at::Tensor, at::Tensor> gruCell(const at::Tensor& input_gates,
                                           const at::Tensor& hidden_gates, const at::Tensor& hx,
                                           const OptionalTensor& input_bias,
                                           const OptionalTensor& hidden_bias) {
  const auto in = plusBias(input_gates, input_bias).chunk(3, 1);
  const auto hidden = plusBias(hidden_gates, hidden_bias).chunk(3, 1);
  const at::Tensor reset = (in[0] + hidden[0]).sigmoid();
  const at::Tensor update = (in[1] + hidden[1]).sigmoid();
  const at::Tensor fresh = (in[2] + reset * hidden[2]).tanh();
  return {fresh + update * (hx - fresh), at::cat({reset, update, fresh, hx, hidden[2]}, 1)};
}

// Gradients of the input's gates, the hidden gates, hx, and the two biases (undefined without).
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gruCellBackward(
    const at::Tensor& grad_hy, const at::Tensor& workspace, bool has_bias) {
  const auto parts = workspace.chunk(5, 1);
  const at::Tensor &reset = parts[0], &update = parts[1], &fresh = parts[2], &hx = parts[3],
                   &hidden_new = parts[4];
  const at::Tensor grad_new = grad_hy * (1 - update) * (1 - fresh * fresh);
  const at::Tensor grad_update = grad_hy * (hx - fresh) * update * (1 - update);
  const at::Tensor grad_reset = grad_new * hidden_new * reset * (1 - reset);
  const at::Tensor grad_in = at::cat({grad_reset, grad_update, grad_new}, 1);
  const at::Tensor grad_hidden = at::cat({grad_reset, grad_update, grad_new * reset}, 1);
  return {grad_in, grad_hidden, grad_hy * update, has_bias ? grad_in.sum(0) : at::Tensor(),
          has_bias ? grad_hidden.sum(0) : at::Tensor()};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_thnn_fused_lstm_cell", TORCH_FN(lstmCell));
  library.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstmCellBackward));
  library.impl("_thnn_fused_gru_cell", TORCH_FN(gruCell));
  library.impl("_thnn_fused_gru_cell_backward", TORCH_FN(gruCellBackward));
}

}  // namespace torch_accel
