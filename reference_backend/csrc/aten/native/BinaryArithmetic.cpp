// add, sub, mul, div in three roundings, remainder, fmod, pow, extrema, and other binary
// arithmetic.
//
// Host checks and promotion are torch's own (the structured classes); the kernels here are what
// their dispatch stubs call for this device.
#include "aten/native/Vectorize.h"
//
#include <ATen/native/BinaryOps.h>
#include <ATen/native/Pow.h>

#include "aten/native/Elementwise.h"
#include "aten/native/Numeric.h"
#include "aten/native/VectorMath.h"

namespace torch_accel {
namespace {

constexpr auto kNumbers = kIntegerTypes + kFloatingTypes;
constexpr auto kNumbersAndComplex = kNumbers + kComplexTypes + kComplexHalfType;
constexpr auto kAll = kNumbersAndComplex + kBoolType + kWideUnsignedTypes;
constexpr auto kRealAndBool = kNumbers + kBoolType + kWideUnsignedTypes;

// A binary operator whose operands and result have one type; `op` is a generic lambda (T, T) -> T.
template <class Types, class Op>
void binary(at::TensorIteratorBase& iter, const char* name, Types types, Op op) {
  elementwise(iter, name, selectType(iter.common_dtype(), name, types, [&](auto tag) {
                using T = typename decltype(tag)::type;
                return makeBlock<T, T, T>(op);
              }));
}

// Integer division by 0 is an error of the kernel, raised when the device is next waited for.
template <class T>
ACCEL_INLINE inline void checkDivisor(T b) {
  if constexpr (std::is_integral_v<T>) TORCH_CHECK(b != 0, "ZeroDivisionError");
}

template <bool kSubtract>
void addKernel(at::TensorIteratorBase& iter, const at::Scalar& alpha) {
  const char* name = kSubtract ? "sub_stub" : "add_stub";
  const auto plain = [](auto a, auto b) ACCEL_INLINE {
    return kSubtract ? numeric::sub(a, b) : numeric::add(a, b);
  };
  if (!alpha.isSymbolic() && alpha.equal(1)) return binary(iter, name, kAll, plain);
  elementwise(iter, name, selectType(iter.common_dtype(), name, kAll, [&](auto tag) {
                using T = typename decltype(tag)::type;
                const T factor = alpha.to<T>();
                return makeBlock<T, T, T>([factor](T a, T b) ACCEL_INLINE {
                  const T scaled = numeric::mul(factor, b);
                  return kSubtract ? numeric::sub(a, scaled) : numeric::add(a, scaled);
                });
              }));
}

void mulKernel(at::TensorIteratorBase& iter) {
  binary(iter, "mul_cpu", kAll, [](auto a, auto b) ACCEL_INLINE { return numeric::mul(a, b); });
}

void divTrueKernel(at::TensorIteratorBase& iter) {
  binary(iter, "div_cpu", kFloatingTypes + kComplexTypes + kComplexHalfType,
         [](auto a, auto b) ACCEL_INLINE { return a / b; });
}

void divTruncKernel(at::TensorIteratorBase& iter) {
  binary(iter, "div_trunc_cpu", kNumbers, [](auto a, auto b) ACCEL_INLINE {
    checkDivisor(b);
    return numeric::divTrunc(a, b);
  });
}

void divFloorKernel(at::TensorIteratorBase& iter) {
  binary(iter, "div_floor_cpu", kNumbers, [](auto a, auto b) ACCEL_INLINE {
    checkDivisor(b);
    return numeric::divFloor(a, b);
  });
}

void remainderKernel(at::TensorIteratorBase& iter) {
  binary(iter, "remainder_cpu", kNumbers, [](auto a, auto b) ACCEL_INLINE {
    checkDivisor(b);
    return numeric::remainder(a, b);
  });
}

void fmodKernel(at::TensorIteratorBase& iter) {
  binary(iter, "fmod_cpu", kNumbers, [](auto a, auto b) ACCEL_INLINE {
    checkDivisor(b);
    return numeric::fmod(a, b);
  });
}

template <bool kLargest>
void extremumKernel(at::TensorIteratorBase& iter) {
  binary(iter, kLargest ? "maximum_cpu" : "minimum_cpu", kRealAndBool,
         [](auto a, auto b)
             ACCEL_INLINE { return kLargest ? numeric::maximum(a, b) : numeric::minimum(a, b); });
}

// A NaN loses against a number.
template <bool kLargest>
void fExtremumKernel(at::TensorIteratorBase& iter) {
  binary(iter, kLargest ? "fmax_cpu" : "fmin_cpu", kNumbers + kBoolType,
         [](auto a, auto b) ACCEL_INLINE {
           if (numeric::isNan(a)) return b;
           return (kLargest ? b > a : b < a) ? b : a;
         });
}

void atan2Kernel(at::TensorIteratorBase& iter) {
  binary(iter, "atan2_cpu", kFloatingTypes,
         [](auto a, auto b) ACCEL_INLINE { return vmath::atan2(a, b); });
}

void hypotKernel(at::TensorIteratorBase& iter) {
  binary(iter, "hypot_cpu", kFloatingTypes, [](auto a, auto b) { return std::hypot(a, b); });
}

void copysignKernel(at::TensorIteratorBase& iter) {
  binary(iter, "copysign_cpu", kFloatingTypes,
         [](auto a, auto b) ACCEL_INLINE { return std::copysign(a, b); });
}

template <class T>
inline T power(T base, T exponent) {
  if constexpr (isComplex<T>) {
    return c10_complex_math::pow(base, exponent);
  } else if constexpr (std::is_floating_point_v<T>) {
    return vmath::pow(base, exponent);
  } else {
    return numeric::powInteger(base, exponent);
  }
}

void powTensorTensorKernel(at::TensorIteratorBase& iter) {
  binary(iter, "pow", kNumbers + kComplexTypes,
         [](auto a, auto b) ACCEL_INLINE { return power(a, b); });
}

// The exponents that have a cheaper or more exact way than pow().
template <class T>
Block powScalarBlock(const at::Scalar& exponent) {
  const T e = exponent.to<T>();
  if (e == T(2)) return makeBlock<T, T>([](T a) ACCEL_INLINE { return numeric::mul(a, a); });
  if (e == T(3)) {
    return makeBlock<T, T>([](T a) ACCEL_INLINE { return numeric::mul(numeric::mul(a, a), a); });
  }
  if constexpr (!std::is_integral_v<T>) {
    using std::sqrt;
    if (e == T(0.5)) return makeBlock<T, T>([](T a) ACCEL_INLINE { return sqrt(a); });
    if (e == T(-0.5)) return makeBlock<T, T>([](T a) ACCEL_INLINE { return T(1) / sqrt(a); });
    if (e == T(-1)) return makeBlock<T, T>([](T a) ACCEL_INLINE { return T(1) / a; });
    if (e == T(-2)) {
      return makeBlock<T, T>([](T a) ACCEL_INLINE { return T(1) / numeric::mul(a, a); });
    }
  }
  return makeBlock<T, T>([e](T a) ACCEL_INLINE { return power(a, e); });
}

void powTensorScalarKernel(at::TensorIteratorBase& iter, const at::Scalar& exponent) {
  elementwise(iter, "pow",
              selectType(iter.common_dtype(), "pow", kNumbers + kComplexTypes, [&](auto tag) {
                return powScalarBlock<typename decltype(tag)::type>(exponent);
              }));
}

}  // namespace
}  // namespace torch_accel

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(add_stub, &torch_accel::addKernel<false>)
REGISTER_PRIVATEUSE1_DISPATCH(sub_stub, &torch_accel::addKernel<true>)
REGISTER_PRIVATEUSE1_DISPATCH(mul_stub, &torch_accel::mulKernel)
REGISTER_PRIVATEUSE1_DISPATCH(div_true_stub, &torch_accel::divTrueKernel)
REGISTER_PRIVATEUSE1_DISPATCH(div_trunc_stub, &torch_accel::divTruncKernel)
REGISTER_PRIVATEUSE1_DISPATCH(div_floor_stub, &torch_accel::divFloorKernel)
REGISTER_PRIVATEUSE1_DISPATCH(remainder_stub, &torch_accel::remainderKernel)
REGISTER_PRIVATEUSE1_DISPATCH(fmod_stub, &torch_accel::fmodKernel)
REGISTER_PRIVATEUSE1_DISPATCH(maximum_stub, &torch_accel::extremumKernel<true>)
REGISTER_PRIVATEUSE1_DISPATCH(minimum_stub, &torch_accel::extremumKernel<false>)
REGISTER_PRIVATEUSE1_DISPATCH(fmax_stub, &torch_accel::fExtremumKernel<true>)
REGISTER_PRIVATEUSE1_DISPATCH(fmin_stub, &torch_accel::fExtremumKernel<false>)
REGISTER_PRIVATEUSE1_DISPATCH(atan2_stub, &torch_accel::atan2Kernel)
REGISTER_PRIVATEUSE1_DISPATCH(hypot_stub, &torch_accel::hypotKernel)
REGISTER_PRIVATEUSE1_DISPATCH(copysign_stub, &torch_accel::copysignKernel)
REGISTER_PRIVATEUSE1_DISPATCH(pow_tensor_tensor_stub, &torch_accel::powTensorTensorKernel)
REGISTER_PRIVATEUSE1_DISPATCH(pow_tensor_scalar_stub, &torch_accel::powTensorScalarKernel)

}  // namespace at::native
