// resize_ and set_: they change what a tensor looks at.
#include "aten/Resize.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "runtime/Allocator.h"
#include "runtime/Storage.h"

namespace torch_accel {
namespace {

void growStorage(c10::TensorImpl* tensor, size_t bytes) {
  // No elements, no memory: the offset alone must not make the storage grow.
  if (tensor->numel() == 0) return;
  c10::StorageImpl* storage = tensor->unsafe_storage().unsafeGetStorageImpl();
  TORCH_INTERNAL_ASSERT(storage, "a strided tensor without a storage");
  if (bytes > storage->nbytes()) resizeStorage(storage, bytes);
}

at::Tensor& setStorage(at::Tensor& self, at::Storage source, int64_t storage_offset,
                       at::IntArrayRef sizes, at::IntArrayRef strides) {
  at::native::checkSetStorage<int64_t>(self, std::move(source), storage_offset, sizes, strides);
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(storage_offset);
  // As elsewhere in torch, "no strides" is a null pointer, not an empty list.
  resizeTensor(impl, sizes, strides.data() ? std::make_optional(strides) : std::nullopt);
  return self;
}

at::Tensor& setSourceStorage(at::Tensor& self, at::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return setStorage(self, std::move(source), 0, {elements}, {});
}

at::Tensor& setSourceTensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return setStorage(self, source.storage(), source.storage_offset(), source.sizes(),
                    source.strides());
}

at::Tensor& setEmpty(at::Tensor& self) {
  at::Storage storage(at::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, self.device()),
                      deviceAllocator(), /*resizable=*/true);
  return setStorage(self, std::move(storage), 0, {0}, {});
}

}  // namespace

void resizeTensor(c10::TensorImpl* tensor, at::IntArrayRef sizes,
                  std::optional<at::IntArrayRef> strides) {
  if (tensor->sizes() == sizes && (!strides || tensor->strides() == *strides)) return;
  const size_t itemsize = tensor->dtype().itemsize();
  const auto offset = static_cast<size_t>(tensor->storage_offset());
  size_t bytes = 0;
  if (strides) {
    bytes = at::detail::computeStorageNbytes(sizes, *strides, itemsize, offset);
    tensor->set_sizes_and_strides(sizes, *strides);
  } else {
    at::detail::check_size_nonnegative(sizes);
    bytes = at::detail::computeStorageNbytesContiguous(sizes, itemsize, offset);
    tensor->set_sizes_contiguous(sizes);
  }
  growStorage(tensor, bytes);
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef sizes,
                         std::optional<at::MemoryFormat> memory_format) {
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  const size_t old_bytes = impl->unsafe_storage().nbytes();
  resizeTensor(impl, sizes);
  if (memory_format.has_value()) {
    TORCH_CHECK(*memory_format != at::MemoryFormat::Preserve, "Unsupported memory format ",
                *memory_format);
    impl->empty_tensor_restride(*memory_format);
  }
  if (C10_UNLIKELY(at::globalContext().deterministicAlgorithms() &&
                   at::globalContext().deterministicFillUninitializedMemory())) {
    at::native::fill_resize_deterministic_(self, static_cast<int64_t>(old_bytes));
  }
  return self;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("resize_", TORCH_FN(resize));
  library.impl("set_", TORCH_FN(setEmpty));
  library.impl("set_.source_Storage", TORCH_FN(setSourceStorage));
  library.impl("set_.source_Storage_storage_offset", TORCH_FN(setStorage));
  library.impl("set_.source_Tensor", TORCH_FN(setSourceTensor));
}

}  // namespace torch_accel
