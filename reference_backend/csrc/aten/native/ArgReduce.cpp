// Extrema with their positions. The first of equals wins, and a NaN wins over every number.
#include "aten/native/Vectorize.h"
//
#include "aten/native/ArgReduce.h"

#include <ATen/Parallel.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/TensorCompare.h>

#include "aten/native/Loader.h"
#include "aten/native/Numeric.h"
#include "aten/native/Types.h"
#include "runtime/Launch.h"
#include "runtime/Stream.h"

namespace torch_accel {
namespace {

template <bool kLargest, class T>
ACCEL_INLINE inline bool better(T value, T best) {
  const bool wins = kLargest ? value > best : value < best;
  if constexpr (std::is_floating_point_v<T>) {
    return wins || (value != value && best == best);
  } else {
    return wins;
  }
}

// Loops over packed values: along one output's values, and across neighbouring outputs.
struct ArgBlock {
  c10::ScalarType type;
  // Updates the best of one output by values[0, count), the first of which has position `first`.
  void (*along)(const char* values, int64_t count, int64_t first, char* best, int64_t* position);
  // Updates `count` outputs by one value each, at the same position.
  void (*across)(const char* values, int64_t count, int64_t at, char* best, int64_t* position);
};

template <bool kLargest, class T>
ACCEL_VECTORIZE void along(const char* bytes, int64_t count, int64_t first, char* best_bytes,
                           int64_t* position) {
  const auto* values = reinterpret_cast<const T*>(bytes);
  T& best = *reinterpret_cast<T*>(best_bytes);
  int64_t i = 0;
  if (first == 0) {
    best = values[0];
    *position = 0;
    i = 1;
  }
  // Most stretches hold nothing better: look for one first, without branches.
  constexpr int64_t kStretch = 64;
  while (i < count) {
    const int64_t end = std::min(count, i + kStretch);
    int found = 0;
    for (int64_t j = i; j < end; ++j) found |= better<kLargest>(values[j], best);
    if (found) {
      for (int64_t j = i; j < end; ++j) {
        if (better<kLargest>(values[j], best)) {
          best = values[j];
          *position = first + j;
        }
      }
    }
    i = end;
  }
}

template <bool kLargest, class T>
ACCEL_VECTORIZE void across(const char* bytes, int64_t count, int64_t at, char* best_bytes,
                            int64_t* position) {
  const auto* values = reinterpret_cast<const T*>(bytes);
  auto* best = reinterpret_cast<T*>(best_bytes);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const bool take = at == 0 || better<kLargest>(values[i], best[i]);
    best[i] = take ? values[i] : best[i];
    position[i] = take ? at : position[i];
  }
}

template <bool kLargest>
ArgBlock argBlock(c10::ScalarType dtype, const char* name) {
  constexpr auto kTypes = kIntegerTypes + kFloatingTypes + kBoolType;
  return selectType(dtype, name, kTypes, [](auto tag) {
    using T = typename decltype(tag)::type;
    return ArgBlock{dtypeOf<T>, &along<kLargest, T>, &across<kLargest, T>};
  });
}

struct Dimension {
  int64_t size, in_stride, value_stride, index_stride;  // strides in bytes
};

struct ArgReduceLaunch {
  ArgBlock block;
  Loader loader;
  Storer value_storer;
  void* in_address = nullptr;
  void* value_address = nullptr;  // null if only positions are asked for
  void* index_address = nullptr;
  int64_t size = 1, stride = 0;         // of the reduced dimension
  c10::SmallVector<Dimension, 5> kept;  // the innermost first, never empty

