// Reading a call's arguments: devices, the key of its metadata, and recipes for the worker.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/resolve_conj.h>
#include <ATen/ops/resolve_neg.h>
#include <ATen/ops/to_ops.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "aten/GenericOp.h"
#include "runtime/Device.h"

namespace torch_accel::generic {
namespace {

// First words of what the key says of an argument.
enum Tag : uint64_t { kNone = 1, kUndefined, kTensor, kListStart, kValue, kIgnored };

constexpr size_t kLinearSearchLimit = 24;  // tensors; beyond, a hash map finds shared storages

bool isWrapped(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

class Parser {
 public:
  Parser(const OpRecord& record, ParsedCall& call) : record_(record), call_(call) {}

  void parse(Stack& stack) {
    call_.record = &record_;
    word(static_cast<uint64_t>(c10::get_default_dtype_as_scalartype()) |
         (at::globalContext().deterministicAlgorithms() ? 256 : 0));
    const size_t base = stack.size() - record_.size();
    for (size_t i = 0; i < record_.size(); ++i) {
      c10::IValue& value = stack[base + i];
      argument_ = static_cast<int16_t>(i);
      switch (record_.arguments[i].kind) {
        case ArgumentKind::kTensor:
          if (value.isTensor()) {
            add(value.toTensor(), -1);
          } else {
            word(kNone);
          }
          break;
        case ArgumentKind::kTensorList:
        case ArgumentKind::kOptionalTensorList:
          addList(value);
          break;
        case ArgumentKind::kGenerator:
          word(value.isNone() ? kNone : kValue);
          break;
        case ArgumentKind::kOther:
          if (value.isDevice() && call_.device.index() < 0 && value.toDevice().type() == kAccel) {
            call_.device = c10::Device(kAccel, resolveDevice(value.toDevice().index()));
          }
          addValue(value);
          break;
      }
    }
    if (stranger_) raiseTwoDevices();
    if (call_.device.index() < 0) call_.device = c10::Device(kAccel, currentDevice());
  }

  // An argument has no memory: see materializeZeros().
  bool zeroTensors() const { return zero_tensors_; }

 private:
  void word(uint64_t w) { call_.key.push_back(w); }

  void addList(const c10::IValue& value) {
    if (value.isNone()) return word(kNone);
    const auto items = value.toListRef();
    word(kListStart | items.size() << 8);
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].isTensor()) {
        add(items[i].toTensor(), static_cast<int32_t>(i));
      } else {
        word(kNone);
      }
    }
  }

  void add(const at::Tensor& tensor, int32_t item) {
    if (!tensor.defined()) return word(kUndefined);
    const bool on_host = !tensor.device().is_privateuseone();
    if (C10_UNLIKELY(on_host)) {
      const bool fits =
          tensor.device().is_cpu() && tensor.dim() == 0 && !record_.arguments[argument_].written;
      if (!fits && !stranger_) {
        stranger_ = &tensor;
        stranger_argument_ = argument_;
      }
    } else if (call_.device.index() < 0 || !device_seen_) {
      call_.device = tensor.device();
      device_seen_ = true;
    } else if (C10_UNLIKELY(tensor.device() != call_.device) && !stranger_) {
      stranger_ = &tensor;
      stranger_argument_ = argument_;
    }
    zero_tensors_ |= tensor._is_zerotensor();
    const auto here = static_cast<int32_t>(call_.slots.size());
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    const auto [same, shared] = on_host ? std::pair{here, here} : relatives(tensor, here);
    const auto sizes = tensor.sizes();
    const auto strides = tensor.strides();
    word(kTensor | static_cast<uint64_t>(tensor.scalar_type()) << 8 | sizes.size() << 16 |
         (on_host ? 1ull << 32 : 0) | (impl->is_wrapped_number() ? 1ull << 33 : 0) |
         (tensor.is_conj() ? 1ull << 34 : 0) | (tensor.is_neg() ? 1ull << 35 : 0) |
         (same != here ? 1ull << 36 : 0) | (shared != here ? 1ull << 37 : 0));
    for (const int64_t n : sizes) word(static_cast<uint64_t>(n));
    for (const int64_t n : strides) word(static_cast<uint64_t>(n));
    if (shared != here) {
      const at::Tensor& first = *call_.slots[shared].tensor;
      word(static_cast<uint64_t>(same) << 32 | static_cast<uint64_t>(shared));
      word(static_cast<uint64_t>(tensor.storage_offset() * tensor.element_size() -
                                 first.storage_offset() * first.element_size()));
    }
    call_.slots.push_back({&tensor, argument_, item, same, on_host});
  }

