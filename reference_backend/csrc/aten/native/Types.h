// Element types, the types that kernels compute in, and the choice of one at enqueue.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <type_traits>

namespace torch_accel {

// What values of a dtype are computed in: float for the 16-bit floating types, complex<float> for
// complex<Half>, the type itself otherwise. Kernels exist for compute types only.
template <class T>
struct ComputeTypeOf {
  using type = T;
};
template <>
struct ComputeTypeOf<c10::Half> {
  using type = float;
};
template <>
struct ComputeTypeOf<c10::BFloat16> {
  using type = float;
};
template <>
struct ComputeTypeOf<c10::complex<c10::Half>> {
  using type = c10::complex<float>;
};
template <class T>
using ComputeType = typename ComputeTypeOf<T>::type;

inline c10::ScalarType computeDtype(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Half:
    case c10::ScalarType::BFloat16:
      return c10::ScalarType::Float;
    case c10::ScalarType::ComplexHalf:
      return c10::ScalarType::ComplexFloat;
    default:
      return dtype;
  }
}

template <class T>
inline constexpr c10::ScalarType dtypeOf = c10::CppTypeToScalarType<T>::value;

template <class T>
inline constexpr bool isComplex = c10::is_complex<T>::value;

// Lists of element types, for the dtypes an operator accepts.
template <class... Ts>
struct TypeList {};

template <class... As, class... Bs>
constexpr TypeList<As..., Bs...> operator+(TypeList<As...>, TypeList<Bs...>) {
  return {};
}

inline constexpr TypeList<bool> kBoolType;
inline constexpr TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t> kIntegerTypes;
inline constexpr TypeList<uint16_t, uint32_t, uint64_t> kWideUnsignedTypes;
inline constexpr TypeList<float, double, c10::Half, c10::BFloat16> kFloatingTypes;
inline constexpr TypeList<c10::complex<float>, c10::complex<double>> kComplexTypes;
inline constexpr TypeList<c10::complex<c10::Half>> kComplexHalfType;

template <class T>
struct TypeTag {
  using type = T;
};

// Calls `f` with the tag of the *compute* type of `dtype`, if `dtype` is in the list, and returns
// what it returns; else raises NotImplementedError in the words of AT_DISPATCH. `name` names the
// kernel.
template <class... Ts, class F>
auto selectType(c10::ScalarType dtype, const char* name, TypeList<Ts...>, F&& f) {
  using First = std::tuple_element_t<0, std::tuple<Ts...>>;
  std::invoke_result_t<F&, TypeTag<ComputeType<First>>> result;
  const bool found =
      ((dtype == dtypeOf<Ts> && ((result = f(TypeTag<ComputeType<Ts>>())), true)) || ...);
  TORCH_CHECK_NOT_IMPLEMENTED(found, '"', name, "\" not implemented for '", c10::toString(dtype),
                              "'");
  return result;
}

}  // namespace torch_accel
