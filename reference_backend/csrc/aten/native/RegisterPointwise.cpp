// Registration of the unary and other pointwise operators: which kernel PyTorch's dispatcher calls
// for which overload.
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs_native.h>
#include <ATen/ops/acos_native.h>
#include <ATen/ops/acosh_native.h>
#include <ATen/ops/addcdiv_native.h>
#include <ATen/ops/addcmul_native.h>
#include <ATen/ops/angle_native.h>
#include <ATen/ops/asin_native.h>
#include <ATen/ops/asinh_native.h>
#include <ATen/ops/atan_native.h>
#include <ATen/ops/atanh_native.h>
#include <ATen/ops/bitwise_not_native.h>
#include <ATen/ops/ceil_native.h>
#include <ATen/ops/clamp_max_native.h>
#include <ATen/ops/clamp_min_native.h>
#include <ATen/ops/clamp_native.h>
#include <ATen/ops/conj_physical_native.h>
#include <ATen/ops/cos_native.h>
#include <ATen/ops/cosh_native.h>
#include <ATen/ops/erf_native.h>
#include <ATen/ops/erfc_native.h>
#include <ATen/ops/exp2_native.h>
#include <ATen/ops/exp_native.h>
#include <ATen/ops/expm1_native.h>
#include <ATen/ops/floor_native.h>
#include <ATen/ops/frac_native.h>
#include <ATen/ops/hardtanh_native.h>
#include <ATen/ops/isnan_native.h>
#include <ATen/ops/isneginf_native.h>
#include <ATen/ops/isposinf_native.h>
#include <ATen/ops/leaky_relu_backward_native.h>
#include <ATen/ops/leaky_relu_native.h>
#include <ATen/ops/lerp_native.h>
#include <ATen/ops/log10_native.h>
#include <ATen/ops/log1p_native.h>
#include <ATen/ops/log2_native.h>
#include <ATen/ops/log_native.h>
#include <ATen/ops/logical_not_native.h>
#include <ATen/ops/neg_native.h>
#include <ATen/ops/reciprocal_native.h>
#include <ATen/ops/relu_native.h>
#include <ATen/ops/round_native.h>
#include <ATen/ops/rsqrt_native.h>
#include <ATen/ops/sgn_native.h>
#include <ATen/ops/sigmoid_backward_native.h>
#include <ATen/ops/sigmoid_native.h>
#include <ATen/ops/sign_native.h>
#include <ATen/ops/signbit_native.h>
#include <ATen/ops/silu_backward_native.h>
#include <ATen/ops/silu_native.h>
#include <ATen/ops/sin_native.h>
#include <ATen/ops/sinh_native.h>
#include <ATen/ops/sqrt_native.h>
#include <ATen/ops/tan_native.h>
#include <ATen/ops/tanh_backward_native.h>
#include <ATen/ops/tanh_native.h>
#include <ATen/ops/threshold_backward_native.h>
#include <ATen/ops/threshold_native.h>
#include <ATen/ops/trunc_native.h>
#include <ATen/ops/where_native.h>
#include <torch/library.h>

#include "aten/native/Activation.h"
#include "aten/native/Structured.h"