  // The first slots with the same TensorImpl and with the same storage; `here` if there is none.
  std::pair<int32_t, int32_t> relatives(const at::Tensor& tensor, int32_t here) {
    const auto* impl = tensor.unsafeGetTensorImpl();
    const auto* storage = impl->unsafe_storage().unsafeGetStorageImpl();
    int32_t same = here, shared = here;
    if (C10_LIKELY(call_.slots.size() < kLinearSearchLimit)) {
      for (int32_t i = 0; i < here; ++i) {
        const Slot& slot = call_.slots[i];
        if (slot.on_host) continue;
        const auto* other = slot.tensor->unsafeGetTensorImpl();
        if (other->unsafe_storage().unsafeGetStorageImpl() != storage) continue;
        shared = std::min(shared, i);
        if (other == impl) {
          same = i;
          break;
        }
      }
      return {same, shared};
    }
    if (first_.empty()) {
      for (int32_t i = 0; i < here; ++i) {
        if (call_.slots[i].on_host) continue;
        const auto* other = call_.slots[i].tensor->unsafeGetTensorImpl();
        first_.emplace(other, i);
        first_.emplace(other->unsafe_storage().unsafeGetStorageImpl(), i);
      }
    }
    same = first_.emplace(impl, here).first->second;
    shared = first_.emplace(storage, here).first->second;
    return {same, shared};
  }

  void addValue(const c10::IValue& value) {
    if (value.isNone()) {
      word(kNone);
    } else if (value.isInt()) {
      word(kValue | 1 << 8);
      word(static_cast<uint64_t>(value.toInt()));
    } else if (value.isBool()) {
      word(kValue | 2 << 8 | (value.toBool() ? 1 << 16 : 0));
    } else if (value.isDouble()) {
      if (!record_.scalars_in_key) return word(kIgnored | 1 << 8);
      word(kValue | 3 << 8);
      word(std::bit_cast<uint64_t>(value.toDouble()));
    } else if (value.isComplexDouble()) {
      if (!record_.scalars_in_key) return word(kIgnored | 2 << 8);
      word(kValue | 4 << 8);
      word(std::bit_cast<uint64_t>(value.toComplexDouble().real()));
      word(std::bit_cast<uint64_t>(value.toComplexDouble().imag()));
    } else if (value.isString()) {
      const std::string& text = value.toStringRef();
      word(kValue | 5 << 8 | text.size() << 16);
      for (size_t i = 0; i < text.size(); i += 8) {
        uint64_t part = 0;
        std::memcpy(&part, text.data() + i, std::min<size_t>(8, text.size() - i));
        word(part);
      }
    } else if (value.isList()) {
      const auto items = value.toListRef();
      word(kListStart | items.size() << 8);
      for (const c10::IValue& item : items) addValue(item);
    } else if (value.isDevice()) {
      word(kValue | 6 << 8 | static_cast<uint64_t>(value.toDevice().type()) << 16);
    } else {
      TORCH_CHECK_NOT_IMPLEMENTED(false, record_.name, ": an argument of kind ", value.tagKind(),
                                  " is not implemented on accel");
    }
  }

