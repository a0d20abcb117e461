// Copies between two strided regions of one shape, for operators that move elements.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstring>

#include "aten/native/Loader.h"
#include "aten/native/Types.h"

namespace torch_accel {

// A copy that can run many times, between places that differ in their addresses only.
class SliceCopy {
 public:
  SliceCopy(c10::ScalarType to, c10::ScalarType from)
      : same_(to == from),
        compute_type_(same_ ? to : computeDtype(to)),
        loader_(from, compute_type_),
        storer_(to, compute_type_),
        copy_(copyFunction(storer_.elementSize())) {}

  // Adds the next dimension, from the innermost outwards; strides in elements. Dimensions that both
  // sides traverse in one go are merged.
  void addDimension(int64_t size, int64_t to_stride, int64_t from_stride) {
    if (size == 1) return;
    const Dimension next{size, to_stride * storer_.elementSize(),
                         from_stride * loader_.elementSize()};
    if (!dims_.empty()) {
      Dimension& last = dims_.back();
      if (next.to == last.to * last.size && next.from == last.from * last.size) {
        last.size *= size;
        return;
      }
    }
    dims_.push_back(next);
  }

  // Call when all dimensions are known.
  void finish() {
    while (dims_.size() < 2) dims_.push_back({1, 0, 0});
    planes_ = 1;
    for (size_t i = 2; i < dims_.size(); ++i) planes_ *= dims_[i].size;
    row_bytes_ = same_ && dims_[0].to == storer_.elementSize() && dims_[0].from == dims_[0].to
                     ? dims_[0].size * storer_.elementSize()
                     : 0;
  }

  void run(BlockBuffer& buffer, char* to, const char* from) const {
    for (int64_t plane = 0; plane < planes_; ++plane) {
      int64_t index = plane, to_offset = 0, from_offset = 0;
      for (size_t i = 2; i < dims_.size(); ++i) {
        to_offset += index % dims_[i].size * dims_[i].to;
        from_offset += index % dims_[i].size * dims_[i].from;
        index /= dims_[i].size;
      }
      runPlane(buffer, to + to_offset, from + from_offset);
    }
  }

 private:
  struct Dimension {
    int64_t size, to, from;  // strides in bytes
  };

  void runPlane(BlockBuffer& buffer, char* to, const char* from) const {
    if (row_bytes_) {
      for (int64_t row = 0; row < dims_[1].size; ++row) {
        std::memcpy(to + row * dims_[1].to, from + row * dims_[1].from, row_bytes_);
      }
    } else if (same_) {
      copy_(to, {dims_[0].to, dims_[1].to}, from, {dims_[0].from, dims_[1].from},
            {dims_[0].size, dims_[1].size});
    } else {
      for (int64_t row = 0; row < dims_[1].size; ++row) {
        for (int64_t i = 0; i < dims_[0].size; i += kBlockSize) {
          const Rectangle piece{std::min(kBlockSize, dims_[0].size - i), 1};
          const char* values = loader_.load(buffer, from + row * dims_[1].from + i * dims_[0].from,
                                            {dims_[0].from, 0}, piece);
          storer_.store(to + row * dims_[1].to + i * dims_[0].to, {dims_[0].to, 0}, values,
                        buffer.scratch, piece);
        }
      }
    }
  }

  bool same_;
  c10::ScalarType compute_type_;
  Loader loader_;
  Storer storer_;
  CopyFn copy_;
  c10::SmallVector<Dimension, 4> dims_;
  int64_t planes_ = 1, row_bytes_ = 0;
};

}  // namespace torch_accel
