// From TensorIterator to launch descriptor, and the loops around an operator's block.
#include "aten/native/Vectorize.h"
//
#include "aten/native/Elementwise.h"

#include <ATen/Parallel.h>

#include "aten/native/Convert.h"
#include "runtime/Launch.h"
#include "runtime/Stream.h"

namespace torch_accel {
namespace {

constexpr int kMaxOperands = kMaxInputs + 1;
// Values converted at a time: buffers of all operands stay in the first-level cache.
constexpr int64_t kBlockSize = 512;
// Elements worth a second thread.
constexpr int64_t kGrain = 32768;

struct Operand {
  void* address = nullptr;  // on the device; unused for a host scalar
  bool immediate = false;   // the value is here
  alignas(16) std::array<char, 16> value;
  int64_t element_size = 0;
  CopyFn copy = nullptr;
  ConvertFn convert = nullptr;  // to or from the compute type; null if it is the same
  c10::ScalarType round_to = c10::ScalarType::Undefined;
};

// The launch descriptor. strides[operand * ndim + dim], in bytes; the output is operand 0.
struct ElementwiseLaunch {
  Block block;
  int operands = 0;
  int ndim = 0;
  c10::SmallVector<int64_t, 6> shape;
  c10::SmallVector<int64_t, 24> strides;
  std::array<Operand, kMaxOperands> operand;

  void operator()();

 private:
  class Range;
};

using Pointers = std::array<char*, kMaxOperands>;

// One thread's part of the work, with its buffers.
class ElementwiseLaunch::Range {
 public:
  Range(const ElementwiseLaunch& launch, const Pointers& base) : launch_(launch), base_(base) {}

  // Elements [begin, end) of dimension 0 in rows [first, last) of the other dimensions.
  void run(int64_t begin, int64_t end, int64_t first, int64_t last) {
    const int64_t columns = end - begin;
    const int64_t inner_rows = launch_.ndim > 1 ? launch_.shape[1] : 1;
    for (int64_t row = first; row < last;) {
      const int64_t rows = std::min(last - row, inner_rows - row % inner_rows);
      Pointers at = base_;
      for (int k = 0; k < launch_.operands; ++k) at[k] += offset(k, begin, row);
      runRows(at, columns, rows);
      row += rows;
    }
  }

 private:
  int64_t stride(int operand, int dim) const {
    return dim < launch_.ndim ? launch_.strides[operand * launch_.ndim + dim] : 0;
  }

  int64_t offset(int operand, int64_t column, int64_t row) const {
    int64_t bytes = column * stride(operand, 0);
    for (int dim = 1; dim < launch_.ndim; ++dim) {
      bytes += row % launch_.shape[dim] * stride(operand, dim);
      row /= launch_.shape[dim];
    }
    return bytes;
  }

  // A rectangle, in pieces: many short rows at once, or parts of one long row.
  void runRows(Pointers at, int64_t columns, int64_t rows) {
    const bool packed = allDirect(columns, rows);
    const int64_t step = packed ? rows : std::max<int64_t>(1, kBlockSize / columns);
    for (int64_t row = 0; row < rows; row += step) {
      const int64_t piece_rows = std::min(step, rows - row);
      const bool direct = packed || allDirect(columns, piece_rows);
      const int64_t width = direct ? columns : std::min(columns, kBlockSize);
      for (int64_t column = 0; column < columns; column += width) {
        Pointers piece = at;
        for (int k = 0; k < launch_.operands; ++k) piece[k] += column * stride(k, 0);
        runPiece(piece, {std::min(width, columns - column), piece_rows});
      }
      for (int k = 0; k < launch_.operands; ++k) at[k] += step * stride(k, 1);
    }
  }

  // True if the operator's loop can work in the operand's own memory.
  bool isDirect(int k, int64_t columns, int64_t rows) const {
    const Operand& operand = launch_.operand[k];
    return !operand.convert && (stride(k, 0) == operand.element_size || columns == 1) &&
           (rows == 1 || stride(k, 1) == columns * operand.element_size);
  }

  bool allDirect(int64_t columns, int64_t rows) const {
    for (int k = 0; k < launch_.operands; ++k) {
      if (!isDirect(k, columns, rows)) return false;
    }
    return true;
  }

  void runPiece(const Pointers& at, Rectangle size) {
    const int64_t count = size.columns * size.rows;
    std::array<const char*, kMaxInputs> in{};
    for (int k = 1; k < launch_.operands; ++k) {
      in[k - 1] = isDirect(k, size.columns, size.rows) ? at[k] : gather(k, at[k], size);
    }
    const bool direct = isDirect(0, size.columns, size.rows);
    launch_.block.fn(launch_.block.op.data(), direct ? at[0] : buffer_[0], in.data(), count);
    if (!direct) scatter(at[0], size);
  }

