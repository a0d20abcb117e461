// The loops around a reduction's own.
#include "aten/native/Vectorize.h"
//
#include "aten/native/Reduce.h"

#include <ATen/Parallel.h>

#include "aten/native/Loader.h"
#include "runtime/Launch.h"
#include "runtime/Stream.h"

namespace torch_accel {
namespace {

struct Dimension {
  int64_t size, in_stride, out_stride;  // strides in bytes; out_stride is 0 if reduced
};
using Dimensions = c10::SmallVector<Dimension, 4>;

int64_t count(const Dimensions& dims, size_t from) {
  int64_t n = 1;
  for (size_t i = from; i < dims.size(); ++i) n *= dims[i].size;
  return n;
}

struct Offsets {
  int64_t in = 0, out = 0;
};

// The place of element `index` of dimensions [from, end).
Offsets place(const Dimensions& dims, size_t from, int64_t index) {
  Offsets offsets;
  for (size_t i = from; i < dims.size(); ++i) {
    const int64_t at = index % dims[i].size;
    index /= dims[i].size;
    offsets.in += at * dims[i].in_stride;
    offsets.out += at * dims[i].out_stride;
  }
  return offsets;
}

// Values reduced to one partial result at a time when a single output takes several threads: fixed,
// so that results don't depend on the number of threads.
constexpr int64_t kPartial = 1 << 16;

struct ReduceLaunch {
  Reduction reduction;
  Loader loader;
  Storer storer;
  void* in_address = nullptr;
  void* out_address = nullptr;
  Dimensions kept, reduced;  // by ascending input stride, never empty
  bool along_rows = false;   // neighbours in memory belong to different outputs

  void operator()() const {
    const char* in = static_cast<const char*>(kernelPointer(in_address));
    char* out = static_cast<char*>(kernelPointer(out_address));
    const int64_t outputs = count(kept, 0), values = count(reduced, 0);
    if (along_rows) {
      const int64_t strips = (kept[0].size + kBlockSize - 1) / kBlockSize * count(kept, 1);
      const int64_t cost = std::min(kBlockSize, kept[0].size) * values;
      at::parallel_for(0, strips, std::max<int64_t>(1, kGrain / cost),
                       [&](int64_t begin, int64_t end) { runStrips(in, out, begin, end); });
    } else if (outputs == 1 && reduced.size() == 1 && values > kPartial) {
      runPartials(in, out);
    } else {
      at::parallel_for(0, outputs, std::max<int64_t>(1, kGrain / values),
                       [&](int64_t begin, int64_t end) { runOutputs(in, out, begin, end); });
    }
  }

 private:
  // Each output by itself, over packed rectangles of its values.
  void runOutputs(const char* in, char* out, int64_t begin, int64_t end) const {
    BlockBuffer buffer;
    alignas(16) char state[kMaxStateSize], result[16], scratch[16];
    for (int64_t index = begin; index < end; ++index) {
      const Offsets at = place(kept, 0, index);
      reduction.init(state, 1);
      reduceOne(buffer, state, in + at.in);
      reduction.finish(result, state, 1, count(reduced, 0));
      storer.store(out + at.out, {0, 0}, result, scratch, {1, 1});
    }
  }

  void reduceOne(BlockBuffer& buffer, char* state, const char* in) const {
    const int64_t columns = reduced[0].size, inner_rows = reduced.size() > 1 ? reduced[1].size : 1;
    const Strides2d strides{reduced[0].in_stride, reduced.size() > 1 ? reduced[1].in_stride : 0};
    const int64_t planes = count(reduced, 2);
    for (int64_t plane = 0; plane < planes; ++plane) {
      const char* start = in + place(reduced, 2, plane).in;
      const int64_t step = std::max<int64_t>(1, kBlockSize / columns);
      for (int64_t row = 0; row < inner_rows; row += step) {
        reduceRow(buffer, state, start + row * strides.row, strides, columns,
                  std::min(step, inner_rows - row));
      }
    }
  }

