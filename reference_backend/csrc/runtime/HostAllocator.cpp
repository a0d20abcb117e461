// Pinned host memory: PyTorch's caching host allocator over the driver's page-locked memory.
//
// A block that a queued copy reads or writes is announced with record_event; when it is freed, it
// waits in the cache until the events recorded then are complete.
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/Stream.h>

#include <cstring>
#include <utility>

#include "runtime/Allocator.h"
#include "runtime/Device.h"
#include "runtime/Error.h"
#include "runtime/Process.h"
#include "runtime/Stream.h"

namespace torch_accel {
namespace {

// Owns a driver event.
class HostEvent {
 public:
  explicit HostEvent(const c10::Stream& stream) {
    const accelStream_t handle = driverStream(stream);
    ACCEL_CHECK(accelEventCreate(stream.device_index(), ACCEL_EVENT_DISABLE_TIMING, &event_));
    const accelError_t error = accelEventRecord(event_, handle);
    if (error != ACCEL_SUCCESS) {
      (void)accelEventDestroy(std::exchange(event_, nullptr));
      ACCEL_CHECK(error);
    }
  }
  HostEvent(HostEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  HostEvent& operator=(HostEvent&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  HostEvent(const HostEvent&) = delete;
  HostEvent& operator=(const HostEvent&) = delete;
  ~HostEvent() {
    if (event_) (void)accelEventDestroy(event_);
  }
  bool ready() const { return accelEventQuery(event_) != ACCEL_ERROR_NOT_READY; }

 private:
  accelEvent_t event_ = nullptr;
};

struct HostAllocatorImpl final : at::CachingHostAllocatorImpl<c10::Stream, HostEvent> {
  void copy_data(void* destination, const void* source, std::size_t count) const override {
    std::memcpy(destination, source, count);
  }

 private:
  using Block = at::HostBlock<c10::Stream>;

  void allocate_host_memory(size_t size, void** address) override {
    ACCEL_CHECK(accelHostAlloc(size, address));
  }
  void free_block(Block* block) override { ACCEL_CHECK(accelHostFree(block->ptr_)); }
  void record_stream(std::optional<std::vector<HostEvent>>& events, c10::Stream stream) override {
    events->push_back(HostEvent(stream));
  }
  bool query_event(HostEvent& event) override { return event.ready(); }
  c10::Stream get_current_stream() const override { return currentStream(); }
  bool stream_is_capturing(c10::Stream) const override { return false; }
};

void freePinned(void* context);

using HostAllocator = at::CachingHostAllocatorInterface<HostAllocatorImpl, freePinned>;

HostAllocator* hostAllocator() {
  static auto* allocator = new HostAllocator();  // leaked: tensors may outlive static destruction
  return allocator;
}

void freePinned(void* context) {
  // In a forked child, a lock may be held for ever by a thread that no longer exists: leak.
  if (!inBadFork()) hostAllocator()->free(context);
}

const bool registered = [] {
  at::setHostAllocator(kAccel, hostAllocator());
  return true;
}();

}  // namespace

c10::Allocator* pinnedAllocator() {
  return hostAllocator();
}

bool isPinnedPointer(const void* address) {
  if (!address) return false;
  accelMemoryKind kind = ACCEL_MEMORY_UNKNOWN;
  return accelPointerGetAttributes(address, &kind, nullptr) == ACCEL_SUCCESS &&
         kind == ACCEL_MEMORY_HOST;
}

void recordPinnedUse(const void* address, void* context, const c10::Stream& stream) {
  hostAllocator()->record_event(const_cast<void*>(address), context, stream);
}

}  // namespace torch_accel
