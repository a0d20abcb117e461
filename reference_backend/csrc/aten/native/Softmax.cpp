// Softmax over any dimension: panels of a few neighbouring columns, each column one softmax, are
// read into a buffer of the compute type, worked on there, and written back.
#include "aten/native/Vectorize.h"
//
#include "aten/native/Softmax.h"

#include <ATen/Parallel.h>
#include <ATen/WrapDimUtils.h>

#include <memory>

#include "aten/native/Lanes.h"
#include "aten/native/Loader.h"
#include "aten/native/Types.h"
#include "aten/native/VectorMath.h"
#include "runtime/Launch.h"
#include "runtime/Stream.h"

namespace torch_accel {
namespace {

// ---- one row (a panel of width 1)
// ----------------------------------------------------------------

// The largest number of a row, NaN apart.
template <class T>
ACCEL_INLINE inline T maximumOf(const T* row, int64_t size) {
  T lanes[4 * 32 / sizeof(T)];
  int lane_count;
  reduceLanes(row, size, lanes, lane_count,
              [](auto a, auto b) ACCEL_INLINE { return static_cast<decltype(a)>(b > a ? b : a); });
  T largest = -std::numeric_limits<T>::infinity();
  for (int lane = 0; lane < lane_count; ++lane) {
    largest = lanes[lane] > largest ? lanes[lane] : largest;
  }
  return largest;
}

// Sum of term(i).
template <class T, class Term>
ACCEL_INLINE inline T sumOfTerms(int64_t size, Term term) {
  double total = 0;
  for (int64_t i = 0; i < size; i += 512) {
    const int64_t count = std::min<int64_t>(512, size - i);
    T terms[512];
    for (int64_t j = 0; j < count; ++j) terms[j] = term(i + j);
    total += sumOf<double>(terms, count);
  }
  return static_cast<T>(total);
}

template <class T, bool kLog>
ACCEL_VECTORIZE void forwardRow(T* row, int64_t size) {
  // A NaN in the row needs no care: exp() carries it into the sum.
  const T largest = maximumOf(row, size);
  if constexpr (kLog) {
    const T sum =
        sumOfTerms<T>(size, [&](int64_t i) ACCEL_INLINE { return vmath::exp(row[i] - largest); });
    const T log_sum = std::log(sum);
    for (int64_t i = 0; i < size; ++i) row[i] = (row[i] - largest) - log_sum;
  } else {
    for (int64_t i = 0; i < size; ++i) row[i] = vmath::exp(row[i] - largest);
    const T sum = static_cast<T>(sumOf<double>(row, size));
    for (int64_t i = 0; i < size; ++i) row[i] /= sum;
  }
}

// The gradient's row becomes the input's gradient.
template <class T, bool kLog>
ACCEL_VECTORIZE void backwardRow(T* grad, const T* output, int64_t size) {
  if constexpr (kLog) {
    const T sum = static_cast<T>(sumOf<double>(grad, size));
    for (int64_t i = 0; i < size; ++i) grad[i] -= vmath::exp(output[i]) * sum;
  } else {
    const T sum = sumOfTerms<T>(size, [&](int64_t i) ACCEL_INLINE { return grad[i] * output[i]; });
    for (int64_t i = 0; i < size; ++i) grad[i] = (grad[i] - sum) * output[i];
  }
}

// ---- a panel of `width` columns
// ------------------------------------------------------------------

constexpr int64_t kMaxWidth = 64;

template <class T, bool kLog>
ACCEL_VECTORIZE void forwardPanel(T* panel, int64_t size, int64_t width) {
  T largest[kMaxWidth];
  double sum[kMaxWidth];
  for (int64_t c = 0; c < width; ++c) {
    largest[c] = -std::numeric_limits<T>::infinity();
    sum[c] = 0;
  }
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t c = 0; c < width; ++c) {
      const T value = panel[i * width + c];
      largest[c] = value > largest[c] ? value : largest[c];
    }
  }
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t c = 0; c < width; ++c) {
      const T e = vmath::exp(panel[i * width + c] - largest[c]);
      sum[c] += static_cast<double>(e);
      if constexpr (!kLog) panel[i * width + c] = e;
    }
  }
  T last[kMaxWidth];
  for (int64_t c = 0; c < width; ++c) {
    last[c] = kLog ? static_cast<T>(std::log(sum[c])) : static_cast<T>(sum[c]);
  }
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t c = 0; c < width; ++c) {
      T& value = panel[i * width + c];
      value = kLog ? (value - largest[c]) - last[c] : value / last[c];
    }
  }
}

