// Device memory and page-locked host memory.
//
// One reservation holds all devices: first the ranges that accelMalloc hands out, which nobody can
// touch (PROT_NONE), then as many ranges with the bytes, at one distance from the first:
//
//     | device 0 | gap | device 1 | gap | bytes of device 0 | gap | bytes of device 1 | gap |
//
// The gaps are never accessible: a kernel that runs past a device's end does not reach the next
// one. Pages cost memory when first written and are given back when freed.
//
// A vendor's driver manages the card's memory here. Its addresses fault on the host by nature.
#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include "device.h"
#include "error.h"
#include "settings.h"
#include "worker.h"

namespace torch_accel::driver {
namespace {

constexpr size_t kGap = size_t{2} << 20;

size_t roundUp(size_t size) {
  return (size + ACCEL_PAGE_SIZE - 1) & ~(ACCEL_PAGE_SIZE - 1);
}

// Bytes from one device's range to the next.
size_t stride() {
  return settings().memory + kGap;
}

// Bytes from the first range to the bytes of device 0: of all addresses, known before any mapping.
size_t distance() {
  return stride() * static_cast<size_t>(settings().devices);
}

// Ranges as first byte -> size.
using Ranges = std::map<uintptr_t, size_t>;

// The range that holds `address`, or end().
Ranges::const_iterator findRange(const Ranges& ranges, uintptr_t address) {
  auto next = ranges.upper_bound(address);
  if (next == ranges.begin()) return ranges.end();
  const auto found = std::prev(next);
  return address - found->first < found->second ? found : ranges.end();
}

// The pages of one device: first fit, neighbours joined when freed.
struct Pool {
  Ranges unused;
  Ranges live;
  size_t free_bytes = 0;
  bool mapped = false;

  uintptr_t allocate(size_t size) {
    for (auto it = unused.begin(); it != unused.end(); ++it) {
      if (it->second < size) continue;
      const auto [address, available] = *it;
      live.emplace(address, size);
      if (available > size) unused.emplace_hint(it, address + size, available - size);
      unused.erase(address);
      free_bytes -= size;
      return address;
    }
    return 0;
  }

  void release(Ranges::const_iterator allocation) {
    uintptr_t address = allocation->first;
    size_t size = allocation->second;
    live.erase(allocation);
    free_bytes += size;
    const auto next = unused.lower_bound(address);
    if (next != unused.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == address) {
        address = before->first;
        size += before->second;
        unused.erase(before);
      }
    }
    if (next != unused.end() && address + size == next->first) {
      size += next->second;
      unused.erase(next);
    }
    unused.emplace(address, size);
  }

