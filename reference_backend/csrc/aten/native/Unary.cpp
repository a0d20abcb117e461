// Unary operators without parameters.
#include "aten/native/Vectorize.h"
//
#include <ATen/TensorIterator.h>
#include <ATen/native/TensorCompare.h>
#include <ATen/native/UnaryOps.h>
#include <c10/core/Scalar.h>

#include <numbers>

#include "aten/native/Elementwise.h"
#include "aten/native/Numeric.h"
#include "aten/native/VectorMath.h"

namespace torch_accel {
namespace {

constexpr auto kReal = kIntegerTypes + kFloatingTypes;
constexpr auto kRealAndBool = kReal + kBoolType + kWideUnsignedTypes;
constexpr auto kFloatingAndComplex = kFloatingTypes + kComplexTypes + kComplexHalfType;
constexpr auto kNumbers = kReal + kComplexTypes + kComplexHalfType;
constexpr auto kAll = kNumbers + kBoolType + kWideUnsignedTypes;

c10::ScalarType inputType(const at::TensorIteratorBase& iter) {
  return iter.maybe_common_dtype().value_or(iter.input_dtype());
}

// T -> T.
template <class Types, class Op>
void unary(at::TensorIteratorBase& iter, const char* name, Types types, Op op) {
  elementwise(iter, name, selectType(inputType(iter), name, types, [&](auto tag) {
                using T = typename decltype(tag)::type;
                return makeBlock<T, T>(op);
              }));
}

// T -> bool.
template <class Types, class Op>
void predicate(at::TensorIteratorBase& iter, const char* name, Types types, Op op) {
  elementwise(iter, name, selectType(iter.input_dtype(), name, types, [&](auto tag) {
                using T = typename decltype(tag)::type;
                return makeBlock<bool, T>(op);
              }));
}

void absKernel(at::TensorIteratorBase& iter) {
  unary(iter, "abs_cpu", kNumbers, [](auto a) ACCEL_INLINE {
    using T = decltype(a);
    if constexpr (isComplex<T>) {
      return T(std::hypot(a.real(), a.imag()), 0);
    } else if constexpr (std::is_floating_point_v<T>) {
      return std::abs(a);
    } else {
      return a < T(0) ? numeric::neg(a) : a;
    }
  });
}

void negKernel(at::TensorIteratorBase& iter) {
  unary(iter, "neg_cpu", kNumbers + kWideUnsignedTypes,
        [](auto a) ACCEL_INLINE { return numeric::neg(a); });
}

void signKernel(at::TensorIteratorBase& iter) {
  unary(iter, "sign_cpu", kReal + kBoolType, [](auto a) ACCEL_INLINE {
    using T = decltype(a);
    // A NaN has sign 0.
    return static_cast<T>((T(0) < a) - (a < T(0)));
  });
}

void sgnKernel(at::TensorIteratorBase& iter) {
  unary(iter, "sgn_cpu", kComplexTypes + kComplexHalfType, [](auto a) {
    using T = decltype(a);
    const auto length = std::hypot(a.real(), a.imag());
    return length == 0 ? T(0) : T(a.real() / length, a.imag() / length);
  });
}

void bitwiseNotKernel(at::TensorIteratorBase& iter) {
  unary(iter, "bitwise_not_cpu", kIntegerTypes + kWideUnsignedTypes + kBoolType,
        [](auto a) ACCEL_INLINE {
          if constexpr (std::is_same_v<decltype(a), bool>) {
            return !a;
          } else {
            return static_cast<decltype(a)>(~a);
          }
        });
}

void logicalNotKernel(at::TensorIteratorBase& iter) {
  predicate(iter, "logical_not_cpu", kAll, [](auto a) ACCEL_INLINE { return a == decltype(a)(0); });
}

void signbitKernel(at::TensorIteratorBase& iter) {
  predicate(iter, "signbit_cpu", kRealAndBool, [](auto a) ACCEL_INLINE {
    if constexpr (std::is_floating_point_v<decltype(a)>) {
      return std::signbit(a);
    } else {
      return a < decltype(a)(0);
    }
  });
}

template <bool kPositive>
void isInfinityKernel(at::TensorIteratorBase& iter) {
  predicate(iter, kPositive ? "isposinf_cpu" : "isneginf_cpu", kFloatingTypes,
            [](auto a) ACCEL_INLINE {
              constexpr auto kInfinity = std::numeric_limits<decltype(a)>::infinity();
              return a == (kPositive ? kInfinity : -kInfinity);
            });
}

void angleKernel(at::TensorIteratorBase& iter) {
  unary(iter, "angle_cpu", kFloatingTypes + kComplexTypes, [](auto a) ACCEL_INLINE {
    using T = decltype(a);
    if constexpr (isComplex<T>) {
      return T(std::atan2(a.imag(), a.real()), 0);
    } else {
      return a != a ? a : (a < 0 ? std::numbers::pi_v<T> : T(0));
    }
  });
}

void conjPhysicalKernel(at::TensorIteratorBase& iter) {
  unary(iter, "conj_cpu", kAll, [](auto a) ACCEL_INLINE {
    if constexpr (isComplex<decltype(a)>) {
      return decltype(a)(a.real(), -a.imag());
    } else {
      return a;
    }
  });
}

// ---- rounding
// ------------------------------------------------------------------------------------

void floorKernel(at::TensorIteratorBase& iter) {
  unary(iter, "floor_cpu", kFloatingTypes, [](auto a) ACCEL_INLINE { return std::floor(a); });
}
void ceilKernel(at::TensorIteratorBase& iter) {
  unary(iter, "ceil_cpu", kFloatingTypes, [](auto a) ACCEL_INLINE { return std::ceil(a); });
}
void truncKernel(at::TensorIteratorBase& iter) {
  unary(iter, "trunc_cpu", kFloatingTypes, [](auto a) ACCEL_INLINE { return std::trunc(a); });
}
void fracKernel(at::TensorIteratorBase& iter) {
  unary(iter, "frac_cpu", kFloatingTypes, [](auto a) ACCEL_INLINE { return a - std::trunc(a); });
}
// Halves go to the even neighbour.
void roundKernel(at::TensorIteratorBase& iter) {
  unary(iter, "round_cpu", kFloatingTypes, [](auto a) ACCEL_INLINE { return std::nearbyint(a); });
}

void roundDecimalsKernel(at::TensorIteratorBase& iter, int64_t decimals) {
  constexpr TypeList<float, double, c10::BFloat16> kTypes;
  elementwise(iter, "round", selectType(inputType(iter), "round_vml_cpu", kTypes, [&](auto tag) {
                using T = typename decltype(tag)::type;
                const T scale = static_cast<T>(std::pow(10.0, std::abs(decimals)));
                if (decimals < 0) {
                  return makeBlock<T, T>(
                      [scale](T a) ACCEL_INLINE { return std::nearbyint(a / scale) * scale; });
                }
                return makeBlock<T, T>(
                    [scale](T a) ACCEL_INLINE { return std::nearbyint(a * scale) / scale; });
              }));
}

// ---- elementary functions
// ------------------------------------------------------------------------

// Real arguments take the vectorised function, complex ones the C++ library's.
#define ACCEL_ELEMENTARY(function)                                                   \
  void function##Kernel(at::TensorIteratorBase& iter) {                              \
    unary(iter, #function "_vml_cpu", kFloatingAndComplex, [](auto a) ACCEL_INLINE { \
      if constexpr (isComplex<decltype(a)>) {                                        \
        return c10_complex_math::function(a);                                        \
      } else {                                                                       \
        return vmath::function(a);                                                   \
      }                                                                              \
    });                                                                              \
  }

