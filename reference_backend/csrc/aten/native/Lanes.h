// Reduction of packed values in vector lanes: what compilers do not do to floating-point loops,
// since it changes the order of operations.
#pragma once

#include <cstdint>

#include "aten/native/Vectorize.h"

// Vectors are passed between inlined functions only, so their calling convention does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace torch_accel {

// Reduces by `op` in vector lanes: 4 accumulators of 32 bytes. `op` takes vectors and scalars.
template <class T, class Op>
ACCEL_INLINE inline void reduceLanes(const T* in, int64_t count, T* lanes, int& lane_count, Op op) {
  typedef T Vector __attribute__((vector_size(32)));
  typedef T Unaligned __attribute__((vector_size(32), aligned(alignof(T)), may_alias));
  constexpr int kWidth = 32 / sizeof(T), kStep = 4 * kWidth;
  const auto at = [&](int64_t i)
                      ACCEL_INLINE { return Vector(*reinterpret_cast<const Unaligned*>(in + i)); };
  if (count < kStep) {
    lane_count = static_cast<int>(count);
    for (int i = 0; i < lane_count; ++i) lanes[i] = in[i];
    return;
  }
  Vector a = at(0), b = at(kWidth), c = at(2 * kWidth), d = at(3 * kWidth);
  int64_t i = kStep;
  for (; i + kStep <= count; i += kStep) {
    a = op(a, at(i));
    b = op(b, at(i + kWidth));
    c = op(c, at(i + 2 * kWidth));
    d = op(d, at(i + 3 * kWidth));
  }
  a = op(op(a, b), op(c, d));
  lane_count = kWidth;
  for (int lane = 0; lane < kWidth; ++lane) lanes[lane] = a[lane];
  for (; i < count; ++i) lanes[i % kWidth] = op(lanes[i % kWidth], in[i]);
}

// Sum of packed values: each lane in its own type for 512 values, then in Total, so that the error
// stays far below that of one long sum.
template <class Total, class T>
ACCEL_INLINE inline Total sumOf(const T* values, int64_t count) {
  Total total = 0;
  for (int64_t i = 0; i < count; i += 512) {
    T lanes[4 * 32 / sizeof(T)];
    int lane_count;
    reduceLanes(values + i, count - i < 512 ? count - i : 512, lanes, lane_count,
                [](auto a, auto b) ACCEL_INLINE { return static_cast<decltype(a)>(a + b); });
    for (int lane = 0; lane < lane_count; ++lane) total += static_cast<Total>(lanes[lane]);
  }
  return total;
}

}  // namespace torch_accel
