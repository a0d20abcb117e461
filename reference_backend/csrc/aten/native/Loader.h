// Reading strided memory of any dtype as packed values of a compute type, block by block.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include "aten/native/Convert.h"

namespace torch_accel {

// Values that a loader or storer handles at a time, at most.
inline constexpr int64_t kBlockSize = 512;
// Elements worth a second thread.
inline constexpr int64_t kGrain = 32768;

inline bool isPacked(Strides2d strides, Rectangle size, int64_t element_size) {
  return (strides.column == element_size || size.columns == 1) &&
         (size.rows == 1 || strides.row == size.columns * element_size);
}

// Memory of one thread for one operand.
struct BlockBuffer {
  alignas(64) char values[kBlockSize * 16];
  alignas(64) char scratch[kBlockSize * 16];
};

// Reads `stored` elements as `computed` values.
class Loader {
 public:
  Loader() = default;
  Loader(c10::ScalarType stored, c10::ScalarType computed)
      : element_size_(static_cast<int64_t>(c10::elementSize(stored))),
        copy_(copyFunction(element_size_)),
        convert_(stored == computed ? nullptr : convertFunction(computed, stored)) {
    TORCH_CHECK_NOT_IMPLEMENTED(stored == computed || convert_, "no kernel converts ", stored,
                                " to ", computed);
  }

  int64_t elementSize() const { return element_size_; }

  // The packed values of a rectangle of at most kBlockSize elements: in place where that is
  // possible (then of any size), else in the buffer.
  const char* load(BlockBuffer& buffer, const char* source, Strides2d strides,
                   Rectangle size) const {
    const bool packed = isPacked(strides, size, element_size_);
    if (!convert_ && packed) return source;
    if (!packed) {
      char* target = convert_ ? buffer.scratch : buffer.values;
      copy_(target, {element_size_, size.columns * element_size_}, source, strides, size);
      source = target;
    }
    if (convert_) convert_(buffer.values, source, size.columns * size.rows);
    return buffer.values;
  }

 private:
  int64_t element_size_ = 0;
  CopyFn copy_ = nullptr;
  ConvertFn convert_ = nullptr;
};

// Writes `computed` values as `stored` elements.
class Storer {
 public:
  Storer() = default;
  Storer(c10::ScalarType stored, c10::ScalarType computed)
      : element_size_(static_cast<int64_t>(c10::elementSize(stored))),
        copy_(copyFunction(element_size_)),
        convert_(stored == computed ? nullptr : convertFunction(stored, computed)) {
    TORCH_CHECK_NOT_IMPLEMENTED(stored == computed || convert_, "no kernel converts ", computed,
                                " to ", stored);
  }

  int64_t elementSize() const { return element_size_; }

  // True if values may be written to the target itself, instead of being stored from elsewhere.
  bool isDirect(Strides2d strides, Rectangle size) const {
    return !convert_ && isPacked(strides, size, element_size_);
  }

  // Stores packed values, at most kBlockSize; `scratch` holds as many elements.
  void store(char* target, Strides2d strides, const char* values, char* scratch,
             Rectangle size) const {
    const bool packed = isPacked(strides, size, element_size_);
    if (convert_) {
      char* converted = packed ? target : scratch;
      convert_(converted, values, size.columns * size.rows);
      values = converted;
    }
    if (packed && convert_) return;
    copy_(target, strides, values, {element_size_, size.columns * element_size_}, size);
  }

 private:
  int64_t element_size_ = 0;
  CopyFn copy_ = nullptr;
  ConvertFn convert_ = nullptr;
};

}  // namespace torch_accel
