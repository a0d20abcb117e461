// index_select, and the backward of embedding (which is an index_select itself).
#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/Parallel.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include <memory>

#include "aten/native/Slices.h"
#include "aten/native/Structured.h"
#include "runtime/Launch.h"
#include "runtime/Stream.h"

namespace torch_accel {
namespace {

// A vector of int32 or int64 positions on the device.
struct Positions {
  const void* address = nullptr;
  int64_t count = 0, stride = 0;  // in elements
  bool wide = true;

  explicit Positions(const at::Tensor& index)
      : address(index.data_ptr()),
        count(index.numel()),
        stride(index.dim() ? index.stride(0) : 0),
        wide(index.scalar_type() == at::kLong) {}

  // For kernels.
  int64_t operator[](int64_t i) const {
    const void* memory = kernelPointer(address);
    return wide ? static_cast<const int64_t*>(memory)[i * stride]
                : static_cast<const int32_t*>(memory)[i * stride];
  }
};

struct IndexSelectLaunch {
  SliceCopy slice;
  Positions index;
  const void* from;
  void* to;
  int64_t size, from_stride, to_stride;  // of the indexed dimension; strides in bytes
  int64_t slice_numel;

  void operator()() const {
    const char* source = static_cast<const char*>(kernelPointer(from));
    char* target = static_cast<char*>(kernelPointer(to));
    for (int64_t i = 0; i < index.count; ++i) {
      TORCH_CHECK_INDEX(index[i] >= 0 && index[i] < size, "index out of range in self");
    }
    const int64_t grain = std::max<int64_t>(1, kGrain / slice_numel);
    at::parallel_for(0, index.count, grain, [&](int64_t begin, int64_t end) {
      BlockBuffer buffer;
      for (int64_t i = begin; i < end; ++i) {
        slice.run(buffer, target + i * to_stride, source + index[i] * from_stride);
      }
    });
  }
};

void checkIndexSelect(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  TORCH_CHECK(self.device() == index.device(),
              "Expected all tensors to be on the same device, but found at least two devices, ",
              self.device(), " and ", index.device(),
              "! (when checking argument for argument index in method index_select)");
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "index_select(): Expected dtype int32 or int64 for index");
  if (self.dim() == 0) {
    TORCH_CHECK(index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ",
                index.numel(), " value(s)");
  } else if (index.numel()) {
    TORCH_CHECK(self.size(dim) > 0, "index_select(): self indexing axis dim should be positive");
  }
}

c10::DimVector selectedSizes(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  c10::DimVector sizes(self.sizes());
  if (self.dim()) sizes[dim] = index.numel();
  return sizes;
}

void select(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& out) {
  if (out.numel() == 0) return;
  SliceCopy slice(out.scalar_type(), self.scalar_type());
  int64_t slice_numel = 1;
  for (int64_t i = self.dim() - 1; i >= 0; --i) {
    if (i == dim) continue;
    slice.addDimension(self.size(i), out.stride(i), self.stride(i));
    slice_numel *= self.size(i);
  }
  slice.finish();
  const bool scalar = self.dim() == 0;
  IndexSelectLaunch d{slice,
                      Positions(index),
                      self.data_ptr(),
                      out.data_ptr(),
                      scalar ? 1 : self.size(dim),
                      scalar ? 0 : self.stride(dim) * self.element_size(),
                      scalar ? 0 : out.stride(dim) * out.element_size(),
                      slice_numel};
  launch(currentStream(self.device().index()), "index_select", std::move(d));
}

at::Tensor indexSelect(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  const c10::DeviceGuard guard(self.device());
  dim = at::maybe_wrap_dim(dim, self.dim());
  checkIndexSelect(self, dim, index);
  const at::Tensor out = newOutput(selectedSizes(self, dim, index), {}, self.options());
  select(self, dim, index, out);
  return out;
}

at::Tensor& indexSelectOut(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                           at::Tensor& out) {
  const c10::DeviceGuard guard(self.device());
  dim = at::maybe_wrap_dim(dim, self.dim());
  checkIndexSelect(self, dim, index);
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "index_select(): self and result must have the same scalar type");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, index);
  at::native::resize_output(out, selectedSizes(self, dim, index));
  select(self, dim, index, out);
  return out;
}

