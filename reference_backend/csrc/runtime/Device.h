// The calling thread's current device, in c10's terms.
#pragma once

#include <c10/core/Device.h>

namespace torch_accel {

constexpr c10::DeviceType kAccel = c10::DeviceType::PrivateUse1;

// Never throws, starts no thread: safe before a fork. 0 when the driver has no device.
c10::DeviceIndex deviceCount() noexcept;
c10::DeviceIndex currentDevice();
// Raises c10::Error for an index outside [0, deviceCount()).
void setDevice(c10::DeviceIndex index);
// Sets the device and returns the previous one; an index of -1 changes nothing.
c10::DeviceIndex exchangeDevice(c10::DeviceIndex index);
// `index`, or the current device for -1. Raises for an index out of range.
c10::DeviceIndex resolveDevice(c10::DeviceIndex index);
// Waits for every stream of the device (-1: the current one) without holding Python's GIL; raises
// the device's pending error.
void synchronizeDevice(c10::DeviceIndex index = -1);

}  // namespace torch_accel
