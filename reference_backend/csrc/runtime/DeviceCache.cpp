// See DeviceCache.h.
//
// A vendor replaces: the calls of accelMalloc, accelFree and the events.
#include "runtime/DeviceCache.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "runtime/Device.h"
#include "runtime/Error.h"
#include "runtime/Process.h"
#include "runtime/Stream.h"

namespace torch_accel {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

constexpr size_t kAlignment = 512;         // sizes are rounded up to it, addresses aligned to it
constexpr size_t kSmallLimit = 1 << 20;    // requests up to this are served from small segments
constexpr size_t kSmallSegment = 2 << 20;  // bytes of a small segment
constexpr size_t kMediumLimit = 10 << 20;  // requests below this share segments of kLargeSegment
constexpr size_t kLargeSegment = 20 << 20;
constexpr size_t kLargeRounding = 2 << 20;  // larger ones get a segment of their own, so rounded

size_t roundUp(size_t n, size_t unit) {
  return (n + unit - 1) / unit * unit;
}

void change(StatArray& stats, const Pool* pool, int64_t amount) {
  for (const StatType type : {StatType::AGGREGATE, pool->type}) {
    Stat& stat = stats[static_cast<size_t>(type)];
    if (amount >= 0) {
      stat.increase(static_cast<size_t>(amount));
    } else {
      stat.decrease(static_cast<size_t>(-amount));
    }
  }
}

std::string readable(size_t bytes) {
  char text[32];
  if (bytes >= (1ULL << 30)) {
    snprintf(text, sizeof(text), "%.2f GiB", static_cast<double>(bytes) / (1ULL << 30));
  } else if (bytes >= (1ULL << 20)) {
    snprintf(text, sizeof(text), "%.2f MiB", static_cast<double>(bytes) / (1ULL << 20));
  } else {
    snprintf(text, sizeof(text), "%zu bytes", bytes);
  }
  return text;
}

}  // namespace

Block* DeviceCache::allocate(size_t requested, c10::StreamId stream) {
  // Far beyond any memory, and such that rounding cannot wrap round.
  const size_t size = requested > SIZE_MAX / 4 ? requested / 4 * 4 : roundUp(requested, kAlignment);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    processEvents(/*wait=*/false);
    if (Block* block = takeFree(size, stream)) return handOut(block, size, requested);
  }
  // The driver may have to wait for queued work. Released first, locked second: a thread that
  // waits for the lock may hold the GIL.
  Block* block = nullptr;
  withoutGil([&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    block = takeFree(size, stream);
    if (!block) block = newSegment(size, stream);
    if (!block) {  // flush everything that can be flushed, once
      ++stats_.num_alloc_retries;
      processEvents(/*wait=*/true);
      releaseCached();
      block = newSegment(size, stream);
    }
    if (block) {
      block = handOut(block, size, requested);
    } else {
      ++stats_.num_ooms;
    }
  });
  if (!block) raiseOutOfMemory(requested);
  return block;
}

void DeviceCache::free(Block* block) {
  const std::lock_guard<std::mutex> lock(mutex_);
  block->allocated = false;
  change(stats_.allocation, block->pool, -1);
  change(stats_.allocated_bytes, block->pool, -static_cast<int64_t>(block->size));
  change(stats_.requested_bytes, block->pool, -static_cast<int64_t>(block->requested));
  report(block->address, -static_cast<int64_t>(block->size));
  for (const c10::Stream& stream : block->uses) {
    if (const accelEvent_t event = recordEvent(stream)) {
      pending_.emplace_back(event, block);
      ++block->pending_events;
    }
  }
  block->uses.clear();
  if (block->pending_events == 0) release(block);
}

void DeviceCache::recordUse(Block* block, const c10::Stream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stream.device_index() == block->device && stream.id() == block->stream) return;
  if (std::find(block->uses.begin(), block->uses.end(), stream) == block->uses.end()) {
    block->uses.push_back(stream);
  }
}

void DeviceCache::emptyCache() {
  const std::lock_guard<std::mutex> lock(mutex_);
  processEvents(/*wait=*/true);
  releaseCached();
}

