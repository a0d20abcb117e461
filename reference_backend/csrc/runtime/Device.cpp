// See Device.h.
#include "runtime/Device.h"

#include <c10/util/Exception.h>

#include "accel_driver.h"
#include "runtime/Error.h"
#include "runtime/Process.h"

namespace torch_accel {
namespace {

void checkIndex(c10::DeviceIndex index) {
  const c10::DeviceIndex count = deviceCount();
  TORCH_CHECK(index >= 0 && index < count, "invalid accel device index ", static_cast<int>(index),
              ": there are ", static_cast<int>(count), " accel devices");
}

}  // namespace

c10::DeviceIndex deviceCount() noexcept {
  static const c10::DeviceIndex count = [] {
    int n = 0;
    return static_cast<c10::DeviceIndex>(accelGetDeviceCount(&n) == ACCEL_SUCCESS ? n : 0);
  }();
  return count;
}

c10::DeviceIndex currentDevice() {
  int index = 0;
  ACCEL_CHECK(accelGetDevice(&index));
  return static_cast<c10::DeviceIndex>(index);
}

void setDevice(c10::DeviceIndex index) {
  checkIndex(index);
  ACCEL_CHECK(accelSetDevice(index));
}

c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) {
  const c10::DeviceIndex previous = currentDevice();
  if (index >= 0 && index != previous) setDevice(index);
  return previous;
}

c10::DeviceIndex resolveDevice(c10::DeviceIndex index) {
  if (index == -1) index = currentDevice();
  checkIndex(index);
  return index;
}

void synchronizeDevice(c10::DeviceIndex index) {
  index = resolveDevice(index);
  withoutGil([&] { ACCEL_CHECK(accelDeviceSynchronize(index)); });
}

}  // namespace torch_accel
