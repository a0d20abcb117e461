// Caching device memory: per-stream pools in stream order, with statistics.
//
// A freed block returns to the pool of the stream it was allocated on and may be handed out again
// at once on that stream: the queue keeps the order. Use on another stream must be announced with
// recordStream(), or the block may be overwritten while still read: as on a real card.
//
// DeviceCache.h has the pools themselves.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

namespace torch_accel {

// The one allocator, leaked on purpose: storages may outlive static destruction.
c10::DeviceAllocator* deviceAllocator();

// Limits what the allocator may reserve on a device to a fraction (0 to 1) of its memory; beyond it
// an allocation raises OutOfMemoryError although the device has room. At first 1: no limit.
void setMemoryFraction(c10::DeviceIndex index, double fraction);

// Pinned memory: the at::HostAllocator registered for PrivateUse1 (CachingHostAllocatorImpl).
c10::Allocator* pinnedAllocator();
// True for an address (interior too) of page-locked host memory.
bool isPinnedPointer(const void* address);
// Keeps the pinned block from reuse until what is queued on `stream` now has run; a no-op for other
// host memory.
void recordPinnedUse(const void* address, void* context, const c10::Stream& stream);

}  // namespace torch_accel
