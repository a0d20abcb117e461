// Registration of the binary operators: which kernel PyTorch's dispatcher calls for which overload.
#include <ATen/core/Tensor.h>
#include <ATen/ops/add_native.h>
#include <ATen/ops/atan2_native.h>
#include <ATen/ops/bitwise_and_native.h>
#include <ATen/ops/bitwise_left_shift_native.h>
#include <ATen/ops/bitwise_or_native.h>
#include <ATen/ops/bitwise_right_shift_native.h>
#include <ATen/ops/bitwise_xor_native.h>
#include <ATen/ops/copysign_native.h>
#include <ATen/ops/div_native.h>
#include <ATen/ops/eq_native.h>
#include <ATen/ops/floor_divide_native.h>
#include <ATen/ops/fmax_native.h>
#include <ATen/ops/fmin_native.h>
#include <ATen/ops/fmod_native.h>
#include <ATen/ops/ge_native.h>
#include <ATen/ops/gt_native.h>
#include <ATen/ops/hypot_native.h>
#include <ATen/ops/le_native.h>
#include <ATen/ops/logical_and_native.h>
#include <ATen/ops/logical_or_native.h>
#include <ATen/ops/logical_xor_native.h>
#include <ATen/ops/lt_native.h>
#include <ATen/ops/maximum_native.h>
#include <ATen/ops/minimum_native.h>
#include <ATen/ops/mul_native.h>
#include <ATen/ops/ne_native.h>
#include <ATen/ops/pow_native.h>
#include <ATen/ops/remainder_native.h>
#include <ATen/ops/rsub_native.h>
#include <ATen/ops/sub_native.h>
#include <torch/library.h>

#include "aten/native/Structured.h"

namespace torch_accel {
namespace {

namespace native = at::native;

using BinaryFn = at::Tensor (*)(const at::Tensor&, const at::Tensor&);
using BinaryInplaceFn = at::Tensor& (*)(at::Tensor&, const at::Tensor&);
using ShiftScalarFn = at::Tensor (*)(const at::Tensor&, const at::Scalar&);
using ShiftScalarInplaceFn = at::Tensor& (*)(at::Tensor&, const at::Scalar&);

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  // Arithmetic. Scalar overloads that aren't here are PyTorch's composites of these.
  m.impl("add.Tensor", functional<native::structured_ufunc_add_CPU>);
  m.impl("add_.Tensor", inplace<native::structured_ufunc_add_CPU>);
  m.impl("add.out", out<native::structured_ufunc_add_CPU>);
  m.impl("sub.Tensor", functional<native::structured_sub_out>);
  m.impl("sub_.Tensor", inplace<native::structured_sub_out>);
  m.impl("sub.out", out<native::structured_sub_out>);
  m.impl("mul.Tensor", functional<native::structured_mul_out>);
  m.impl("mul_.Tensor", inplace<native::structured_mul_out>);
  m.impl("mul.out", out<native::structured_mul_out>);
  m.impl("div.Tensor", functional<native::structured_div_out>);
  m.impl("div_.Tensor", inplace<native::structured_div_out>);
  m.impl("div.out", out<native::structured_div_out>);
  m.impl("div.Tensor_mode", functional<native::structured_div_out_mode>);
  m.impl("div_.Tensor_mode", inplace<native::structured_div_out_mode>);
  m.impl("div.out_mode", out<native::structured_div_out_mode>);
  m.impl("remainder.Tensor", functional<native::structured_remainder_out>);
  m.impl("remainder_.Tensor", inplace<native::structured_remainder_out>);
  m.impl("remainder.Tensor_out", out<native::structured_remainder_out>);
  m.impl("fmod.Tensor", functional<native::structured_fmod_out>);
  m.impl("fmod_.Tensor", inplace<native::structured_fmod_out>);
  m.impl("fmod.Tensor_out", out<native::structured_fmod_out>);
  m.impl("maximum", functional<native::structured_maximum_out>);
  m.impl("maximum.out", out<native::structured_maximum_out>);
  m.impl("minimum", functional<native::structured_minimum_out>);
  m.impl("minimum.out", out<native::structured_minimum_out>);
  m.impl("fmax", functional<native::structured_fmax_out>);
  m.impl("fmax.out", out<native::structured_fmax_out>);
  m.impl("fmin", functional<native::structured_fmin_out>);
  m.impl("fmin.out", out<native::structured_fmin_out>);
  m.impl("atan2", functional<native::structured_atan2_out>);
  m.impl("atan2_", inplace<native::structured_atan2_out>);
  m.impl("atan2.out", out<native::structured_atan2_out>);
  m.impl("hypot", functional<native::structured_hypot_out>);
  m.impl("hypot_", inplace<native::structured_hypot_out>);
  m.impl("hypot.out", out<native::structured_hypot_out>);
  m.impl("copysign.Tensor", functional<native::structured_copysign_out>);
  m.impl("copysign_.Tensor", inplace<native::structured_copysign_out>);
  m.impl("copysign.out", out<native::structured_copysign_out>);
  m.impl("pow.Tensor_Tensor", functional<native::structured_pow_Tensor_Tensor_out>);
  m.impl("pow.Tensor_Tensor_out", out<native::structured_pow_Tensor_Tensor_out>);
  m.impl("pow_.Tensor", inplace<native::structured_pow_Tensor_Tensor_out>);
  m.impl("pow.Tensor_Scalar", functional<native::structured_pow_Tensor_Scalar_out>);
  m.impl("pow.Tensor_Scalar_out", out<native::structured_pow_Tensor_Scalar_out>);
  m.impl("pow_.Scalar", inplace<native::structured_pow_Tensor_Scalar_out>);
  m.impl("pow.Scalar", functional<native::structured_pow_Scalar_out>);
  m.impl("pow.Scalar_out", out<native::structured_pow_Scalar_out>);