namespace torch_accel {
namespace {

namespace native = at::native;

using WhereFn = at::Tensor (*)(const at::Tensor&, const at::Tensor&, const at::Tensor&);

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  // Signs and rounding.
  m.impl("neg", functional<native::structured_neg_out>);
  m.impl("neg_", inplace<native::structured_neg_out>);
  m.impl("neg.out", out<native::structured_neg_out>);
  m.impl("sign", functional<native::structured_sign_out>);
  m.impl("sign_", inplace<native::structured_sign_out>);
  m.impl("sign.out", out<native::structured_sign_out>);
  m.impl("sgn", functional<native::structured_sgn_out>);
  m.impl("sgn_", inplace<native::structured_sgn_out>);
  m.impl("sgn.out", out<native::structured_sgn_out>);
  m.impl("floor", functional<native::structured_floor_out>);
  m.impl("floor_", inplace<native::structured_floor_out>);
  m.impl("floor.out", out<native::structured_floor_out>);
  m.impl("ceil", functional<native::structured_ceil_out>);
  m.impl("ceil_", inplace<native::structured_ceil_out>);
  m.impl("ceil.out", out<native::structured_ceil_out>);
  m.impl("trunc", functional<native::structured_trunc_out>);
  m.impl("trunc_", inplace<native::structured_trunc_out>);
  m.impl("trunc.out", out<native::structured_trunc_out>);
  m.impl("frac", functional<native::structured_frac_out>);
  m.impl("frac_", inplace<native::structured_frac_out>);
  m.impl("frac.out", out<native::structured_frac_out>);
  m.impl("round", functional<native::structured_round_out>);
  m.impl("round_", inplace<native::structured_round_out>);
  m.impl("round.out", out<native::structured_round_out>);
  m.impl("bitwise_not", functional<native::structured_bitwise_not_out>);
  m.impl("bitwise_not_", inplace<native::structured_bitwise_not_out>);
  m.impl("bitwise_not.out", out<native::structured_bitwise_not_out>);
  m.impl("round.decimals", functional<native::structured_round_decimals_out>);
  m.impl("round_.decimals", inplace<native::structured_round_decimals_out>);
  m.impl("round.decimals_out", out<native::structured_round_decimals_out>);
  m.impl("signbit", functional<native::structured_signbit_out>);
  m.impl("signbit.out", out<native::structured_signbit_out>);
  m.impl("isposinf", functional<native::structured_isposinf_out>);
  m.impl("isposinf.out", out<native::structured_isposinf_out>);
  m.impl("isneginf", functional<native::structured_isneginf_out>);
  m.impl("isneginf.out", out<native::structured_isneginf_out>);

