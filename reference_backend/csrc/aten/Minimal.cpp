// The operators without which no tensor of a device exists: empty, empty_strided; and the few that
// have no counterpart on the CPU to be run in a worker.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "runtime/Allocator.h"
#include "runtime/Device.h"

namespace torch_accel {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::Device checkFactory(std::optional<at::Layout> layout, std::optional<at::Device> device,
                         std::optional<bool> pin_memory) {
  TORCH_CHECK(!layout || *layout == at::kStrided, "accel has strided tensors only, not ", *layout);
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  const c10::Device chosen = device.value_or(c10::Device(kAccel));
  TORCH_INTERNAL_ASSERT(chosen.type() == kAccel);
  return c10::Device(kAccel, resolveDevice(chosen.index()));
}

at::Tensor fillIfDeterministic(at::Tensor tensor) {
  if (C10_UNLIKELY(at::globalContext().deterministicAlgorithms() &&
                   at::globalContext().deterministicFillUninitializedMemory())) {
    at::native::fill_empty_deterministic_(tensor);
  }
  return tensor;
}

at::Tensor emptyMemoryFormat(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                             std::optional<at::Layout> layout, std::optional<at::Device> device,
                             std::optional<bool> pin_memory,
                             std::optional<at::MemoryFormat> memory_format) {
  const c10::DeviceGuard guard(checkFactory(layout, device, pin_memory));
  return fillIfDeterministic(at::detail::empty_generic(
      sizes, deviceAllocator(), kKeys, c10::dtype_or_default(dtype), memory_format));
}

at::Tensor emptyStrided(at::IntArrayRef sizes, at::IntArrayRef strides,
                        std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                        std::optional<at::Device> device, std::optional<bool> pin_memory) {
  const c10::DeviceGuard guard(checkFactory(layout, device, pin_memory));
  return fillIfDeterministic(at::detail::empty_strided_generic(
      sizes, strides, deviceAllocator(), kKeys, c10::dtype_or_default(dtype)));
}

// A tensor of zeros without memory; torch's ZeroTensor key keeps it from kernels.
at::Tensor efficientZeroTensor(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                               std::optional<at::Layout> layout, std::optional<at::Device> device,
                               std::optional<bool> pin_memory) {
  at::native::ZeroTensorAllocator allocator(checkFactory(layout, device, pin_memory));
  at::Tensor zeros = at::detail::empty_generic(
      sizes, &allocator, kKeys | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor),
      c10::dtype_or_default(dtype), std::nullopt);
  // The storage keeps a pointer to its allocator, for resizing.
  zeros.storage().unsafeGetStorageImpl()->set_allocator(deviceAllocator());
  return zeros;
}

void recordStream(at::Tensor& self, at::Stream stream) {
  deviceAllocator()->recordStream(self.storage().data_ptr(), stream);
}

// dropout calls this on devices, with the default generator. Composed of what the device has, in
// the CPU's order of operations.
std::tuple<at::Tensor, at::Tensor> nativeDropout(const at::Tensor& input, double p,
                                                 std::optional<bool> train) {
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  at::Tensor mask = at::empty(input.sizes(), input.options().dtype(at::kBool));
  if (!train.value_or(true)) return {input.clone(), mask.fill_(true)};
  const double kept = 1 - p;
  mask.bernoulli_(kept);
  return {input.mul(mask).mul_(kept == 0 ? 0. : 1. / kept), mask};
}

// Attention has no fused kernel here: 0 is the math implementation (sdp::SDPBackend::math).
int64_t fusedSdpChoice(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                       const std::optional<at::Tensor>&, double, bool, std::optional<double>,
                       bool) {
  return 0;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", TORCH_FN(emptyMemoryFormat));
  library.impl("empty_strided", TORCH_FN(emptyStrided));
  library.impl("_efficientzerotensor", TORCH_FN(efficientZeroTensor));
  library.impl("record_stream", TORCH_FN(recordStream));
  library.impl("native_dropout", TORCH_FN(nativeDropout));
  library.impl("_fused_sdp_choice", TORCH_FN(fusedSdpChoice));
}

}  // namespace torch_accel