ACCEL_ELEMENTARY(exp)
ACCEL_ELEMENTARY(expm1)
ACCEL_ELEMENTARY(log)
ACCEL_ELEMENTARY(log2)
ACCEL_ELEMENTARY(log10)
ACCEL_ELEMENTARY(log1p)
ACCEL_ELEMENTARY(sin)
ACCEL_ELEMENTARY(cos)
ACCEL_ELEMENTARY(tan)
ACCEL_ELEMENTARY(asin)
ACCEL_ELEMENTARY(acos)
ACCEL_ELEMENTARY(atan)
ACCEL_ELEMENTARY(sinh)
ACCEL_ELEMENTARY(cosh)
ACCEL_ELEMENTARY(tanh)
ACCEL_ELEMENTARY(asinh)
ACCEL_ELEMENTARY(acosh)
ACCEL_ELEMENTARY(atanh)
#undef ACCEL_ELEMENTARY

void exp2Kernel(at::TensorIteratorBase& iter) {
  unary(iter, "exp2", kFloatingAndComplex, [](auto a) ACCEL_INLINE {
    using T = decltype(a);
    if constexpr (isComplex<T>) {
      return c10_complex_math::exp(a * T(std::numbers::ln2_v<typename T::value_type>));
    } else {
      return vmath::exp2(a);
    }
  });
}