template <class T, bool kLog>
ACCEL_VECTORIZE void backwardPanel(T* grad, const T* output, int64_t size, int64_t width) {
  double sum[kMaxWidth] = {};
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t c = 0; c < width; ++c) {
      const int64_t at = i * width + c;
      sum[c] += static_cast<double>(kLog ? grad[at] : grad[at] * output[at]);
    }
  }
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t c = 0; c < width; ++c) {
      const int64_t at = i * width + c;
      const T total = static_cast<T>(sum[c]);
      grad[at] = kLog ? grad[at] - vmath::exp(output[at]) * total : (grad[at] - total) * output[at];
    }
  }
}

// Works on a panel in place; `output` is the second input of a backward, else null.
using PanelFn = void (*)(char* panel, const char* output, int64_t size, int64_t width);

template <class T, bool kLog, bool kBackward>
void runPanel(char* panel, const char* output, int64_t size, int64_t width) {
  auto* values = reinterpret_cast<T*>(panel);
  if constexpr (kBackward) {
    const auto* outputs = reinterpret_cast<const T*>(output);
    width == 1 ? backwardRow<T, kLog>(values, outputs, size)
               : backwardPanel<T, kLog>(values, outputs, size, width);
  } else {
    width == 1 ? forwardRow<T, kLog>(values, size) : forwardPanel<T, kLog>(values, size, width);
  }
}

struct Operand {
  void* address = nullptr;
  Loader loader;
  Storer storer;
  int64_t stride = 0;  // of the softmax dimension; in bytes, like the others
  c10::SmallVector<int64_t, 5> strides;
};

struct SoftmaxLaunch {
  PanelFn fn = nullptr;
  int64_t compute_size = 0;
  int64_t size = 1;                    // of the softmax dimension
  c10::SmallVector<int64_t, 5> shape;  // of the others, the innermost first, never empty
  int inputs = 1;
  Operand in[2], out;

  void operator()() const {
    // Neighbouring columns share memory only if the softmax dimension isn't the nearest itself.
    const bool rows = std::abs(in[0].stride) <= std::abs(in[0].strides[0]) || shape[0] == 1;
    const int64_t width =
        rows ? 1 : std::min({kMaxWidth, shape[0], std::max<int64_t>(8, 32768 / size)});
    const int64_t panels_per_row = (shape[0] + width - 1) / width;
    int64_t panels = panels_per_row;
    for (size_t i = 1; i < shape.size(); ++i) panels *= shape[i];
    at::parallel_for(0, panels, std::max<int64_t>(1, kGrain / (width * size)),
                     [&](int64_t begin, int64_t end) {
                       const auto bytes = static_cast<size_t>(width * size * compute_size);
                       std::unique_ptr<char[]> memory(new char[inputs * bytes]);
                       for (int64_t panel = begin; panel < end; ++panel) {
                         const int64_t first = panel % panels_per_row * width;
                         runOne(memory.get(), memory.get() + bytes, first,
                                std::min(width, shape[0] - first), panel / panels_per_row);
                       }
                     });
  }

 private:
  int64_t offset(const Operand& operand, int64_t first, int64_t row) const {
    int64_t bytes = first * operand.strides[0];
    for (size_t i = 1; i < shape.size(); ++i) {
      bytes += row % shape[i] * operand.strides[i];
      row /= shape[i];
    }
    return bytes;
  }

  void runOne(char* panel, char* second, int64_t first, int64_t width, int64_t row) const {
    BlockBuffer buffer;
    read(buffer, panel, in[0], first, width, row);
    if (inputs == 2) read(buffer, second, in[1], first, width, row);
    fn(panel, second, size, width);
    char* target = static_cast<char*>(kernelPointer(out.address)) + offset(out, first, row);
    eachPiece(out, width, [&](int64_t at, Strides2d strides, Rectangle piece) {
      out.storer.store(target + at * out.stride, strides, panel + at * width * compute_size,
                       buffer.scratch, piece);
    });
  }

