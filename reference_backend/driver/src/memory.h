// Device memory and page-locked host memory, as the rest of the driver sees them.
#pragma once

#include <cstddef>

#include "accel_driver.h"

namespace torch_accel::driver {

// True once the device has memory mapped.
bool memoryMapped(int device);

// Fails for null, and for a range that starts in device memory but not within one live allocation.
accelError_t checkRange(const char* function, const char* argument, const void* address,
                        size_t size);

// Where a worker finds the byte of an address: behind it for device memory, else there.
void* hostView(const void* address);

void lockMemoryForFork();
void unlockMemoryAfterFork();

}  // namespace torch_accel::driver
