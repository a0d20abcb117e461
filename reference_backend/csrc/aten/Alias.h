// CPU tensors over device memory: how kernels that run CPU code see their arguments.
//
// An alias has the sizes, strides, dtype, conj and neg bits of a device tensor, and its memory is
// the one behind the device address. It exists on a worker only. Arguments that share a storage
// share it as aliases, so that overlap and in-place semantics hold.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace torch_accel {

// What is needed to make an alias later, on the worker; holds no tensor.
struct TensorRecipe {
  void* storage_address = nullptr;  // device address of the storage's first byte
  size_t storage_bytes = 0;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  int64_t storage_offset = 0;  // in elements
  c10::SmallVector<int64_t, 5> sizes, strides;
  bool conj = false, neg = false;

  static TensorRecipe of(const at::Tensor& device_tensor);
};

// Makes the aliases of one kernel. Recipes with the same storage address share one StorageImpl; the
// storage is resizable (CPU `out=` kernels may resize), which the caller detects by a moved
// pointer.
class AliasMaker {
 public:
  at::Tensor make(const TensorRecipe& recipe);

 private:
  std::vector<std::pair<void*, c10::Storage>> storages_;
};

}  // namespace torch_accel
