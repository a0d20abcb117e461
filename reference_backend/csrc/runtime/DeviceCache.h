// The cache of one device's memory: segments from the driver, split into blocks, kept per stream.
//
// The scheme is that of PyTorch's caching allocators. Memory comes from the driver in segments,
// each for one stream; a segment is split into blocks on request, and neighbouring free blocks
// merge.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Stream.h>
#include <c10/util/SmallVector.h>

#include <deque>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "accel_driver.h"

namespace torch_accel {

struct Pool;

// A piece of a segment, free or handed out. Blocks of a segment form a list in address order.
struct Block {
  c10::DeviceIndex device;
  c10::StreamId stream;  // the stream that the segment belongs to
  char* address;
  size_t size;
  Pool* pool;
  size_t requested = 0;
  Block* previous = nullptr;
  Block* next = nullptr;
  bool allocated = false;
  int pending_events = 0;                   // freed, but these uses have not completed
  c10::SmallVector<c10::Stream, 1> uses{};  // other streams it was announced on

  bool isSplit() const { return previous || next; }
};

struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    return std::tie(a->stream, a->size, a->address) < std::tie(b->stream, b->size, b->address);
  }
};

struct Pool {
  c10::CachingAllocator::StatType type;
  std::set<Block*, BySize> free;
};

// The cache of one device. Its functions may be called from any thread.
class DeviceCache {
 public:
  explicit DeviceCache(c10::DeviceIndex index) : index_(index) {}

  // A block of at least `requested` (> 0) bytes; raises OutOfMemoryError when there is no room even
  // with nothing cached.
  Block* allocate(size_t requested, c10::StreamId stream);

  // The block may be handed out again, on its stream at once; what recordUse announced comes first.
  void free(Block* block);

  // Announces a use on another stream: once freed, the block waits for what is queued there by
  // then.
  void recordUse(Block* block, const c10::Stream& stream);

  // Gives free segments back to the driver, after the uses that were announced. May wait.
  void emptyCache();

  c10::CachingDeviceAllocator::DeviceStats stats();
  void resetAccumulatedStats();
  void resetPeakStats();
  // Limits what may be reserved to a fraction of the device's memory.
  void setFraction(double fraction);

 private:
  template <class F>
  void forEachStat(F f);

  size_t reserved() const { return static_cast<size_t>(stats_.reserved_bytes[0].current); }
  size_t allocated() const { return static_cast<size_t>(stats_.allocated_bytes[0].current); }

  // Blocks in `pool->free` count as inactive_split when they are a part of a segment only. Whether
  // they are cannot change while they are in there: their neighbours are in use.
  void insertFree(Block* block);
  void eraseFree(Block* block);
  void changeInactive(const Block* block, int sign);

  Pool* poolFor(size_t size);

  // The smallest free block of the stream that is large enough, removed from the pool.
  Block* takeFree(size_t size, c10::StreamId stream);

  // Memory from the driver, or null when there is none left or the limit is reached.
  Block* newSegment(size_t size, c10::StreamId stream);

  // Cuts `block` to `size` if what remains is of use, and marks it as handed out.
  Block* handOut(Block* block, size_t size, size_t requested);

  // Returns a block to its pool, merged with its free neighbours.
  void release(Block* block);

  // An event after all work queued on the stream; null when there is no more such work to wait for.
  static accelEvent_t recordEvent(const c10::Stream& stream) noexcept;

  // Releases the blocks whose uses on other streams have completed.
  void processEvents(bool wait);

  // Polls: accelEventSynchronize would take the device's pending error away from its caller.
  static void waitFor(accelEvent_t event);

  // Gives every segment that is free as a whole back to the driver.
  void releaseCached();

  // Tells torch's memory profiler.
  void report(void* address, int64_t bytes) const;

  [[noreturn]] void raiseOutOfMemory(size_t requested);

  const c10::DeviceIndex index_;
  std::mutex mutex_;
  Pool small_{c10::CachingAllocator::StatType::SMALL_POOL, {}};
  Pool large_{c10::CachingAllocator::StatType::LARGE_POOL, {}};
  std::deque<std::pair<accelEvent_t, Block*>> pending_;
  c10::CachingDeviceAllocator::DeviceStats stats_;
  size_t limit_ = SIZE_MAX;
};

}  // namespace torch_accel