  // Elementary functions.
  m.impl("exp", functional<native::structured_exp_out>);
  m.impl("exp_", inplace<native::structured_exp_out>);
  m.impl("exp.out", out<native::structured_exp_out>);
  m.impl("exp2", functional<native::structured_exp2_out>);
  m.impl("exp2_", inplace<native::structured_exp2_out>);
  m.impl("exp2.out", out<native::structured_exp2_out>);
  m.impl("expm1", functional<native::structured_expm1_out>);
  m.impl("expm1_", inplace<native::structured_expm1_out>);
  m.impl("expm1.out", out<native::structured_expm1_out>);
  m.impl("log", functional<native::structured_log_out>);
  m.impl("log_", inplace<native::structured_log_out>);
  m.impl("log.out", out<native::structured_log_out>);
  m.impl("log2", functional<native::structured_log2_out>);
  m.impl("log2_", inplace<native::structured_log2_out>);
  m.impl("log2.out", out<native::structured_log2_out>);
  m.impl("log10", functional<native::structured_log10_out>);
  m.impl("log10_", inplace<native::structured_log10_out>);
  m.impl("log10.out", out<native::structured_log10_out>);
  m.impl("log1p", functional<native::structured_log1p_out>);
  m.impl("log1p_", inplace<native::structured_log1p_out>);
  m.impl("log1p.out", out<native::structured_log1p_out>);
  m.impl("sqrt", functional<native::structured_sqrt_out>);
  m.impl("sqrt_", inplace<native::structured_sqrt_out>);
  m.impl("sqrt.out", out<native::structured_sqrt_out>);
  m.impl("rsqrt", functional<native::structured_rsqrt_out>);
  m.impl("rsqrt_", inplace<native::structured_rsqrt_out>);
  m.impl("rsqrt.out", out<native::structured_rsqrt_out>);
  m.impl("reciprocal", functional<native::structured_reciprocal_out>);
  m.impl("reciprocal_", inplace<native::structured_reciprocal_out>);
  m.impl("reciprocal.out", out<native::structured_reciprocal_out>);
  m.impl("sin", functional<native::structured_sin_out>);
  m.impl("sin_", inplace<native::structured_sin_out>);
  m.impl("sin.out", out<native::structured_sin_out>);
  m.impl("cos", functional<native::structured_cos_out>);
  m.impl("cos_", inplace<native::structured_cos_out>);
  m.impl("cos.out", out<native::structured_cos_out>);
  m.impl("tan", functional<native::structured_tan_out>);
  m.impl("tan_", inplace<native::structured_tan_out>);
  m.impl("tan.out", out<native::structured_tan_out>);
  m.impl("asin", functional<native::structured_asin_out>);
  m.impl("asin_", inplace<native::structured_asin_out>);
  m.impl("asin.out", out<native::structured_asin_out>);
  m.impl("acos", functional<native::structured_acos_out>);
  m.impl("acos_", inplace<native::structured_acos_out>);
  m.impl("acos.out", out<native::structured_acos_out>);
  m.impl("atan", functional<native::structured_atan_out>);
  m.impl("atan_", inplace<native::structured_atan_out>);
  m.impl("atan.out", out<native::structured_atan_out>);
  m.impl("sinh", functional<native::structured_sinh_out>);
  m.impl("sinh_", inplace<native::structured_sinh_out>);
  m.impl("sinh.out", out<native::structured_sinh_out>);
  m.impl("cosh", functional<native::structured_cosh_out>);
  m.impl("cosh_", inplace<native::structured_cosh_out>);
  m.impl("cosh.out", out<native::structured_cosh_out>);
  m.impl("tanh", functional<native::structured_tanh_out>);
  m.impl("tanh_", inplace<native::structured_tanh_out>);
  m.impl("tanh.out", out<native::structured_tanh_out>);
  m.impl("asinh", functional<native::structured_asinh_out>);
  m.impl("asinh_", inplace<native::structured_asinh_out>);
  m.impl("asinh.out", out<native::structured_asinh_out>);
  m.impl("acosh", functional<native::structured_acosh_out>);
  m.impl("acosh_", inplace<native::structured_acosh_out>);
  m.impl("acosh.out", out<native::structured_acosh_out>);
  m.impl("atanh", functional<native::structured_atanh_out>);
  m.impl("atanh_", inplace<native::structured_atanh_out>);
  m.impl("atanh.out", out<native::structured_atanh_out>);
  m.impl("sigmoid", functional<native::structured_sigmoid_out>);
  m.impl("sigmoid_", inplace<native::structured_sigmoid_out>);
  m.impl("sigmoid.out", out<native::structured_sigmoid_out>);
  m.impl("erf", functional<native::structured_erf_out>);
  m.impl("erf_", inplace<native::structured_erf_out>);
  m.impl("erf.out", out<native::structured_erf_out>);
  m.impl("erfc", functional<native::structured_erfc_out>);
  m.impl("erfc_", inplace<native::structured_erfc_out>);
  m.impl("erfc.out", out<native::structured_erfc_out>);

  // Activations and clamping.
  m.impl("threshold", functional<native::structured_threshold_out>);
  m.impl("threshold_", inplace<native::structured_threshold_out>);
  m.impl("threshold.out", out<native::structured_threshold_out>);
  m.impl("silu", functional<native::structured_silu_out>);
  m.impl("silu_", inplace<native::structured_silu_out>);
  m.impl("silu.out", out<native::structured_silu_out>);
  m.impl("gelu", functional<GeluOut>);
  m.impl("gelu_", inplace<GeluOut>);
  m.impl("gelu.out", out<GeluOut>);
  m.impl("leaky_relu", functional<native::structured_leaky_relu_out>);
  m.impl("leaky_relu_", inplace<native::structured_leaky_relu_out>);
  m.impl("leaky_relu.out", out<native::structured_leaky_relu_out>);
  m.impl("clamp", functional<native::structured_clamp_out>);
  m.impl("clamp_", inplace<native::structured_clamp_out>);
  m.impl("clamp.out", out<native::structured_clamp_out>);
  m.impl("clamp.Tensor", functional<native::structured_clamp_Tensor_out>);
  m.impl("clamp_.Tensor", inplace<native::structured_clamp_Tensor_out>);
  m.impl("clamp.Tensor_out", out<native::structured_clamp_Tensor_out>);
  m.impl("clamp_min", functional<native::structured_clamp_min_out>);
  m.impl("clamp_min_", inplace<native::structured_clamp_min_out>);
  m.impl("clamp_min.out", out<native::structured_clamp_min_out>);
  m.impl("clamp_min.Tensor", functional<native::structured_clamp_min_Tensor_out>);
  m.impl("clamp_min_.Tensor", inplace<native::structured_clamp_min_Tensor_out>);
  m.impl("clamp_min.Tensor_out", out<native::structured_clamp_min_Tensor_out>);
  m.impl("clamp_max", functional<native::structured_clamp_max_out>);
  m.impl("clamp_max_", inplace<native::structured_clamp_max_out>);
  m.impl("clamp_max.out", out<native::structured_clamp_max_out>);
  m.impl("clamp_max.Tensor", functional<native::structured_clamp_max_Tensor_out>);
  m.impl("clamp_max_.Tensor", inplace<native::structured_clamp_max_Tensor_out>);
  m.impl("clamp_max.Tensor_out", out<native::structured_clamp_max_Tensor_out>);