// Adds each row of the gradient to the weight's row that it came from. Sums are kept in the compute
// type and written once.
template <class T>
struct EmbeddingBackwardLaunch {
  Positions index;
  const void* grad;
  void* out;
  int64_t rows, columns, padding_row;
  bool scale_by_frequency;

  void operator()() const {
    using C = ComputeType<T>;
    const T* source = static_cast<const T*>(kernelPointer(grad));
    T* target = static_cast<T*>(kernelPointer(out));
    std::unique_ptr<C[]> sums(new C[rows * columns]());
    std::vector<int64_t> frequency(scale_by_frequency ? rows : 0);
    for (int64_t i = 0; i < index.count; ++i) {
      const int64_t row = index[i];
      if (row == padding_row) continue;
      TORCH_CHECK_INDEX(row >= 0 && row < rows, "index out of range in self");
      if (scale_by_frequency) ++frequency[row];
    }
    for (int64_t i = 0; i < index.count; ++i) {
      const int64_t row = index[i];
      if (row == padding_row) continue;
      C* sum = sums.get() + row * columns;
      const T* values = source + i * columns;
      if (scale_by_frequency) {
        const auto scale = C(1) / C(static_cast<double>(frequency[row]));
        for (int64_t j = 0; j < columns; ++j) sum[j] += static_cast<C>(values[j]) * scale;
      } else {
        for (int64_t j = 0; j < columns; ++j) sum[j] += static_cast<C>(values[j]);
      }
    }
    for (int64_t i = 0; i < rows * columns; ++i) target[i] = static_cast<T>(sums[i]);
  }
};

at::Tensor embeddingDenseBackward(const at::Tensor& grad, const at::Tensor& indices,
                                  int64_t num_weights, int64_t padding_idx,
                                  bool scale_grad_by_freq) {
  const c10::DeviceGuard guard(grad.device());
  TORCH_CHECK(grad.device() == indices.device(),
              "Expected all tensors to be on the same device, but found at least two devices, ",
              grad.device(), " and ", indices.device(), "!");
  TORCH_CHECK(indices.scalar_type() == at::kLong || indices.scalar_type() == at::kInt,
              "Expected tensor for argument #2 'indices' to have one of the following scalar "
              "types: Long, Int; but got ",
              indices.toString(), " instead (while checking arguments for embedding_backward)");
  const int64_t columns = grad.size(-1);
  const at::Tensor rows = grad.contiguous().view({indices.numel(), columns});
  const at::Tensor out = newOutput({num_weights, columns}, {}, grad.options());
  const at::Tensor flat = indices.contiguous().view({-1});
  if (out.numel() == 0) return out;
  const auto stream = currentStream(grad.device().index());
  const auto queue = [&]<class... Ts>(TypeList<Ts...>) {
    return ((grad.scalar_type() == dtypeOf<Ts> &&
             (launch(stream, "embedding_dense_backward",
                     EmbeddingBackwardLaunch<Ts>{Positions(flat), rows.data_ptr(), out.data_ptr(),
                                                 num_weights, columns, padding_idx,
                                                 scale_grad_by_freq}),
              true)) ||
            ...);
  };
  TORCH_CHECK_NOT_IMPLEMENTED(queue(kFloatingTypes + kComplexTypes + kIntegerTypes),
                              "\"embedding_backward\" not implemented for '",
                              c10::toString(grad.scalar_type()), "'");
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("index_select", &indexSelect);
  m.impl("index_select.out", &indexSelectOut);
  m.impl("embedding_dense_backward", &embeddingDenseBackward);
}

}  // namespace
}  // namespace torch_accel