  // Comparisons.
  m.impl("eq.Tensor", functional<native::structured_eq_Tensor_out>);
  m.impl("eq_.Tensor", inplace<native::structured_eq_Tensor_out>);
  m.impl("eq.Tensor_out", out<native::structured_eq_Tensor_out>);
  m.impl("eq.Scalar", functional<native::structured_eq_Scalar_out>);
  m.impl("eq_.Scalar", inplace<native::structured_eq_Scalar_out>);
  m.impl("eq.Scalar_out", out<native::structured_eq_Scalar_out>);
  m.impl("ne.Tensor", functional<native::structured_ne_Tensor_out>);
  m.impl("ne_.Tensor", inplace<native::structured_ne_Tensor_out>);
  m.impl("ne.Tensor_out", out<native::structured_ne_Tensor_out>);
  m.impl("ne.Scalar", functional<native::structured_ne_Scalar_out>);
  m.impl("ne_.Scalar", inplace<native::structured_ne_Scalar_out>);
  m.impl("ne.Scalar_out", out<native::structured_ne_Scalar_out>);
  m.impl("lt.Tensor", functional<native::structured_lt_Tensor_out>);
  m.impl("lt_.Tensor", inplace<native::structured_lt_Tensor_out>);
  m.impl("lt.Tensor_out", out<native::structured_lt_Tensor_out>);
  m.impl("lt.Scalar", functional<native::structured_lt_Scalar_out>);
  m.impl("lt_.Scalar", inplace<native::structured_lt_Scalar_out>);
  m.impl("lt.Scalar_out", out<native::structured_lt_Scalar_out>);
  m.impl("le.Tensor", functional<native::structured_le_Tensor_out>);
  m.impl("le_.Tensor", inplace<native::structured_le_Tensor_out>);
  m.impl("le.Tensor_out", out<native::structured_le_Tensor_out>);
  m.impl("le.Scalar", functional<native::structured_le_Scalar_out>);
  m.impl("le_.Scalar", inplace<native::structured_le_Scalar_out>);
  m.impl("le.Scalar_out", out<native::structured_le_Scalar_out>);
  m.impl("gt.Tensor", functional<native::structured_gt_Tensor_out>);
  m.impl("gt_.Tensor", inplace<native::structured_gt_Tensor_out>);
  m.impl("gt.Tensor_out", out<native::structured_gt_Tensor_out>);
  m.impl("gt.Scalar", functional<native::structured_gt_Scalar_out>);
  m.impl("gt_.Scalar", inplace<native::structured_gt_Scalar_out>);
  m.impl("gt.Scalar_out", out<native::structured_gt_Scalar_out>);
  m.impl("ge.Tensor", functional<native::structured_ge_Tensor_out>);
  m.impl("ge_.Tensor", inplace<native::structured_ge_Tensor_out>);
  m.impl("ge.Tensor_out", out<native::structured_ge_Tensor_out>);
  m.impl("ge.Scalar", functional<native::structured_ge_Scalar_out>);
  m.impl("ge_.Scalar", inplace<native::structured_ge_Scalar_out>);
  m.impl("ge.Scalar_out", out<native::structured_ge_Scalar_out>);

  // Bits.
  m.impl("bitwise_and.Tensor", functional<native::structured_bitwise_and_out>);
  m.impl("bitwise_and_.Tensor", inplace<native::structured_bitwise_and_out>);
  m.impl("bitwise_and.Tensor_out", out<native::structured_bitwise_and_out>);
  m.impl("bitwise_or.Tensor", functional<native::structured_bitwise_or_out>);
  m.impl("bitwise_or_.Tensor", inplace<native::structured_bitwise_or_out>);
  m.impl("bitwise_or.Tensor_out", out<native::structured_bitwise_or_out>);
  m.impl("bitwise_xor.Tensor", functional<native::structured_bitwise_xor_out>);
  m.impl("bitwise_xor_.Tensor", inplace<native::structured_bitwise_xor_out>);
  m.impl("bitwise_xor.Tensor_out", out<native::structured_bitwise_xor_out>);
  m.impl("bitwise_left_shift.Tensor", functional<native::structured_bitwise_left_shift_out>);
  m.impl("bitwise_left_shift_.Tensor", inplace<native::structured_bitwise_left_shift_out>);
  m.impl("bitwise_left_shift.Tensor_out", out<native::structured_bitwise_left_shift_out>);
  m.impl("bitwise_right_shift.Tensor", functional<native::structured_bitwise_right_shift_out>);
  m.impl("bitwise_right_shift_.Tensor", inplace<native::structured_bitwise_right_shift_out>);
  m.impl("bitwise_right_shift.Tensor_out", out<native::structured_bitwise_right_shift_out>);

  // Not structured: PyTorch's host code in front of the same stubs.
  m.impl("logical_and.out", &native::logical_and_out);
  m.impl("logical_or.out", &native::logical_or_out);
  m.impl("logical_xor.out", &native::logical_xor_out);
  m.impl("floor_divide", static_cast<BinaryFn>(&native::floor_divide));
  m.impl("floor_divide_.Tensor", static_cast<BinaryInplaceFn>(&native::floor_divide_));
  m.impl("floor_divide.out", &native::floor_divide_out);
  m.impl("rsub.Tensor",
         static_cast<at::Tensor (*)(const at::Tensor&, const at::Tensor&, const at::Scalar&)>(
             &native::rsub));
  m.impl("remainder.Scalar_Tensor",
         static_cast<at::Tensor (*)(const at::Scalar&, const at::Tensor&)>(&native::remainder));
}

}  // namespace
}  // namespace torch_accel