  // Their backwards.
  m.impl("threshold_backward", functional<native::structured_threshold_backward_out>);
  m.impl("threshold_backward.grad_input", out<native::structured_threshold_backward_out>);
  m.impl("silu_backward", functional<native::structured_silu_backward_out>);
  m.impl("silu_backward.grad_input", out<native::structured_silu_backward_out>);
  m.impl("gelu_backward", functional<GeluBackwardOut>);
  m.impl("gelu_backward.grad_input", out<GeluBackwardOut>);
  m.impl("leaky_relu_backward", functional<native::structured_leaky_relu_backward_out>);
  m.impl("leaky_relu_backward.grad_input", out<native::structured_leaky_relu_backward_out>);
  m.impl("sigmoid_backward", functional<native::structured_sigmoid_backward_out>);
  m.impl("sigmoid_backward.grad_input", out<native::structured_sigmoid_backward_out>);
  m.impl("tanh_backward", functional<native::structured_tanh_backward_out>);
  m.impl("tanh_backward.grad_input", out<native::structured_tanh_backward_out>);

  // Of three tensors.
  m.impl("addcmul", functional<native::structured_addcmul_out>);
  m.impl("addcmul_", inplace<native::structured_addcmul_out>);
  m.impl("addcmul.out", out<native::structured_addcmul_out>);
  m.impl("addcdiv", functional<native::structured_addcdiv_out>);
  m.impl("addcdiv_", inplace<native::structured_addcdiv_out>);
  m.impl("addcdiv.out", out<native::structured_addcdiv_out>);
  m.impl("lerp.Scalar", functional<native::structured_lerp_Scalar>);
  m.impl("lerp_.Scalar", inplace<native::structured_lerp_Scalar>);
  m.impl("lerp.Scalar_out", out<native::structured_lerp_Scalar>);
  m.impl("lerp.Tensor", functional<native::structured_lerp_Tensor>);
  m.impl("lerp_.Tensor", inplace<native::structured_lerp_Tensor>);
  m.impl("lerp.Tensor_out", out<native::structured_lerp_Tensor>);

  // Not structured: PyTorch's host code in front of the same stubs.
  m.impl("abs.out", &native::abs_out);
  m.impl("angle", &native::angle);
  m.impl("angle.out", &native::angle_out);
  m.impl("conj_physical.out", &native::conj_physical_out);
  m.impl("logical_not.out", &native::logical_not_out);
  m.impl("isnan", &native::isnan);
  m.impl("relu", &native::relu);
  m.impl("relu_", &native::relu_);
  m.impl("hardtanh", &native::hardtanh);
  m.impl("hardtanh_", &native::hardtanh_);
  m.impl("hardtanh.out", &native::hardtanh_out);
  m.impl("where.self", static_cast<WhereFn>(&native::where));
  m.impl("where.self_out", &native::where_self_out);
}

}  // namespace
}  // namespace torch_accel
