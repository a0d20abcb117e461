// Mathematical functions that GCC can vectorise: on x86-64 with glibc 2.35 or newer they bind to
// libm in scalar code and to libmvec, glibc's vector library, in vectorised loops. Elsewhere
// they're <cmath>.
//
// A vendor replaces: the functions, by their device's intrinsics.
#pragma once

#include <features.h>

#include <cmath>

namespace torch_accel::vmath {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) && \
    __GLIBC_PREREQ(2, 35)

// The assembler name makes the vector variants those that libmvec exports; `const` says that errno
// is of no interest, without which a call keeps its loop scalar.
#define ACCEL_VECTOR_UNARY(name)                                                                   \
  extern "C"                                                                                       \
      __attribute__((simd("notinbranch"), const)) double accel_##name(double) __asm__(#name);      \
  extern "C"                                                                                       \
      __attribute__((simd("notinbranch"), const)) float accel_##name##f(float) __asm__(#name "f"); \
  ACCEL_INLINE inline double name(double x) {                                                      \
    return accel_##name(x);                                                                        \
  }                                                                                                \
  ACCEL_INLINE inline float name(float x) {                                                        \
    return accel_##name##f(x);                                                                     \
  }

#define ACCEL_VECTOR_BINARY(name)                                               \
  extern "C" __attribute__((simd("notinbranch"), const)) double accel_##name(   \
      double, double) __asm__(#name);                                           \
  extern "C" __attribute__((simd("notinbranch"), const)) float accel_##name##f( \
      float, float) __asm__(#name "f");                                         \
  ACCEL_INLINE inline double name(double x, double y) {                         \
    return accel_##name(x, y);                                                  \
  }                                                                             \
  ACCEL_INLINE inline float name(float x, float y) {                            \
    return accel_##name##f(x, y);                                               \
  }

#else

#define ACCEL_VECTOR_UNARY(name)              \
  ACCEL_INLINE inline double name(double x) { \
    return std::name(x);                      \
  }                                           \
  ACCEL_INLINE inline float name(float x) {   \
    return std::name(x);                      \
  }
#define ACCEL_VECTOR_BINARY(name)                       \
  ACCEL_INLINE inline double name(double x, double y) { \
    return std::name(x, y);                             \
  }                                                     \
  ACCEL_INLINE inline float name(float x, float y) {    \
    return std::name(x, y);                             \
  }

#endif

ACCEL_VECTOR_UNARY(exp)
ACCEL_VECTOR_UNARY(exp2)
ACCEL_VECTOR_UNARY(expm1)
ACCEL_VECTOR_UNARY(log)
ACCEL_VECTOR_UNARY(log2)
ACCEL_VECTOR_UNARY(log10)
ACCEL_VECTOR_UNARY(log1p)
ACCEL_VECTOR_UNARY(sin)
ACCEL_VECTOR_UNARY(cos)
ACCEL_VECTOR_UNARY(tan)
ACCEL_VECTOR_UNARY(asin)
ACCEL_VECTOR_UNARY(acos)
ACCEL_VECTOR_UNARY(atan)
ACCEL_VECTOR_UNARY(sinh)
ACCEL_VECTOR_UNARY(cosh)
ACCEL_VECTOR_UNARY(tanh)
ACCEL_VECTOR_UNARY(asinh)
ACCEL_VECTOR_UNARY(acosh)
ACCEL_VECTOR_UNARY(atanh)
ACCEL_VECTOR_UNARY(erf)
ACCEL_VECTOR_UNARY(erfc)
ACCEL_VECTOR_BINARY(pow)
ACCEL_VECTOR_BINARY(atan2)

#undef ACCEL_VECTOR_UNARY
#undef ACCEL_VECTOR_BINARY

}  // namespace torch_accel::vmath