  [[noreturn]] void raiseTwoDevices() const {
    const std::string& name = record_.op.schema().arguments()[stranger_argument_].name();
    if (!device_seen_) {
      TORCH_CHECK(false, "Expected all tensors to be on the same device, but got ", name, " is on ",
                  stranger_->device(), " (when checking argument in method ", record_.name, ")");
    }
    TORCH_CHECK(false, "Expected all tensors to be on the same device, but got ", name, " is on ",
                stranger_->device(), ", different from other tensors on ", call_.device,
                " (when checking argument in method ", record_.name, ")");
  }

  const OpRecord& record_;
  ParsedCall& call_;
  int16_t argument_ = 0;
  int16_t stranger_argument_ = 0;
  const at::Tensor* stranger_ = nullptr;
  bool device_seen_ = false;
  bool zero_tensors_ = false;
  std::unordered_map<const void*, int32_t> first_;
};

// index() and its like take indices on the CPU for a tensor on a device, as on every device.
void moveHostIndices(const OpRecord& record, Stack& stack) {
  const size_t base = stack.size() - record.size();
  if (!stack[base].isTensor() || !stack[base].toTensor().device().is_privateuseone()) return;
  const c10::Device device = stack[base].toTensor().device();
  for (size_t i = 0; i < record.size(); ++i) {
    if (record.arguments[i].kind != ArgumentKind::kOptionalTensorList) continue;
    c10::IValue& value = stack[base + i];
    auto list = value.toOptionalTensorList();
    std::optional<c10::List<std::optional<at::Tensor>>> moved;
    for (size_t k = 0; k < list.size(); ++k) {
      const std::optional<at::Tensor> index = list.get(k);
      if (!index || !index->defined() || !index->device().is_cpu()) continue;
      if (!moved) moved = list.copy();
      moved->set(k, index->to(device));
    }
    if (moved) value = *moved;
  }
}

// Tensors of zeros without memory that torch leaves to the backend for some operators.
void materializeZeros(const OpRecord& record, Stack& stack) {
  const size_t base = stack.size() - record.size();
  const auto materialized = [](const at::Tensor& tensor) {
    return tensor.defined() && tensor._is_zerotensor() ? at::zeros_like(tensor) : tensor;
  };
  for (size_t i = 0; i < record.size(); ++i) {
    c10::IValue& value = stack[base + i];
    if (value.isTensor()) {
      value = materialized(value.toTensor());
    } else if (record.arguments[i].kind == ArgumentKind::kTensorList && !value.isNone()) {
      std::vector<at::Tensor> items = value.toTensorVector();
      for (at::Tensor& item : items) item = materialized(item);
      value = c10::List<at::Tensor>(std::move(items));
    }
  }
}

}  // namespace

void parseCall(const OpRecord& record, Stack& stack, ParsedCall& call) {
  if (record.host_indices) moveHostIndices(record, stack);
  Parser parser(record, call);
  parser.parse(stack);
  if (C10_UNLIKELY(parser.zeroTensors())) {
    materializeZeros(record, stack);
    call = ParsedCall();
    Parser(record, call).parse(stack);
  }
}

HostScalar HostScalar::of(const at::Tensor& tensor) {
  HostScalar scalar;
  const at::Tensor plain = tensor.resolve_conj().resolve_neg();
  scalar.dtype = plain.scalar_type();
  scalar.wrapped = isWrapped(tensor);
  std::memcpy(scalar.bytes, plain.const_data_ptr(), plain.element_size());
  return scalar;
}

