// Stand-ins for the arguments of a call: meta or CPU tensors, for asking torch about the call.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "aten/GenericOp.h"

namespace torch_accel::generic {

// Meta or CPU tensors like the arguments, sharing storage as they do; the CPU's hold ones
// (floating dtypes) and zeros (the others), the values that suit most operators.
class StandIns {
 public:
  StandIns(const ParsedCall& call, c10::DeviceType type);

  // The stack of a call with the stand-ins in place of the tensors.
  Stack makeStack(const Stack& stack) const;

  const at::Tensor& tensor(size_t slot) const { return tensors_[slot]; }
  // An argument is conjugated or negated.
  bool lazyBits() const { return lazy_bits_; }

  // The first slot with this TensorImpl, or with this storage; -1 if there is none.
  int slotOf(const at::Tensor& tensor) const {
    return find([&](const at::Tensor& t) { return t.is_same(tensor); });
  }
  int slotSharing(const at::Tensor& tensor) const {
    if (!tensor.has_storage() || tensor.device() != device_) return -1;
    return find([&](const at::Tensor& t) { return t.is_alias_of(tensor); });
  }

 private:
  template <class T>
  c10::List<T> remake(const c10::List<T>& list, size_t argument) const {
    c10::List<T> copy = list.copy();
    for (size_t i = 0; i < call_.slots.size(); ++i) {
      const Slot& slot = call_.slots[i];
      if (slot.argument == static_cast<int16_t>(argument)) copy.set(slot.item, T(tensors_[i]));
    }
    return copy;
  }

  template <class F>
  int find(F&& f) const {
    const auto it = std::find_if(tensors_.begin(), tensors_.end(), f);
    return it == tensors_.end() ? -1 : static_cast<int>(it - tensors_.begin());
  }

  at::Tensor make(const at::Tensor& device_tensor);

  const ParsedCall& call_;
  const c10::Device device_;
  std::vector<at::Tensor> tensors_;
  bool lazy_bits_ = false;
  struct Shared {
    int users = 0;
    c10::Storage stand_in;
  };
  std::unordered_map<const c10::StorageImpl*, Shared> storages_;
};

// Tries the CPU kernel on made-up values. False if a first call with such arguments must fail:
// shape functions know nothing of dtypes that the kernel lacks, and many do not look for overlaps.
bool kernelTakes(const ParsedCall& call, const Stack& stack);

}  // namespace torch_accel::generic