  size_t largest() const {
    size_t result = 0;
    for (const auto& range : unused) result = std::max(result, range.second);
    return result;
  }
};

struct Memory {
  std::mutex mutex;                // guards all but `base`
  std::atomic<uintptr_t> base{0};  // of the reservation; 0 before the first accelMalloc
  std::vector<Pool> pools;         // by device
  Ranges host;                     // page-locked host memory
};

Memory& memory() {
  static auto* const instance = [] {  // outlives statics: storages may be freed late
    auto* const created = new Memory;
    created->pools.resize(static_cast<size_t>(settings().devices));
    return created;
  }();
  return *instance;
}

// The device whose range, or the gap behind it, holds `address`; or -1.
int deviceOf(uintptr_t address) {
  const uintptr_t base = memory().base.load(std::memory_order_acquire);
  if (base == 0 || address < base || address - base >= distance()) return -1;
  return static_cast<int>((address - base) / stride());
}

// Reserves addresses for all devices, once. Under the mutex.
accelError_t reserve() {
  Memory& all = memory();
  if (all.base.load(std::memory_order_relaxed) != 0) return ACCEL_SUCCESS;
  void* const base =
      mmap(nullptr, 2 * distance(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return fail(
        ACCEL_ERROR_OUT_OF_MEMORY,
        "accelMalloc: cannot reserve %zu bytes of addresses (%s): set TORCH_ACCEL_MEMORY or "
        "TORCH_ACCEL_DEVICES lower",
        2 * distance(), std::strerror(errno));
  }
  all.base.store(reinterpret_cast<uintptr_t>(base), std::memory_order_release);
  return ACCEL_SUCCESS;
}

// Makes the device's bytes accessible, once. Under the mutex.
accelError_t map(int device) {
  Memory& all = memory();
  Pool& pool = all.pools[static_cast<size_t>(device)];
  if (pool.mapped) return ACCEL_SUCCESS;
  if (const accelError_t error = reserve()) return error;
  const uintptr_t first =
      all.base.load(std::memory_order_relaxed) + static_cast<size_t>(device) * stride();
  if (mprotect(reinterpret_cast<void*>(first + distance()), settings().memory,
               PROT_READ | PROT_WRITE) != 0) {
    return fail(ACCEL_ERROR_OUT_OF_MEMORY,
                "accelMalloc: cannot map the %zu bytes of device %d (%s): set TORCH_ACCEL_MEMORY "
                "lower",
                settings().memory, device, std::strerror(errno));
  }
  pool.unused.emplace(first, settings().memory);
  pool.free_bytes = settings().memory;
  pool.mapped = true;
  return ACCEL_SUCCESS;
}

}  // namespace

bool memoryMapped(int device) {
  const std::lock_guard lock(memory().mutex);
  return memory().pools[static_cast<size_t>(device)].mapped;
}

accelError_t checkRange(const char* function, const char* argument, const void* address,
                        size_t size) {
  if (!address) return fail(ACCEL_ERROR_INVALID_VALUE, "%s: %s is null", function, argument);
  const auto first = reinterpret_cast<uintptr_t>(address);
  const int device = deviceOf(first);
  if (device < 0) return ACCEL_SUCCESS;
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const Ranges& live = all.pools[static_cast<size_t>(device)].live;
  const auto found = findRange(live, first);
  if (found != live.end() && size <= found->second - (first - found->first)) return ACCEL_SUCCESS;
  return fail(ACCEL_ERROR_INVALID_ADDRESS,
              "%s: %zu bytes at %s %p do not lie within one allocation of device %d", function,
              size, argument, address, device);
}

void* hostView(const void* address) {
  const auto value = reinterpret_cast<uintptr_t>(address);
  return reinterpret_cast<void*>(deviceOf(value) < 0 ? value : value + distance());
}

void lockMemoryForFork() {
  memory().mutex.lock();
}

void unlockMemoryAfterFork() {
  memory().mutex.unlock();
}

}  // namespace torch_accel::driver

using namespace torch_accel::driver;

ptrdiff_t accelKernelDistance() {
  return static_cast<ptrdiff_t>(distance());
}

accelError_t accelMalloc(int device, size_t size, void** address) {
  return guarded(__func__, [&] {
    if (!address) return fail(ACCEL_ERROR_INVALID_VALUE, "accelMalloc: address is null");
    *address = nullptr;
    Device* found = nullptr;
    if (const accelError_t error = findDevice("accelMalloc", device, &found)) return error;
    if (const accelError_t error = checkNotForked("accelMalloc")) return error;
    if (size == 0) return ACCEL_SUCCESS;
    prepareForFork();
    Memory& all = memory();
    const std::lock_guard lock(all.mutex);
    if (const accelError_t error = map(device)) return error;
    Pool& pool = all.pools[static_cast<size_t>(device)];
    const uintptr_t result = size > settings().memory ? 0 : pool.allocate(roundUp(size));
    if (result == 0) {
      return fail(ACCEL_ERROR_OUT_OF_MEMORY,
                  "accelMalloc: device %d has no room for %zu bytes: %zu of %zu bytes are free, at "
                  "most %zu in one piece",
                  device, size, pool.free_bytes, settings().memory, pool.largest());
    }
    *address = reinterpret_cast<void*>(result);
    return ACCEL_SUCCESS;
  });
}