at::Tensor HostScalar::make() const {
  at::Tensor tensor = at::detail::empty_cpu({}, dtype);
  std::memcpy(tensor.mutable_data_ptr(), bytes, tensor.element_size());
  if (wrapped) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

Arguments::Arguments(const ParsedCall& call, const Stack& stack) : record_(call.record) {
  const size_t count = record_->size();
  const size_t base = stack.size() - count;
  values_.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const c10::IValue& value = stack[base + i];
    switch (record_->arguments[i].kind) {
      case ArgumentKind::kTensor:
        if (value.isTensor() && value.toTensor().defined()) {
          values_.emplace_back();
        } else {
          values_.push_back(value);
        }
        break;
      case ArgumentKind::kTensorList:
      case ArgumentKind::kOptionalTensorList:
        if (value.isNone()) {
          values_.emplace_back();
        } else {
          values_.emplace_back(static_cast<int64_t>(value.toListRef().size()));
        }
        break;
      case ArgumentKind::kGenerator:
        values_.emplace_back();
        ticket_ = takeTicket(value.toOptional<at::Generator>(), call.device.index());
        break;
      case ArgumentKind::kOther:
        if (value.isDevice()) {
          values_.emplace_back(c10::Device(c10::kCPU));
        } else {
          values_.push_back(value);
        }
        break;
    }
  }
  slots_.resize(call.slots.size());
  for (size_t i = 0; i < call.slots.size(); ++i) {
    const Slot& slot = call.slots[i];
    SlotRecipe& made = slots_[i];
    made.argument = slot.argument;
    made.item = slot.item;
    made.same = slot.same;
    made.on_host = slot.on_host;
    if (slot.on_host) {
      made.scalar = HostScalar::of(*slot.tensor);
    } else {
      made.recipe = TensorRecipe::of(*slot.tensor);
      made.scalar.wrapped = isWrapped(*slot.tensor);
      lazy_bits_ |= made.recipe.conj || made.recipe.neg;
    }
  }
}

bool Arguments::written(int slot) const {
  return record_->arguments[slots_[slot].argument].written;
}

void Arguments::makeStack(AliasMaker& maker, Stack& stack, std::vector<at::Tensor>& tensors) const {
  tensors.reserve(slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    const SlotRecipe& slot = slots_[i];
    if (slot.on_host) {
      tensors.push_back(slot.scalar.make());
    } else if (slot.same != static_cast<int32_t>(i)) {
      tensors.push_back(tensors[slot.same]);
    } else {
      tensors.push_back(maker.make(slot.recipe));
      if (slot.scalar.wrapped) tensors.back().unsafeGetTensorImpl()->set_wrapped_number(true);
    }
  }
  stack.reserve(values_.size() + 4);
  size_t next = 0;  // slots are in the order of the arguments
  for (size_t i = 0; i < values_.size(); ++i) {
    const auto mine = [&] {
      return next < slots_.size() && slots_[next].argument == static_cast<int16_t>(i);
    };
    switch (record_->arguments[i].kind) {
      case ArgumentKind::kTensor:
        if (mine()) {
          stack.emplace_back(tensors[next++]);
        } else {
          stack.push_back(values_[i]);
        }
        break;
      case ArgumentKind::kTensorList:
        if (values_[i].isNone()) {
          stack.emplace_back();
        } else {
          std::vector<at::Tensor> items(static_cast<size_t>(values_[i].toInt()));
          for (; mine(); ++next) items[slots_[next].item] = tensors[next];
          stack.emplace_back(c10::List<at::Tensor>(std::move(items)));
        }
        break;
      case ArgumentKind::kOptionalTensorList:
        if (values_[i].isNone()) {
          stack.emplace_back();
        } else {
          c10::List<std::optional<at::Tensor>> items;
          items.resize(static_cast<size_t>(values_[i].toInt()), std::nullopt);
          for (; mine(); ++next) items.set(slots_[next].item, tensors[next]);
          stack.emplace_back(std::move(items));
        }
        break;
      case ArgumentKind::kGenerator:
        stack.emplace_back(cpuGenerator(*ticket_));
        break;
      case ArgumentKind::kOther:
        stack.push_back(values_[i]);
        break;
    }
  }
}

}  // namespace torch_accel::generic