void erfKernel(at::TensorIteratorBase& iter) {
  unary(iter, "erf_vml_cpu", kFloatingTypes, [](auto a) ACCEL_INLINE { return vmath::erf(a); });
}
void erfcKernel(at::TensorIteratorBase& iter) {
  unary(iter, "erfc_vml_cpu", kFloatingTypes, [](auto a) ACCEL_INLINE { return vmath::erfc(a); });
}

template <class T>
ACCEL_INLINE inline T squareRoot(T a) {
  if constexpr (isComplex<T>) {
    return c10_complex_math::sqrt(a);
  } else {
    return std::sqrt(a);
  }
}

void sqrtKernel(at::TensorIteratorBase& iter) {
  unary(iter, "sqrt_cpu", kFloatingAndComplex, [](auto a) ACCEL_INLINE { return squareRoot(a); });
}
void rsqrtKernel(at::TensorIteratorBase& iter) {
  unary(iter, "rsqrt_cpu", kFloatingAndComplex,
        [](auto a) ACCEL_INLINE { return decltype(a)(1) / squareRoot(a); });
}
void reciprocalKernel(at::TensorIteratorBase& iter) {
  unary(iter, "reciprocal_cpu", kFloatingAndComplex,
        [](auto a) ACCEL_INLINE { return decltype(a)(1) / a; });
}
void sigmoidKernel(at::TensorIteratorBase& iter) {
  unary(iter, "sigmoid_cpu", kFloatingAndComplex, [](auto a) ACCEL_INLINE {
    using T = decltype(a);
    if constexpr (isComplex<T>) {
      return T(1) / (T(1) + c10_complex_math::exp(-a));
    } else {
      return T(1) / (T(1) + vmath::exp(-a));
    }
  });
}

}  // namespace
}  // namespace torch_accel

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(abs_stub, &torch_accel::absKernel)
REGISTER_PRIVATEUSE1_DISPATCH(neg_stub, &torch_accel::negKernel)
REGISTER_PRIVATEUSE1_DISPATCH(sign_stub, &torch_accel::signKernel)
REGISTER_PRIVATEUSE1_DISPATCH(sgn_stub, &torch_accel::sgnKernel)
REGISTER_PRIVATEUSE1_DISPATCH(bitwise_not_stub, &torch_accel::bitwiseNotKernel)
REGISTER_PRIVATEUSE1_DISPATCH(logical_not_stub, &torch_accel::logicalNotKernel)
REGISTER_PRIVATEUSE1_DISPATCH(signbit_stub, &torch_accel::signbitKernel)
REGISTER_PRIVATEUSE1_DISPATCH(isposinf_stub, &torch_accel::isInfinityKernel<true>)
REGISTER_PRIVATEUSE1_DISPATCH(isneginf_stub, &torch_accel::isInfinityKernel<false>)
REGISTER_PRIVATEUSE1_DISPATCH(angle_stub, &torch_accel::angleKernel)
REGISTER_PRIVATEUSE1_DISPATCH(conj_physical_stub, &torch_accel::conjPhysicalKernel)
REGISTER_PRIVATEUSE1_DISPATCH(floor_stub, &torch_accel::floorKernel)
REGISTER_PRIVATEUSE1_DISPATCH(ceil_stub, &torch_accel::ceilKernel)
REGISTER_PRIVATEUSE1_DISPATCH(trunc_stub, &torch_accel::truncKernel)
REGISTER_PRIVATEUSE1_DISPATCH(frac_stub, &torch_accel::fracKernel)
REGISTER_PRIVATEUSE1_DISPATCH(round_stub, &torch_accel::roundKernel)
REGISTER_PRIVATEUSE1_DISPATCH(round_decimals_stub, &torch_accel::roundDecimalsKernel)
REGISTER_PRIVATEUSE1_DISPATCH(exp_stub, &torch_accel::expKernel)
REGISTER_PRIVATEUSE1_DISPATCH(exp2_stub, &torch_accel::exp2Kernel)
REGISTER_PRIVATEUSE1_DISPATCH(expm1_stub, &torch_accel::expm1Kernel)
REGISTER_PRIVATEUSE1_DISPATCH(log_stub, &torch_accel::logKernel)
REGISTER_PRIVATEUSE1_DISPATCH(log2_stub, &torch_accel::log2Kernel)
REGISTER_PRIVATEUSE1_DISPATCH(log10_stub, &torch_accel::log10Kernel)
REGISTER_PRIVATEUSE1_DISPATCH(log1p_stub, &torch_accel::log1pKernel)
REGISTER_PRIVATEUSE1_DISPATCH(sin_stub, &torch_accel::sinKernel)
REGISTER_PRIVATEUSE1_DISPATCH(cos_stub, &torch_accel::cosKernel)
REGISTER_PRIVATEUSE1_DISPATCH(tan_stub, &torch_accel::tanKernel)
REGISTER_PRIVATEUSE1_DISPATCH(asin_stub, &torch_accel::asinKernel)
REGISTER_PRIVATEUSE1_DISPATCH(acos_stub, &torch_accel::acosKernel)
REGISTER_PRIVATEUSE1_DISPATCH(atan_stub, &torch_accel::atanKernel)
REGISTER_PRIVATEUSE1_DISPATCH(sinh_stub, &torch_accel::sinhKernel)
REGISTER_PRIVATEUSE1_DISPATCH(cosh_stub, &torch_accel::coshKernel)
REGISTER_PRIVATEUSE1_DISPATCH(tanh_stub, &torch_accel::tanhKernel)
REGISTER_PRIVATEUSE1_DISPATCH(asinh_stub, &torch_accel::asinhKernel)
REGISTER_PRIVATEUSE1_DISPATCH(acosh_stub, &torch_accel::acoshKernel)
REGISTER_PRIVATEUSE1_DISPATCH(atanh_stub, &torch_accel::atanhKernel)
REGISTER_PRIVATEUSE1_DISPATCH(erf_stub, &torch_accel::erfKernel)
REGISTER_PRIVATEUSE1_DISPATCH(erfc_stub, &torch_accel::erfcKernel)
REGISTER_PRIVATEUSE1_DISPATCH(sqrt_stub, &torch_accel::sqrtKernel)
REGISTER_PRIVATEUSE1_DISPATCH(rsqrt_stub, &torch_accel::rsqrtKernel)
REGISTER_PRIVATEUSE1_DISPATCH(reciprocal_stub, &torch_accel::reciprocalKernel)
REGISTER_PRIVATEUSE1_DISPATCH(sigmoid_stub, &torch_accel::sigmoidKernel)

}  // namespace at::native
