// See Generator.h.
#include "runtime/Generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <c10/util/Exception.h>

#include <cstring>
#include <vector>

#include "runtime/Device.h"

namespace torch_accel {
namespace {

constexpr int64_t kStateBytes = 16;

// Spreads (seed, offset) over all bits, so that neighbouring tickets give unrelated sequences.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

AccelGeneratorImpl::AccelGeneratorImpl(c10::DeviceIndex index)
    : c10::GeneratorImpl(c10::Device(kAccel, index),
                         c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      seed_(c10::default_rng_seed_val) {}

RandomTicket AccelGeneratorImpl::nextTicket(uint64_t increment) {
  const RandomTicket ticket{seed_, offset_};
  offset_ += (increment + 3) / 4 * 4;
  return ticket;
}

void AccelGeneratorImpl::set_current_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
}

void AccelGeneratorImpl::set_offset(uint64_t offset) {
  TORCH_CHECK(offset % 4 == 0, "the offset of an accel generator must be a multiple of 4, got ",
              offset);
  offset_ = offset;
}

uint64_t AccelGeneratorImpl::get_offset() const {
  return offset_;
}
uint64_t AccelGeneratorImpl::current_seed() const {
  return seed_;
}

uint64_t AccelGeneratorImpl::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom());
  return seed_;
}

void AccelGeneratorImpl::set_state(const c10::TensorImpl& state) {
  TORCH_CHECK_TYPE(
      state.layout() == at::kStrided && state.device_type() == at::kCPU &&
          state.dtype() == caffe2::TypeMeta::Make<uint8_t>() && state.is_contiguous(),
      "the RNG state of an accel device must be a contiguous torch.ByteTensor on the CPU");
  TORCH_CHECK(state.numel() == kStateBytes, "the RNG state of an accel device has ", kStateBytes,
              " bytes, got ", state.numel());
  uint64_t values[2];
  std::memcpy(values, state.data(), kStateBytes);
  const uint64_t previous_seed = seed_;
  seed_ = values[0];
  try {
    set_offset(values[1]);
  } catch (...) {
    seed_ = previous_seed;
    throw;
  }
}

c10::intrusive_ptr<c10::TensorImpl> AccelGeneratorImpl::get_state() const {
  at::TensorBase state = at::detail::empty_cpu({kStateBytes}, at::kByte);
  const uint64_t values[2] = {seed_, offset_};
  std::memcpy(state.mutable_data_ptr(), values, kStateBytes);
  return state.getIntrusivePtr();
}

AccelGeneratorImpl* AccelGeneratorImpl::clone_impl() const {
  auto* copy = new AccelGeneratorImpl(device().index());
  copy->seed_ = seed_;
  copy->offset_ = offset_;
  return copy;
}

c10::DeviceType AccelGeneratorImpl::device_type() {
  return kAccel;
}

const at::Generator& defaultGenerator(c10::DeviceIndex index) {
  static const auto* generators = [] {  // leaked: Python may hold them until the very end
    auto* all = new std::vector<at::Generator>();
    for (c10::DeviceIndex i = 0; i < deviceCount(); ++i) {
      all->push_back(at::make_generator<AccelGeneratorImpl>(i));
    }
    return all;
  }();
  return (*generators)[static_cast<size_t>(resolveDevice(index))];
}

at::Generator makeGenerator(c10::DeviceIndex index) {
  return at::make_generator<AccelGeneratorImpl>(resolveDevice(index));
}

RandomTicket takeTicket(const std::optional<at::Generator>& generator, c10::DeviceIndex index) {
  const at::Generator& chosen =
      generator.has_value() && generator->defined() ? *generator : defaultGenerator(index);
  TORCH_CHECK(chosen.device().type() == kAccel, "Expected a '", c10::Device(kAccel, index),
              "' device type for generator but found '", chosen.device().type(), "'");
  TORCH_CHECK(chosen.device().index() == resolveDevice(index), "Expected a generator of ",
              c10::Device(kAccel, resolveDevice(index)), " but found one of ", chosen.device());
  auto* impl = chosen.get<AccelGeneratorImpl>();
  const std::lock_guard<std::mutex> lock(impl->mutex_);
  return impl->nextTicket();
}

at::Generator cpuGenerator(const RandomTicket& ticket) {
  // The CPU's Mersenne Twister takes the low 32 bits of its seed.
  return at::make_generator<at::CPUGeneratorImpl>(mix(ticket.seed ^ mix(ticket.offset)));
}

}  // namespace torch_accel
