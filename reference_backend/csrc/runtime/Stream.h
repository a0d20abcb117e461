// Streams: c10::Stream values on one side, the driver's streams on the other.
//
// Stream id 0 is a device's default stream; ids from 1 name streams that were asked for. Driver
// streams are created when first used, so that values may be passed around freely.
#pragma once

#include <c10/core/Stream.h>

#include "accel_driver.h"

namespace torch_accel {

// The calling thread's current stream of a device (-1: the current device); at first the default.
c10::Stream currentStream(c10::DeviceIndex index = -1);
c10::Stream defaultStream(c10::DeviceIndex index = -1);
// Makes `stream` the thread's current stream of its device and returns the one before.
c10::Stream exchangeStream(c10::Stream stream);
// A stream from the device's pool, handed out in turn. priority < 0: high.
c10::Stream streamFromPool(c10::DeviceIndex index = -1, int priority = 0);

// The driver's handle; creates it on first use. Raises for a stream of another backend.
accelStream_t driverStream(const c10::Stream& stream);

bool queryStream(const c10::Stream& stream);
// Waits without holding Python's GIL; raises the device's pending error.
void synchronizeStream(const c10::Stream& stream);

}  // namespace torch_accel