  void reduceRow(BlockBuffer& buffer, char* state, const char* in, Strides2d strides,
                 int64_t columns, int64_t rows) const {
    for (int64_t column = 0; column < columns; column += kBlockSize) {
      const Rectangle size{std::min(kBlockSize, columns - column), rows};
      const char* values = loader.load(buffer, in + column * strides.column, strides, size);
      reduction.inner(state, values, size.columns * size.rows);
    }
  }

  // A strip of neighbouring outputs at a time, over rows of values.
  void runStrips(const char* in, char* out, int64_t begin, int64_t end) const {
    BlockBuffer buffer;
    alignas(64) char states[kBlockSize * kMaxStateSize];
    alignas(64) char results[kBlockSize * 16];
    const int64_t strips_per_row = (kept[0].size + kBlockSize - 1) / kBlockSize;
    const int64_t values = count(reduced, 0), rows = count(reduced, 1);
    for (int64_t index = begin; index < end; ++index) {
      const int64_t first = index % strips_per_row * kBlockSize;
      const Rectangle strip{std::min(kBlockSize, kept[0].size - first), 1};
      const Offsets at = place(kept, 1, index / strips_per_row);
      const char* source = in + at.in + first * kept[0].in_stride;
      reduction.init(states, strip.columns);
      for (int64_t row = 0; row < rows; ++row) {
        const char* row_source = source + place(reduced, 1, row).in;
        for (int64_t i = 0; i < reduced[0].size; ++i, row_source += reduced[0].in_stride) {
          reduction.outer(states, loader.load(buffer, row_source, {kept[0].in_stride, 0}, strip),
                          strip.columns);
        }
      }
      reduction.finish(results, states, strip.columns, values);
      storer.store(out + at.out + first * kept[0].out_stride, {kept[0].out_stride, 0}, results,
                   buffer.scratch, strip);
    }
  }

  // One output over many values: partial results in parallel, then combined in order.
  void runPartials(const char* in, char* out) const {
    const int64_t values = reduced[0].size, parts = (values + kPartial - 1) / kPartial;
    const Strides2d strides{reduced[0].in_stride, 0};
    std::vector<char> states(parts * kMaxStateSize);
    at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      BlockBuffer buffer;
      for (int64_t part = begin; part < end; ++part) {
        const int64_t first = part * kPartial;
        char* state = states.data() + part * kMaxStateSize;
        reduction.init(state, 1);
        reduceRow(buffer, state, in + first * strides.column, strides,
                  std::min(kPartial, values - first), 1);
      }
    });
    for (int64_t part = 1; part < parts; ++part) {
      reduction.combine(states.data(), states.data() + part * kMaxStateSize);
    }
    alignas(16) char result[16], scratch[16];
    reduction.finish(result, states.data(), 1, values);
    storer.store(out, {0, 0}, result, scratch, {1, 1});
  }
};

}  // namespace

void reduce(at::TensorIteratorBase& iter, const char* name, const Reduction& reduction) {
  ReduceLaunch d;
  d.reduction = reduction;
  d.storer = Storer(iter.dtype(0), reduction.out_type);
  d.loader = Loader(iter.dtype(1), reduction.in_type);
  d.out_address = iter.data_ptr(0);
  d.in_address = iter.data_ptr(1);
  for (int dim = 0; dim < iter.ndim(); ++dim) {
    const Dimension dimension{iter.shape()[dim], iter.strides(1)[dim], iter.strides(0)[dim]};
    if (dimension.size == 1) continue;
    (dimension.out_stride == 0 ? d.reduced : d.kept).push_back(dimension);
  }
  if (d.kept.empty()) d.kept.push_back({1, 0, 0});
  if (d.reduced.empty()) d.reduced.push_back({1, 0, 0});
  // Follow memory, unless rows would be too short to pay.
  constexpr int64_t kShort = 16;
  const bool kept_inside = std::abs(d.kept[0].in_stride) < std::abs(d.reduced[0].in_stride);
  d.along_rows = kept_inside ? d.kept[0].size >= kShort || d.reduced[0].size < kShort
                             : d.reduced[0].size < kShort && d.kept[0].size >= kShort;
  launch(currentStream(iter.device(0).index()), name, std::move(d));
}

}  // namespace torch_accel
