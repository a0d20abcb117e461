// where, addcmul, addcdiv, lerp.
#include "aten/native/Vectorize.h"
//
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Lerp.h>
#include <ATen/native/PointwiseOps.h>
#include <ATen/native/TensorCompare.h>
#include <c10/core/Scalar.h>

#include "aten/native/Elementwise.h"
#include "aten/native/Numeric.h"

namespace torch_accel {
namespace {

constexpr auto kNumbers = kIntegerTypes + kFloatingTypes + kComplexTypes + kComplexHalfType;

void whereKernel(at::TensorIterator& iter) {
  constexpr auto kTypes = kNumbers + kBoolType + kWideUnsignedTypes;
  elementwise(iter, "where", selectType(iter.dtype(), "where_cpu", kTypes, [](auto tag) {
                using T = typename decltype(tag)::type;
                return makeBlock<T, bool, T, T>([](bool condition, T a, T b)
                                                    ACCEL_INLINE { return condition ? a : b; });
              }));
}

void addcmulKernel(at::TensorIteratorBase& iter, const at::Scalar& value) {
  elementwise(iter, "addcmul",
              selectType(iter.common_dtype(), "addcmul_cpu_out", kNumbers, [&](auto tag) {
                using T = typename decltype(tag)::type;
                return makeBlock<T, T, T, T>([value = value.to<T>()](T a, T b, T c) ACCEL_INLINE {
                  return numeric::add(a, numeric::mul(numeric::mul(value, b), c));
                });
              }));
}

void addcdivKernel(at::TensorIteratorBase& iter, const at::Scalar& value) {
  constexpr auto kTypes = kFloatingTypes + kComplexTypes;
  elementwise(iter, "addcdiv",
              selectType(iter.common_dtype(), "addcdiv_cpu_out", kTypes, [&](auto tag) {
                using T = typename decltype(tag)::type;
                return makeBlock<T, T, T, T>([value = value.to<T>()](T a, T b, T c)
                                                 ACCEL_INLINE { return a + value * b / c; });
              }));
}

// Starts from the nearer end, so that weights 0 and 1 are exact.
template <class T>
ACCEL_INLINE inline T lerp(T start, T end, T weight) {
  bool near_start;
  if constexpr (isComplex<T>) {
    const auto real = weight.real(), imag = weight.imag();
    near_start = real * real + imag * imag < typename T::value_type(0.25);
  } else {
    near_start = std::abs(weight) < T(0.5);
  }
  const T from_start = start + weight * (end - start);
  const T from_end = end - (end - start) * (T(1) - weight);
  return near_start ? from_start : from_end;
}

constexpr auto kLerpTypes = kFloatingTypes + kComplexTypes;

void lerpScalarKernel(at::TensorIteratorBase& iter, const at::Scalar& weight) {
  elementwise(iter, "lerp",
              selectType(iter.common_dtype(), "lerp_kernel_scalar", kLerpTypes, [&](auto tag) {
                using T = typename decltype(tag)::type;
                return makeBlock<T, T, T>([weight = weight.to<T>()](T a, T b)
                                              ACCEL_INLINE { return lerp(a, b, weight); });
              }));
}

void lerpTensorKernel(at::TensorIteratorBase& iter) {
  elementwise(iter, "lerp",
              selectType(iter.common_dtype(), "lerp_kernel_tensor", kLerpTypes, [](auto tag) {
                using T = typename decltype(tag)::type;
                return makeBlock<T, T, T, T>([](T a, T b, T weight)
                                                 ACCEL_INLINE { return lerp(a, b, weight); });
              }));
}

}  // namespace
}  // namespace torch_accel

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(where_kernel, &torch_accel::whereKernel)
REGISTER_PRIVATEUSE1_DISPATCH(addcmul_stub, &torch_accel::addcmulKernel)
REGISTER_PRIVATEUSE1_DISPATCH(addcdiv_stub, &torch_accel::addcdivKernel)
REGISTER_PRIVATEUSE1_DISPATCH(lerp_kernel_scalar_weight, &torch_accel::lerpScalarKernel)
REGISTER_PRIVATEUSE1_DISPATCH(lerp_kernel_tensor_weight, &torch_accel::lerpTensorKernel)

}  // namespace at::native
