// How this folder's inner loops are compiled: include it first.
//
// ACCEL_VECTORIZE compiles a loop twice, for AVX2 and for any x86-64, and the loader takes the one
// the machine can run. The pragma lets loops over exp(), floor() or a comparison vectorise; it
// relaxes errno and floating-point traps only, never the order of operations or NaN.
//
// A vendor replaces: everything; their compiler has its own way of saying "this is a kernel".
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ACCEL_X86 1
#define ACCEL_VECTORIZE __attribute__((target_clones("arch=x86-64-v3", "default")))
#define ACCEL_VECTORIZE_WIDE \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ACCEL_VECTORIZE
#define ACCEL_VECTORIZE_WIDE
#endif

#define ACCEL_INLINE __attribute__((always_inline))
