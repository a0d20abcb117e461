// Gathering, scattering and converting elements, on a worker.
//
// A kernel's loops see packed values of its compute type only. What lies in memory with other
// strides is copied into a small buffer first, and what has another dtype is converted there.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace torch_accel {

// A rectangle of `columns` x `rows` elements; strides in bytes.
struct Rectangle {
  int64_t columns, rows;
};
struct Strides2d {
  int64_t column, row;
};

// Copies a rectangle between strided places; for any dtype whose elements have 1, 2, 4, 8 or 16
// bytes.
using CopyFn = void (*)(char* target, Strides2d target_strides, const char* source,
                        Strides2d source_strides, Rectangle size);
CopyFn copyFunction(size_t element_size);

// Converts packed elements as torch does (complex to real drops the imaginary part, anything to
// bool is != 0). One of the two types is a compute type. Null for types without conversion: the
// 8-bit floats and the quantised ones.
using ConvertFn = void (*)(char* target, const char* source, int64_t count);
ConvertFn convertFunction(c10::ScalarType target, c10::ScalarType source);

// Rounds `count` compute values of a 16-bit dtype to what that dtype can hold; a no-op for others.
void roundTo(c10::ScalarType dtype, char* values, int64_t count);

}  // namespace torch_accel
