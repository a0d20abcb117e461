// Random numbers: a seed and an offset on the host, one independent sequence per kernel launch.
//
// A kernel that draws takes a ticket (seed, offset) when it is queued; the offset then moves on.
// What a kernel draws depends on its ticket alone, never on other streams' timing, and the whole
// state is two numbers on the host: reading or setting it needs no synchronisation (as on CUDA).
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <atomic>
#include <mutex>
#include <optional>

namespace torch_accel {

struct RandomTicket {
  uint64_t seed;
  uint64_t offset;
};

class AccelGeneratorImpl final : public c10::GeneratorImpl {
 public:
  explicit AccelGeneratorImpl(c10::DeviceIndex index);

  // Takes the next ticket and advances the offset by `increment` (a multiple of 4, as for Philox).
  RandomTicket nextTicket(uint64_t increment = 4);

  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  // State: a CPU uint8 tensor of 16 bytes, seed then offset, native byte order.
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  static c10::DeviceType device_type();

 private:
  AccelGeneratorImpl* clone_impl() const override;

  uint64_t seed_;
  uint64_t offset_ = 0;
};

// The default generator of a device (-1: the current one).
const at::Generator& defaultGenerator(c10::DeviceIndex index = -1);
at::Generator makeGenerator(c10::DeviceIndex index = -1);

// The generator an op should draw from: the one given, if it is of this device (else raises), or
// the device's default. Takes a ticket under the generator's lock.
RandomTicket takeTicket(const std::optional<at::Generator>& generator, c10::DeviceIndex index);

// A CPU generator whose sequence depends on the ticket alone; for kernels that run CPU code.
at::Generator cpuGenerator(const RandomTicket& ticket);

}  // namespace torch_accel
