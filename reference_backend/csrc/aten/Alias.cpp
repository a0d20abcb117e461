// See Alias.h.
#include "aten/Alias.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/TensorImpl.h>

#include "accel_driver.h"

namespace torch_accel {
namespace {

void keepMemory(void*) {}  // the deleter of an alias: the memory is the device allocator's

}  // namespace

TensorRecipe TensorRecipe::of(const at::Tensor& device_tensor) {
  TensorRecipe recipe;
  const c10::Storage& storage = device_tensor.storage();
  recipe.storage_address = const_cast<void*>(storage.data());
  recipe.storage_bytes = storage.nbytes();
  recipe.dtype = device_tensor.scalar_type();
  recipe.storage_offset = device_tensor.storage_offset();
  recipe.sizes = device_tensor.sizes();
  recipe.strides = device_tensor.strides();
  recipe.conj = device_tensor.is_conj();
  recipe.neg = device_tensor.is_neg();
  return recipe;
}

at::Tensor AliasMaker::make(const TensorRecipe& recipe) {
  c10::Storage storage;
  if (recipe.storage_address) {
    for (auto& [address, known] : storages_) {
      if (address == recipe.storage_address) storage = known;
    }
  }
  if (!storage) {
    void* memory = accelKernelPointer(recipe.storage_address);
    storage = c10::Storage(c10::Storage::use_byte_size_t(), recipe.storage_bytes,
                           c10::DataPtr(memory, memory, &keepMemory, c10::kCPU),
                           c10::GetCPUAllocator(), /*resizable=*/true);
    storages_.emplace_back(recipe.storage_address, storage);
  } else if (storage.nbytes() < recipe.storage_bytes) {
    storage.set_nbytes(recipe.storage_bytes);
  }
  at::Tensor alias = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(recipe.dtype));
  c10::TensorImpl* impl = alias.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(recipe.sizes, recipe.strides, recipe.storage_offset);
  if (recipe.conj) impl->_set_conj(true);
  if (recipe.neg) impl->_set_neg(true);
  return alias;
}

}  // namespace torch_accel
