// The hooks by which device-generic code in ATen reaches this backend.
//
// A vendor replaces: nothing, if the runtime below keeps its interface.
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "accel_driver.h"
#include "runtime/Allocator.h"
#include "runtime/Device.h"
#include "runtime/Error.h"
#include "runtime/Generator.h"
#include "runtime/Process.h"
#include "runtime/Storage.h"

namespace torch_accel {
namespace {

struct AccelHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return torch_accel::deviceCount() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex index) const override {
    int active = 0;
    ACCEL_CHECK(accelDeviceIsActive(resolveDevice(index), &active));
    return active != 0;
  }
  void init() const override { noteUse(); }

  c10::DeviceIndex deviceCount() const override { return torch_accel::deviceCount(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { setDevice(index); }
  c10::DeviceIndex getCurrentDevice() const override { return currentDevice(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return torch_accel::exchangeDevice(index);
  }
  // There is no context to avoid creating: the same as exchangeDevice.
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return torch_accel::exchangeDevice(index);
  }

  bool isPinnedPtr(const void* address) const override { return isPinnedPointer(address); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return pinnedAllocator(); }
  c10::Device getDeviceFromPtr(void* address) const override {
    accelMemoryKind kind = ACCEL_MEMORY_UNKNOWN;
    int device = -1;
    ACCEL_CHECK(accelPointerGetAttributes(address, &kind, &device));
    TORCH_CHECK(kind == ACCEL_MEMORY_DEVICE, address, " is not an address of accel memory");
    return c10::Device(kAccel, static_cast<c10::DeviceIndex>(device));
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return defaultGenerator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return makeGenerator(index);
  }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resizeStorage(storage.unsafeGetStorageImpl(), bytes);
  }
};

const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new AccelHooks());
  return true;
}();

}  // namespace
}  // namespace torch_accel