accelError_t accelFree(void* address) {
  return guarded(__func__, [&] {
    if (!address) return ACCEL_SUCCESS;
    if (const accelError_t error = checkMayWait("accelFree")) return error;
    const auto first = reinterpret_cast<uintptr_t>(address);
    const int device = deviceOf(first);
    const auto invalid = [&] {
      return fail(ACCEL_ERROR_INVALID_ADDRESS,
                  "accelFree: %p is not the first byte of a live allocation", address);
    };
    if (device < 0) return invalid();
    Memory& all = memory();
    Pool& pool = all.pools[static_cast<size_t>(device)];
    {
      const std::lock_guard lock(all.mutex);
      if (!pool.live.contains(first)) return invalid();
    }
    devices()[static_cast<size_t>(device)]->wait();
    const std::lock_guard lock(all.mutex);
    const auto found = pool.live.find(first);
    if (found == pool.live.end()) return invalid();  // another thread was faster
    madvise(hostView(address), found->second, MADV_DONTNEED);
    pool.release(found);
    return ACCEL_SUCCESS;
  });
}

accelError_t accelMemGetInfo(int device, size_t* free_bytes, size_t* total_bytes) {
  return guarded(__func__, [&] {
    Device* found = nullptr;
    if (const accelError_t error = findDevice("accelMemGetInfo", device, &found)) return error;
    if (const accelError_t error = checkNotForked("accelMemGetInfo")) return error;
    Memory& all = memory();
    const std::lock_guard lock(all.mutex);
    const Pool& pool = all.pools[static_cast<size_t>(device)];
    if (free_bytes) *free_bytes = pool.mapped ? pool.free_bytes : settings().memory;
    if (total_bytes) *total_bytes = settings().memory;
    return ACCEL_SUCCESS;
  });
}

accelError_t accelPointerGetAttributes(const void* address, accelMemoryKind* kind, int* device) {
  return guarded(__func__, [&] {
    const auto value = reinterpret_cast<uintptr_t>(address);
    accelMemoryKind found_kind = ACCEL_MEMORY_UNKNOWN;
    int found_device = deviceOf(value);
    Memory& all = memory();
    const std::lock_guard lock(all.mutex);
    if (found_device >= 0) {
      const Ranges& live = all.pools[static_cast<size_t>(found_device)].live;
      if (findRange(live, value) == live.end()) {
        found_device = -1;
      } else {
        found_kind = ACCEL_MEMORY_DEVICE;
      }
    } else if (findRange(all.host, value) != all.host.end()) {
      found_kind = ACCEL_MEMORY_HOST;
    }
    if (kind) *kind = found_kind;
    if (device) *device = found_device;
    return ACCEL_SUCCESS;
  });
}

accelError_t accelHostAlloc(size_t size, void** address) {
  return guarded(__func__, [&] {
    if (!address) return fail(ACCEL_ERROR_INVALID_VALUE, "accelHostAlloc: address is null");
    *address = nullptr;
    if (const accelError_t error = checkNotForked("accelHostAlloc")) return error;
    if (size == 0) return ACCEL_SUCCESS;
    prepareForFork();
    const size_t rounded = roundUp(size);  // 0 for a size near SIZE_MAX: mmap refuses it
    void* const result =
        mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (result == MAP_FAILED) {
      return fail(ACCEL_ERROR_OUT_OF_MEMORY, "accelHostAlloc: the host has no room for %zu bytes",
                  size);
    }
    Memory& all = memory();
    try {
      const std::lock_guard lock(all.mutex);
      all.host.emplace(reinterpret_cast<uintptr_t>(result), rounded);
    } catch (...) {
      munmap(result, rounded);
      throw;
    }
    *address = result;
    return ACCEL_SUCCESS;
  });
}

accelError_t accelHostFree(void* address) {
  return guarded(__func__, [&] {
    if (!address) return ACCEL_SUCCESS;
    Memory& all = memory();
    const std::lock_guard lock(all.mutex);
    const auto found = all.host.find(reinterpret_cast<uintptr_t>(address));
    if (found == all.host.end()) {
      return fail(ACCEL_ERROR_INVALID_ADDRESS,
                  "accelHostFree: %p is not the first byte of page-locked memory", address);
    }
    munmap(address, found->second);
    all.host.erase(found);
    return ACCEL_SUCCESS;
  });
}