  void operator()() const {
    // Across neighbours when these are nearer in memory than an output's own values.
    const bool run_across = kept[0].size >= 8 && std::abs(kept[0].in_stride) < std::abs(stride);
    const int64_t width = run_across ? kBlockSize : 1;
    const int64_t strips_per_row = (kept[0].size + width - 1) / width;
    int64_t strips = strips_per_row;
    for (size_t i = 1; i < kept.size(); ++i) strips *= kept[i].size;
    const int64_t cost = std::max<int64_t>(1, std::min(width, kept[0].size) * size);
    at::parallel_for(0, strips, std::max<int64_t>(1, kGrain / cost),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t strip = begin; strip < end; ++strip) {
                         runStrip(strip % strips_per_row * width, width, strip / strips_per_row);
                       }
                     });
  }

 private:
  // `width` outputs from `first` on in the innermost dimension, at `row` of the others.
  void runStrip(int64_t first, int64_t width, int64_t row) const {
    const char* in = static_cast<const char*>(kernelPointer(in_address));
    char* values = static_cast<char*>(kernelPointer(value_address));
    char* indices = static_cast<char*>(kernelPointer(index_address));
    const auto move = [&](const Dimension& dim, int64_t at) {
      in += at * dim.in_stride;
      if (values) values += at * dim.value_stride;
      indices += at * dim.index_stride;
    };
    move(kept[0], first);
    for (size_t i = 1; i < kept.size(); ++i) {
      move(kept[i], row % kept[i].size);
      row /= kept[i].size;
    }

    BlockBuffer buffer;
    alignas(64) char best[kBlockSize * 8];
    int64_t position[kBlockSize];
    const int64_t count = std::min(width, kept[0].size - first);
    if (width > 1) {
      for (int64_t i = 0; i < size; ++i) {
        const char* packed =
            loader.load(buffer, in + i * stride, {kept[0].in_stride, 0}, {count, 1});
        block.across(packed, count, i, best, position);
      }
    } else {
      for (int64_t i = 0; i < size; i += kBlockSize) {
        const int64_t part = std::min(kBlockSize, size - i);
        const char* packed = loader.load(buffer, in + i * stride, {stride, 0}, {part, 1});
        block.along(packed, part, i, best, position);
      }
    }
    if (values) {
      value_storer.store(values, {kept[0].value_stride, 0}, best, buffer.scratch, {count, 1});
    }
    for (int64_t i = 0; i < count; ++i) {
      *reinterpret_cast<int64_t*>(indices + i * kept[0].index_stride) = position[i];
    }
  }
};

// Reduces `dim` of `self`; `values` may be undefined. The outputs have `dim` with size 1, or not at
// all.
void argReduce(const char* name, const ArgBlock& block, const at::Tensor& self, int64_t dim,
               const at::Tensor& values, const at::Tensor& indices) {
  if (indices.numel() == 0) return;
  ArgReduceLaunch d;
  d.block = block;
  d.loader = Loader(self.scalar_type(), block.type);
  d.in_address = self.data_ptr();
  d.index_address = indices.data_ptr();
  if (values.defined()) {
    d.value_storer = Storer(values.scalar_type(), block.type);
    d.value_address = values.data_ptr();
  }
  if (self.dim() > 0) {
    d.size = self.size(dim);
    d.stride = self.stride(dim) * self.element_size();
  }
  const bool keepdim = indices.dim() == self.dim();
  for (int64_t i = self.dim() - 1; i >= 0; --i) {
    if (i == dim || self.size(i) == 1) continue;
    const int64_t at = keepdim || i < dim ? i : i - 1;
    d.kept.push_back({self.size(i), self.stride(i) * self.element_size(),
                      values.defined() ? values.stride(at) * values.element_size() : 0,
                      indices.stride(at) * indices.element_size()});
  }
  if (d.kept.empty()) d.kept.push_back({1, 0, 0, 0});
  launch(currentStream(self.device().index()), name, std::move(d));
}

template <bool kLargest>
void argExtremum(const char* name, const at::Tensor& self, std::optional<int64_t> dim,
                 const at::Tensor& out) {
  const ArgBlock block = argBlock<kLargest>(self.scalar_type(), name);
  if (dim) {
    argReduce(name, block, self, at::maybe_wrap_dim(*dim, self.dim()), at::Tensor(), out);
  } else {
    // Over all elements in logical order: a copy if that isn't the order of memory.
    argReduce(name, block, self.reshape({-1}), 0, at::Tensor(), out.as_strided({}, {}));
  }
}

template <bool kLargest>
void extremumAlongKernel(const at::Tensor& values, const at::Tensor& indices,
                         const at::Tensor& self, int64_t dim, bool keepdim) {
  const char* name = kLargest ? "max_cpu" : "min_cpu";
  argReduce(name, argBlock<kLargest>(self.scalar_type(), name), self,
            at::maybe_wrap_dim(dim, self.dim()), values, indices);
}

}  // namespace

void ArgmaxOut::impl(const at::Tensor& self, std::optional<int64_t> dim, bool keepdim,
                     const at::Tensor& out) {
  argExtremum<true>("argmax_cpu", self, dim, out);
}

void ArgminOut::impl(const at::Tensor& self, std::optional<int64_t> dim, bool keepdim,
                     const at::Tensor& out) {
  argExtremum<false>("argmin_cpu", self, dim, out);
}

}  // namespace torch_accel

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(max_stub, &torch_accel::extremumAlongKernel<true>)
REGISTER_PRIVATEUSE1_DISPATCH(min_stub, &torch_accel::extremumAlongKernel<false>)

}  // namespace at::native
