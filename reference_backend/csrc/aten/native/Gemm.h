// Matrix products on raw memory: out = beta * self + alpha * a @ b, of any strides and dtype.
//
// A vendor replaces: gemm(), by their BLAS.
#pragma once

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

namespace torch_accel {

// A matrix in memory that the calling thread can read; strides in elements.
struct Matrix {
  char* data = nullptr;
  int64_t row_stride = 0, column_stride = 0;
};

// Factors in the compute type of a dtype: as complex numbers, or as integers modulo 2^64.
struct Factor {
  double real = 1, imag = 0;
  int64_t integer = 1;

  static Factor of(const c10::Scalar& value, c10::ScalarType dtype);
  bool isZero(c10::ScalarType dtype) const;
};

struct GemmShape {
  int64_t m, n, k;
};

// Computes on the calling thread's core and OpenMP's. `self` may be the output itself; with beta 0
// it is not read (a NaN there does no harm). Sums are kept in float for 16-bit dtypes, in the dtype
// for other floating types, and wrap around for integers.
using GemmFn = void (*)(const GemmShape& shape, Matrix a, Matrix b, Matrix self, Matrix out,
                        const Factor& alpha, const Factor& beta);

// The product for a dtype; raises NotImplementedError naming `name` for one without.
GemmFn gemmFunction(c10::ScalarType dtype, const char* name);

}  // namespace torch_accel