DeviceStats DeviceCache::stats() {
  const std::lock_guard<std::mutex> lock(mutex_);
  processEvents(/*wait=*/false);
  return stats_;
}

template <class F>
void DeviceCache::forEachStat(F f) {
  for (StatArray* stats :
       {&stats_.allocation, &stats_.segment, &stats_.active, &stats_.inactive_split,
        &stats_.allocated_bytes, &stats_.reserved_bytes, &stats_.active_bytes,
        &stats_.inactive_split_bytes, &stats_.requested_bytes}) {
    for (Stat& stat : *stats) f(stat);
  }
  f(stats_.oversize_allocations);
  f(stats_.oversize_segments);
}

void DeviceCache::resetAccumulatedStats() {
  const std::lock_guard<std::mutex> lock(mutex_);
  forEachStat([](Stat& stat) { stat.reset_accumulated(); });
  stats_.num_alloc_retries = stats_.num_ooms = stats_.num_sync_all_streams = 0;
  stats_.num_device_alloc = stats_.num_device_free = 0;
}

void DeviceCache::resetPeakStats() {
  const std::lock_guard<std::mutex> lock(mutex_);
  forEachStat([](Stat& stat) { stat.reset_peak(); });
}

void DeviceCache::setFraction(double fraction) {
  size_t available = 0, total = 0;
  ACCEL_CHECK(accelMemGetInfo(index_, &available, &total));
  const std::lock_guard<std::mutex> lock(mutex_);
  limit_ = fraction >= 1 ? SIZE_MAX : static_cast<size_t>(fraction * static_cast<double>(total));
}

void DeviceCache::insertFree(Block* block) {
  block->pool->free.insert(block);
  if (block->isSplit()) changeInactive(block, 1);
}

void DeviceCache::eraseFree(Block* block) {
  block->pool->free.erase(block);
  if (block->isSplit()) changeInactive(block, -1);
}

void DeviceCache::changeInactive(const Block* block, int sign) {
  change(stats_.inactive_split, block->pool, sign);
  change(stats_.inactive_split_bytes, block->pool, sign * static_cast<int64_t>(block->size));
}

Pool* DeviceCache::poolFor(size_t size) {
  return size <= kSmallLimit ? &small_ : &large_;
}

Block* DeviceCache::takeFree(size_t size, c10::StreamId stream) {
  Pool* pool = poolFor(size);
  Block key{index_, stream, nullptr, size, pool};
  const auto found = pool->free.lower_bound(&key);
  if (found == pool->free.end() || (*found)->stream != stream) return nullptr;
  Block* block = *found;
  eraseFree(block);
  return block;
}

Block* DeviceCache::newSegment(size_t size, c10::StreamId stream) {
  Pool* pool = poolFor(size);
  const size_t bytes = size <= kSmallLimit ? kSmallSegment
                       : size < kMediumLimit
                           ? kLargeSegment
                           : roundUp(std::min(size, SIZE_MAX / 2), kLargeRounding);
  if (bytes > limit_ || reserved() > limit_ - bytes) return nullptr;
  void* address = nullptr;
  const accelError_t error = accelMalloc(index_, bytes, &address);
  if (error == ACCEL_ERROR_OUT_OF_MEMORY) return nullptr;
  ACCEL_CHECK(error);
  change(stats_.segment, pool, 1);
  change(stats_.reserved_bytes, pool, static_cast<int64_t>(bytes));
  ++stats_.num_device_alloc;
  return new Block{index_, stream, static_cast<char*>(address), bytes, pool};
}

Block* DeviceCache::handOut(Block* block, size_t size, size_t requested) {
  const size_t rest = block->size - size;
  if (block->pool == &small_ ? rest >= kAlignment : rest > kSmallLimit) {
    auto* remaining = new Block{index_, block->stream, block->address + size, rest, block->pool};
    remaining->previous = block;
    remaining->next = block->next;
    if (block->next) block->next->previous = remaining;
    block->next = remaining;
    block->size = size;
    insertFree(remaining);
  }
  block->allocated = true;
  block->requested = requested;
  change(stats_.allocation, block->pool, 1);
  change(stats_.allocated_bytes, block->pool, static_cast<int64_t>(block->size));
  change(stats_.requested_bytes, block->pool, static_cast<int64_t>(requested));
  change(stats_.active, block->pool, 1);
  change(stats_.active_bytes, block->pool, static_cast<int64_t>(block->size));
  report(block->address, static_cast<int64_t>(block->size));
  return block;
}

