// See GenericStandIns.h.
#include "aten/GenericStandIns.h"

#include <ATen/EmptyTensor.h>

#include <cstring>

namespace torch_accel::generic {
namespace {

void fillStorage(const c10::Storage& storage, c10::ScalarType dtype) {
  if (storage.nbytes() == 0) return;
  std::memset(storage.mutable_data(), 0, storage.nbytes());
  if (c10::isIntegralType(dtype, /*includeBool=*/true)) return;
  at::Tensor all = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(dtype));
  const auto count = static_cast<int64_t>(storage.nbytes() / all.element_size());
  all.unsafeGetTensorImpl()->set_sizes_contiguous(count);
  if (c10::isComplexType(dtype)) {
    all.fill_(c10::complex<double>(1, 1));
  } else {
    all.fill_(1);
  }
}

struct SilentWarnings final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

constexpr size_t kTrialBytes = 256 << 10;

// Runs the CPU kernel on made-up values. False if it says that it does not implement the dtypes, or
// that the memory of its arguments overlaps; what else it says may be due to the values.
bool tryKernel(const ParsedCall& call, const Stack& stack) {
  SilentWarnings silent;
  const c10::WarningUtils::WarningHandlerGuard warning_guard(&silent);
  try {
    const StandIns stand_ins(call, c10::kCPU);
    Stack results = stand_ins.makeStack(stack);
    runOnCpu(call.record->op, results, stand_ins.lazyBits());
  } catch (const c10::NotImplementedError&) {
    return false;
  } catch (const std::exception& error) {
    const std::string_view text(error.what());
    return text.find("not implemented for") == text.npos &&
           text.find("single memory location") == text.npos;
  }
  return true;
}

// True when what is written shares memory with itself or with another argument.
bool writesOverlap(const ParsedCall& call) {
  for (size_t i = 0; i < call.slots.size(); ++i) {
    const Slot& written = call.slots[i];
    if (!call.record->arguments[written.argument].written) continue;
    for (int64_t d = 0; d < written.tensor->dim(); ++d) {
      if (written.tensor->stride(d) == 0 && written.tensor->size(d) > 1) return true;
    }
    for (const Slot& other : call.slots) {
      if (!other.on_host && !other.tensor->is_same(*written.tensor) &&
          other.tensor->is_alias_of(*written.tensor)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

StandIns::StandIns(const ParsedCall& call, c10::DeviceType type) : call_(call), device_(type) {
  tensors_.reserve(call.slots.size());
  for (const Slot& slot : call.slots) {
    ++storages_[slot.tensor->storage().unsafeGetStorageImpl()].users;
  }
  for (size_t i = 0; i < call.slots.size(); ++i) {
    const Slot& slot = call.slots[i];
    const bool wrapped = slot.tensor->unsafeGetTensorImpl()->is_wrapped_number();
    if (slot.same != static_cast<int32_t>(i)) {
      tensors_.push_back(tensors_[slot.same]);
    } else if (wrapped) {  // a wrapped number is a CPU tensor by torch's own assertion
      HostScalar zero{};
      zero.dtype = slot.tensor->scalar_type();
      zero.wrapped = true;
      tensors_.push_back(zero.make());
    } else {
      tensors_.push_back(make(*slot.tensor));
    }
  }
}

Stack StandIns::makeStack(const Stack& stack) const {
  const OpRecord& record = *call_.record;
  Stack result(stack.end() - static_cast<ptrdiff_t>(record.size()), stack.end());
  for (size_t i = 0; i < call_.slots.size(); ++i) {
    const Slot& slot = call_.slots[i];
    if (slot.item < 0) result[slot.argument] = tensors_[i];
  }
  for (size_t i = 0; i < record.size(); ++i) {
    c10::IValue& value = result[i];
    switch (record.arguments[i].kind) {
      case ArgumentKind::kTensorList:
        if (!value.isNone()) value = remake<at::Tensor>(value.toTensorList(), i);
        break;
      case ArgumentKind::kOptionalTensorList:
        if (!value.isNone()) {
          value = remake<std::optional<at::Tensor>>(value.toOptionalTensorList(), i);
        }
        break;
      case ArgumentKind::kGenerator:
        value = device_.is_meta() ? c10::IValue() : c10::IValue(cpuGenerator({0, 0}));
        break;
      default:
        if (value.isDevice()) value = device_;
    }
  }
  return result;
}

at::Tensor StandIns::make(const at::Tensor& device_tensor) {
  const c10::StorageImpl* original = device_tensor.storage().unsafeGetStorageImpl();
  Shared& shared = storages_[original];
  // Of a storage that no other argument uses, the part that this one uses is enough.
  const bool whole = shared.users > 1;
  const int64_t offset = whole ? device_tensor.storage_offset() : 0;
  if (!shared.stand_in) {
    const size_t bytes =
        whole ? original->nbytes()
              : at::detail::computeStorageNbytes(device_tensor.sizes(), device_tensor.strides(),
                                                 device_tensor.element_size());
    shared.stand_in = c10::Storage(c10::Storage::use_byte_size_t(), bytes,
                                   c10::GetAllocator(device_.type()), /*resizable=*/true);
    if (device_.is_cpu()) fillStorage(shared.stand_in, device_tensor.scalar_type());
  }
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(shared.stand_in),
      c10::DispatchKeySet(device_.is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::Meta),
      device_tensor.dtype());
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(device_tensor.sizes(), device_tensor.strides(), offset);
  lazy_bits_ |= device_tensor.is_conj() || device_tensor.is_neg();
  if (device_tensor.is_conj()) impl->_set_conj(true);
  if (device_tensor.is_neg()) impl->_set_neg(true);
  return tensor;
}

// Shape functions know nothing of dtypes that the CPU kernel lacks, and many do not look for
// overlaps. The first call with some dtypes, if it is small, and the first of each kind with
// overlaps tries the kernel. False if the call must fail.
bool kernelTakes(const ParsedCall& call, const Stack& stack) {
  uint64_t hash = 0;
  size_t bytes = 0;
  for (const Slot& slot : call.slots) {
    hash = hash * 64 + static_cast<uint64_t>(slot.tensor->scalar_type()) + 1;
    bytes += slot.tensor->nbytes();
  }
  if (!call.record->functional && writesOverlap(call)) return tryKernel(call, stack);
  KnownDtypes& known = call.record->known_dtypes;
  if (const std::optional<bool> implemented = known.find(hash)) return *implemented;
  if (bytes > kTrialBytes) return true;
  const bool implemented = tryKernel(call, stack);
  known.insert(hash, implemented);
  return implemented;
}

}  // namespace torch_accel::generic
