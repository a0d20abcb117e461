// Scalar arithmetic with torch's semantics, written so that loops over it vectorise.
#pragma once

#include <c10/util/Exception.h>
#include <c10/util/complex.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "aten/native/Vectorize.h"

namespace torch_accel::numeric {

// Signed overflow wraps around in torch and is undefined in C++: such types compute unsigned.
template <class T>
struct Wrapping {
  using type = T;
};
template <>
struct Wrapping<int8_t> {
  using type = uint32_t;
};
template <>
struct Wrapping<int16_t> {
  using type = uint32_t;
};
template <>
struct Wrapping<uint16_t> {
  using type = uint32_t;
};
template <>
struct Wrapping<int32_t> {
  using type = uint32_t;
};
template <>
struct Wrapping<int64_t> {
  using type = uint64_t;
};
template <class T>
using Wrap = typename Wrapping<T>::type;

template <class T>
ACCEL_INLINE inline T add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a | b;
  } else {
    return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b));
  }
}
template <class T>
ACCEL_INLINE inline T sub(T a, T b) {
  return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b));
}
template <class T>
ACCEL_INLINE inline T mul(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a & b;
  } else if constexpr (c10::is_complex<T>::value) {
    using R = typename T::value_type;
    const R real = a.real() * b.real() - a.imag() * b.imag();
    const R imag = a.real() * b.imag() + a.imag() * b.real();
    return T(real, imag);
  } else {
    return static_cast<T>(static_cast<Wrap<T>>(a) * static_cast<Wrap<T>>(b));
  }
}
template <class T>
ACCEL_INLINE inline T neg(T a) {
  if constexpr (std::is_integral_v<T>) {
    return sub(T(0), a);
  } else {
    return -a;
  }
}

template <class T>
ACCEL_INLINE inline bool isNan(T a) {
  if constexpr (c10::is_complex<T>::value) {
    return a.real() != a.real() || a.imag() != a.imag();
  } else if constexpr (std::is_floating_point_v<T>) {
    return a != a;
  } else {
    return false;
  }
}

// NaN wins, as in torch.
template <class T>
ACCEL_INLINE inline T maximum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a != a ? a : (b > a || b != b ? b : a);
  } else {
    return a > b ? a : b;
  }
}
template <class T>
ACCEL_INLINE inline T minimum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a != a ? a : (b < a || b != b ? b : a);
  } else {
    return a < b ? a : b;
  }
}

// Integer division, defined for the lowest value over -1 (wraps around). b is not 0.
template <class T>
ACCEL_INLINE inline T divTrunc(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::trunc(a / b);
  } else if constexpr (std::is_signed_v<T>) {
    return b == T(-1) ? neg(a) : static_cast<T>(a / b);
  } else {
    return static_cast<T>(a / b);
  }
}

// Remainder with the sign of the dividend.
template <class T>
ACCEL_INLINE inline T fmod(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else if constexpr (std::is_signed_v<T>) {
    return b == T(-1) ? T(0) : static_cast<T>(a % b);
  } else {
    return static_cast<T>(a % b);
  }
}

// Remainder with the sign of the divisor (Python's %).
template <class T>
ACCEL_INLINE inline T remainder(T a, T b) {
  T mod = fmod(a, b);
  if constexpr (std::is_floating_point_v<T> || std::is_signed_v<T>) {
    if (mod != 0 && (b < 0) != (mod < 0)) mod += b;
  }
  return mod;
}

// Python's //: for floating types the floor of the exact quotient, which is not floor(a / b) when
// a / b rounds up to an integer.
template <class T>
ACCEL_INLINE inline T divFloor(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (b == 0) return a / b;
    const T mod = std::fmod(a, b);
    T quotient = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) quotient -= T(1);
    if (quotient == 0) return std::copysign(T(0), a / b);
    const T floored = std::floor(quotient);
    return quotient - floored > T(0.5) ? floored + T(1) : floored;
  } else {
    const T quotient = divTrunc(a, b);
    if constexpr (std::is_signed_v<T>) {
      return fmod(a, b) != 0 && (a < 0) != (b < 0) ? static_cast<T>(quotient - 1) : quotient;
    } else {
      return quotient;
    }
  }
}

// Integer power by squaring; a negative exponent gives 0 but for bases 1 and -1.
template <class T>
inline T powInteger(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == T(-1)) return exponent % 2 ? T(-1) : T(1);
      return 0;
    }
  }
  T result = 1;
  while (exponent) {
    if (exponent & 1) result = mul(result, base);
    exponent = static_cast<T>(exponent / 2);
    base = mul(base, base);
  }
  return result;
}

// Shifts by less than 0 or by the width or more shift everything out.
template <class T>
ACCEL_INLINE inline T shiftLeft(T a, T b) {
  constexpr int kWidth = std::numeric_limits<std::make_unsigned_t<T>>::digits;
  const bool out = b < T(0) || b >= T(kWidth);
  return out ? T(0) : static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << b);
}
template <class T>
ACCEL_INLINE inline T shiftRight(T a, T b) {
  constexpr int kLast =
      std::numeric_limits<std::make_unsigned_t<T>>::digits - (std::is_signed_v<T> ? 1 : 0);
  const bool out = b < T(0) || b >= T(kLast);
  if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(a >> (out ? T(kLast) : b));
  } else {
    return out ? T(0) : static_cast<T>(a >> b);
  }
}

}  // namespace torch_accel::numeric