void DeviceCache::release(Block* block) {
  change(stats_.active, block->pool, -1);
  change(stats_.active_bytes, block->pool, -static_cast<int64_t>(block->size));
  const auto isFree = [](const Block* b) { return b && !b->allocated && b->pending_events == 0; };
  if (Block* before = block->previous; isFree(before)) {
    eraseFree(before);
    block->address = before->address;
    block->size += before->size;
    block->previous = before->previous;
    if (before->previous) before->previous->next = block;
    delete before;
  }
  if (Block* after = block->next; isFree(after)) {
    eraseFree(after);
    block->size += after->size;
    block->next = after->next;
    if (after->next) after->next->previous = block;
    delete after;
  }
  insertFree(block);
}

accelEvent_t DeviceCache::recordEvent(const c10::Stream& stream) noexcept {
  accelEvent_t event = nullptr;
  try {
    ACCEL_CHECK(accelEventCreate(stream.device_index(), ACCEL_EVENT_DISABLE_TIMING, &event));
    ACCEL_CHECK(accelEventRecord(event, driverStream(stream)));
    return event;
  } catch (...) {  // the driver was shut down: the stream has run dry
    if (event) (void)accelEventDestroy(event);
    return nullptr;
  }
}

void DeviceCache::processEvents(bool wait) {
  if (wait && !pending_.empty()) ++stats_.num_sync_all_streams;
  for (auto entry = pending_.begin(); entry != pending_.end();) {
    const auto [event, block] = *entry;
    // Nothing here may take the device's pending error away from the caller, as waiting through
    // accelEventSynchronize would.
    if (wait) {
      waitFor(event);
    } else if (accelEventQuery(event) == ACCEL_ERROR_NOT_READY) {
      ++entry;
      continue;
    }
    (void)accelEventDestroy(event);
    entry = pending_.erase(entry);
    if (--block->pending_events == 0) release(block);
  }
}

void DeviceCache::waitFor(accelEvent_t event) {
  while (accelEventQuery(event) == ACCEL_ERROR_NOT_READY) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void DeviceCache::releaseCached() {
  for (Pool* pool : {&small_, &large_}) {
    for (auto entry = pool->free.begin(); entry != pool->free.end();) {
      Block* block = *entry;
      ++entry;
      if (block->isSplit()) continue;
      eraseFree(block);
      ACCEL_CHECK(accelFree(block->address));
      change(stats_.segment, pool, -1);
      change(stats_.reserved_bytes, pool, -static_cast<int64_t>(block->size));
      ++stats_.num_device_free;
      delete block;
    }
  }
}

void DeviceCache::report(void* address, int64_t bytes) const {
  c10::reportMemoryUsageToProfiler(address, bytes, allocated(), reserved(),
                                   c10::Device(kAccel, index_));
}

void DeviceCache::raiseOutOfMemory(size_t requested) {
  size_t available = 0, total = 0;
  (void)accelMemGetInfo(index_, &available, &total);
  const std::lock_guard<std::mutex> lock(mutex_);
  c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(requested), allocated(), reserved(),
                                   c10::Device(kAccel, index_));
  std::string limit;
  if (limit_ != SIZE_MAX) limit = " of which " + readable(limit_) + " may be used";
  throw c10::OutOfMemoryError(
      {__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
      c10::str("accel out of memory. Tried to allocate ", readable(requested), ". accel:",
               static_cast<int>(index_), " has a total capacity of ", readable(total), limit, ", ",
               readable(available), " free. Allocated by PyTorch: ", readable(allocated()),
               "; reserved by PyTorch but unallocated: ", readable(reserved() - allocated()), "."));
}

}  // namespace torch_accel