  void read(BlockBuffer& buffer, char* panel, const Operand& operand, int64_t first, int64_t width,
            int64_t row) const {
    const char* source =
        static_cast<const char*>(kernelPointer(operand.address)) + offset(operand, first, row);
    eachPiece(operand, width, [&](int64_t at, Strides2d strides, Rectangle piece) {
      const char* values =
          operand.loader.load(buffer, source + at * operand.stride, strides, piece);
      std::memcpy(panel + at * width * compute_size, values,
                  piece.columns * piece.rows * compute_size);
    });
  }

  // The panel in pieces of at most kBlockSize elements, from element `at` of the softmax dimension
  // on.
  template <class F>
  void eachPiece(const Operand& operand, int64_t width, F f) const {
    const int64_t step = kBlockSize / width;
    for (int64_t at = 0; at < size; at += step) {
      const int64_t part = std::min(step, size - at);
      if (width == 1) {
        f(at, Strides2d{operand.stride, 0}, Rectangle{part, 1});
      } else {
        f(at, Strides2d{operand.strides[0], operand.stride}, Rectangle{width, part});
      }
    }
  }
};

Operand describe(const at::Tensor& tensor, int64_t dim, c10::ScalarType type, bool output) {
  Operand operand;
  operand.address = tensor.data_ptr();
  if (output) {
    operand.storer = Storer(tensor.scalar_type(), type);
  } else {
    operand.loader = Loader(tensor.scalar_type(), type);
  }
  const int64_t bytes = tensor.element_size();
  operand.stride = tensor.dim() ? tensor.stride(dim) * bytes : bytes;
  for (int64_t i = tensor.dim() - 1; i >= 0; --i) {
    if (i != dim) operand.strides.push_back(tensor.stride(i) * bytes);
  }
  if (operand.strides.empty()) operand.strides.push_back(0);
  return operand;
}

template <bool kLog, bool kBackward>
void softmax(const char* name, const at::Tensor& first, const at::Tensor& second, int64_t dim,
             const at::Tensor& out) {
  SoftmaxLaunch d;
  c10::ScalarType type = computeDtype(first.scalar_type());
  d.fn = selectType(first.scalar_type(), name, kFloatingTypes, [](auto tag) -> PanelFn {
    return &runPanel<typename decltype(tag)::type, kLog, kBackward>;
  });
  if (first.numel() == 0) return;
  dim = at::maybe_wrap_dim(dim, first.dim());
  d.compute_size = static_cast<int64_t>(c10::elementSize(type));
  d.size = first.dim() ? first.size(dim) : 1;
  for (int64_t i = first.dim() - 1; i >= 0; --i) {
    if (i != dim) d.shape.push_back(first.size(i));
  }
  if (d.shape.empty()) d.shape.push_back(1);
  d.in[0] = describe(first, dim, type, false);
  if (kBackward) {
    d.inputs = 2;
    d.in[1] = describe(second, dim, type, false);
  }
  d.out = describe(out, dim, type, true);
  launch(currentStream(first.device().index()), name, std::move(d));
}

}  // namespace

void SoftmaxOut::impl(const at::Tensor& self, int64_t dim, bool, const at::Tensor& out) {
  softmax<false, false>("softmax_lastdim_kernel_impl", self, self, dim, out);
}
void LogSoftmaxOut::impl(const at::Tensor& self, int64_t dim, bool, const at::Tensor& out) {
  softmax<true, false>("log_softmax_lastdim_kernel_impl", self, self, dim, out);
}
void SoftmaxBackwardOut::impl(const at::Tensor& grad, const at::Tensor& output, int64_t dim,
                              c10::ScalarType, const at::Tensor& grad_input) {
  softmax<false, true>("softmax_backward_lastdim_kernel_impl", grad, output, dim, grad_input);
}
void LogSoftmaxBackwardOut::impl(const at::Tensor& grad, const at::Tensor& output, int64_t dim,
                                 c10::ScalarType, const at::Tensor& grad_input) {
  softmax<true, true>("log_softmax_backward_lastdim_kernel_impl", grad, output, dim, grad_input);
}

}  // namespace torch_accel
