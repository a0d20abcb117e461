// See Allocator.h: what c10 asks of a device's allocator, over one cache a device.
#include "runtime/Allocator.h"

#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <c10/util/flat_hash_map.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "accel_driver.h"
#include "runtime/Device.h"
#include "runtime/DeviceCache.h"
#include "runtime/Error.h"
#include "runtime/Process.h"
#include "runtime/Stream.h"

namespace torch_accel {
namespace {

using c10::CachingDeviceAllocator::DeviceStats;

class AccelAllocator final : public c10::DeviceAllocator {
 public:
  AccelAllocator() {
    for (c10::DeviceIndex i = 0; i < deviceCount(); ++i) {
      caches_.push_back(std::make_unique<DeviceCache>(i));
    }
  }

  c10::DataPtr allocate(size_t bytes) override {
    const c10::DeviceIndex index = resolveDevice(-1);  // raises where there is no device at all
    const c10::Device device(kAccel, index);
    if (bytes == 0) return {nullptr, nullptr, &deleteBlock, device};
    noteUse();
    Block* block = cache(index).allocate(bytes, currentStream(index).id());
    {
      const std::lock_guard<std::mutex> lock(blocks_mutex_);
      blocks_.emplace(block->address, block);
    }
    return {block->address, block->address, &deleteBlock, device};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &deleteBlock; }

  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    ACCEL_CHECK(accelMemcpyAsync(destination, source, bytes, driverStream(currentStream())));
  }

  bool initialized() override { return !caches_.empty(); }

  void emptyCache(c10::MempoolId_t) override {
    withoutGil([this] {
      for (const auto& cache : caches_) cache->emptyCache();
    });
  }

  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    // Memory that came from elsewhere (a from_blob, say) isn't this cache's to keep.
    if (!data.get() || data.get_deleter() != &deleteBlock) return;
    TORCH_CHECK(stream.device_type() == kAccel, "record_stream: expected a stream of accel, got ",
                stream);
    Block* block = nullptr;
    {
      const std::lock_guard<std::mutex> lock(blocks_mutex_);
      block = blocks_.at(data.get_context());
    }
    cache(block->device).recordUse(block, stream);
  }

  DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    return cache(resolveDevice(index)).stats();
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    cache(resolveDevice(index)).resetAccumulatedStats();
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    cache(resolveDevice(index)).resetPeakStats();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    size_t available = 0, total = 0;
    ACCEL_CHECK(accelMemGetInfo(resolveDevice(index), &available, &total));
    return {available, total};
  }

  DeviceCache& cache(c10::DeviceIndex index) { return *caches_[static_cast<size_t>(index)]; }

  void free(void* address) {
    Block* block = nullptr;
    {
      const std::lock_guard<std::mutex> lock(blocks_mutex_);
      const auto found = blocks_.find(address);
      TORCH_INTERNAL_ASSERT(found != blocks_.end(), "freed twice, or not of this allocator");
      block = found->second;
      blocks_.erase(found);
    }
    cache(block->device).free(block);
  }

 private:
  static void deleteBlock(void* address);

  std::vector<std::unique_ptr<DeviceCache>> caches_;
  std::mutex blocks_mutex_;
  ska::flat_hash_map<void*, Block*> blocks_;  // handed out, by address
};

AccelAllocator& allocator() {
  static auto* instance = new AccelAllocator();
  return *instance;
}

void AccelAllocator::deleteBlock(void* address) {
  // In a forked child a lock may be held for ever by a thread that no longer exists: leak.
  if (address && !inBadFork()) allocator().free(address);
}

const bool registered = [] {
  c10::SetAllocator(kAccel, &allocator());
  return true;
}();

}  // namespace

c10::DeviceAllocator* deviceAllocator() {
  return &allocator();
}

void setMemoryFraction(c10::DeviceIndex index, double fraction) {
  TORCH_CHECK_VALUE(fraction >= 0 && fraction <= 1, "a memory fraction lies between 0 and 1, got ",
                    fraction);
  allocator().cache(resolveDevice(index)).setFraction(fraction);
}

}  // namespace torch_accel