  const char* gather(int k, const char* source, Rectangle size) {
    const Operand& operand = launch_.operand[k];
    // A broadcast operand often meets the same rectangle again.
    Cached& cached = cached_[k];
    if (cached.source == source && cached.columns == size.columns && cached.rows >= size.rows) {
      return buffer_[k];
    }
    char* packed = operand.convert ? scratch_ : buffer_[k];
    const int64_t count = size.columns * size.rows;
    const Strides2d from{stride(k, 0), stride(k, 1)};
    if (operand.convert && isPacked(from, size, operand.element_size)) {
      operand.convert(buffer_[k], source, count);
    } else {
      operand.copy(packed, {operand.element_size, size.columns * operand.element_size}, source,
                   from, size);
      if (operand.convert) operand.convert(buffer_[k], packed, count);
    }
    roundTo(operand.round_to, buffer_[k], count);
    cached = {source, size.columns, size.rows};
    return buffer_[k];
  }

  void scatter(char* target, Rectangle size) {
    const Operand& operand = launch_.operand[0];
    const int64_t count = size.columns * size.rows;
    const Strides2d to{stride(0, 0), stride(0, 1)};
    if (!operand.convert) {
      operand.copy(target, to, buffer_[0],
                   {operand.element_size, size.columns * operand.element_size}, size);
    } else if (isPacked(to, size, operand.element_size)) {
      operand.convert(target, buffer_[0], count);
    } else {
      operand.convert(scratch_, buffer_[0], count);
      operand.copy(target, to, scratch_,
                   {operand.element_size, size.columns * operand.element_size}, size);
    }
  }

  static bool isPacked(Strides2d strides, Rectangle size, int64_t element_size) {
    return (strides.column == element_size || size.columns == 1) &&
           (size.rows == 1 || strides.row == size.columns * element_size);
  }

  struct Cached {
    const char* source = nullptr;
    int64_t columns = 0, rows = 0;
  };

  const ElementwiseLaunch& launch_;
  const Pointers base_;
  std::array<Cached, kMaxOperands> cached_;
  alignas(64) char buffer_[kMaxOperands][kBlockSize * 16];
  alignas(64) char scratch_[kBlockSize * 16];
};

void ElementwiseLaunch::operator()() {
  Pointers base{};
  for (int k = 0; k < operands; ++k) {
    base[k] = operand[k].immediate ? operand[k].value.data()
                                   : static_cast<char*>(kernelPointer(operand[k].address));
  }
  const int64_t columns = ndim ? shape[0] : 1;
  int64_t rows = 1;
  for (int dim = 1; dim < ndim; ++dim) rows *= shape[dim];
  if (rows == 1) {
    at::parallel_for(0, columns, kGrain,
                     [&](int64_t begin, int64_t end) { Range(*this, base).run(begin, end, 0, 1); });
  } else {
    at::parallel_for(
        0, rows, std::max<int64_t>(1, kGrain / columns),
        [&](int64_t first, int64_t last) { Range(*this, base).run(0, columns, first, last); });
  }
}

Operand describe(const at::TensorIteratorBase& iter, int k, c10::ScalarType compute_type) {
  Operand operand;
  const c10::ScalarType dtype = iter.dtype(k);
  operand.element_size = static_cast<int64_t>(c10::elementSize(dtype));
  operand.copy = copyFunction(operand.element_size);
  if (dtype != compute_type) {
    operand.convert =
        k == 0 ? convertFunction(dtype, compute_type) : convertFunction(compute_type, dtype);
    TORCH_CHECK_NOT_IMPLEMENTED(operand.convert, "no kernel converts between ", dtype, " and ",
                                compute_type);
  }
  operand.address = iter.data_ptr(k);
  if (k > 0 && iter.tensor_base(k).is_cpu()) {
    TORCH_INTERNAL_ASSERT(iter.tensor_base(k).numel() == 1);
    operand.immediate = true;
    std::memcpy(operand.value.data(), operand.address, operand.element_size);
  }
  return operand;
}

}  // namespace

void elementwise(at::TensorIteratorBase& iter, const char* name, const Block& block,
                 Precision precision) {
  TORCH_INTERNAL_ASSERT(iter.noutputs() == 1 && iter.ninputs() == block.inputs);
  if (iter.numel() == 0) return;

  ElementwiseLaunch launch_descriptor;
  ElementwiseLaunch& d = launch_descriptor;
  d.block = block;
  d.operands = iter.ntensors();
  d.ndim = iter.ndim();
  d.shape.assign(iter.shape().begin(), iter.shape().end());
  const auto common = iter.maybe_common_dtype().value_or(c10::ScalarType::Undefined);
  for (int k = 0; k < d.operands; ++k) {
    d.strides.append(iter.strides(k).begin(), iter.strides(k).end());
    d.operand[k] = describe(iter, k, k == 0 ? block.out_type : block.in_types[k - 1]);
    Operand& operand = d.operand[k];
    // A wider input is rounded to the 16-bit common dtype on its way.
    if (k > 0 && iter.dtype(k) != common && computeDtype(common) == block.in_types[k - 1] &&
        !(operand.immediate && precision == Precision::kComputeScalars)) {
      operand.round_to = common;
    }
  }
  launch(currentStream(iter.device(0).index()), name, std::move(launch_descriptor));
}

}  // namespace torch_accel
