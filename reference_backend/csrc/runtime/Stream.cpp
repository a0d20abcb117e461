// See Stream.h.
#include "runtime/Stream.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <mutex>

#include "runtime/Device.h"
#include "runtime/Error.h"
#include "runtime/Process.h"

namespace torch_accel {
namespace {

// Ids: 0 the default stream, then the pool of normal priority, then that of high priority. A pool
// is handed out in turn: with more streams than this alive at once, some share a driver stream.
constexpr int kMaxDevices = 64;
constexpr int kPoolSize = 32;
constexpr int kStreams = 1 + 2 * kPoolSize;

struct DeviceStreams {
  std::array<std::atomic<accelStream_t>, kStreams> handles{};
  std::mutex mutex;  // guards creation
  std::array<std::atomic<uint32_t>, 2> next{};
};

DeviceStreams& streamsOf(c10::DeviceIndex index) {
  // Leaked: streams are used until the very end of the process.
  static auto* all = new std::array<DeviceStreams, kMaxDevices>();
  return (*all)[static_cast<size_t>(index)];
}

thread_local std::array<int16_t, kMaxDevices> current_ids{};

c10::Stream makeStream(c10::DeviceIndex index, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kAccel, index), id);
}

void checkStream(const c10::Stream& stream) {
  TORCH_CHECK(stream.device_type() == kAccel, "expected a stream of an accel device, got one of ",
              stream.device());
  TORCH_CHECK(stream.device_index() >= 0 && stream.device_index() < deviceCount(),
              "no such stream: accel has no device ", static_cast<int>(stream.device_index()));
  TORCH_CHECK(stream.id() >= 0 && stream.id() < kStreams, "accel device ",
              static_cast<int>(stream.device_index()), " has no stream of id ", stream.id(),
              "; ids run from 0 to ", kStreams - 1);
}

accelStream_t createHandle(const c10::Stream& stream) {
  noteUse();
  DeviceStreams& streams = streamsOf(stream.device_index());
  std::atomic<accelStream_t>& slot = streams.handles[static_cast<size_t>(stream.id())];
  const std::lock_guard<std::mutex> lock(streams.mutex);
  accelStream_t handle = slot.load(std::memory_order_acquire);
  if (!handle) {
    const int priority = stream.id() > kPoolSize ? -1 : 0;
    ACCEL_CHECK(accelStreamCreate(stream.device_index(), priority, &handle));
    slot.store(handle, std::memory_order_release);
  }
  return handle;
}

}  // namespace

c10::Stream currentStream(c10::DeviceIndex index) {
  index = resolveDevice(index);
  return makeStream(index, current_ids[static_cast<size_t>(index)]);
}

c10::Stream defaultStream(c10::DeviceIndex index) {
  return makeStream(resolveDevice(index), 0);
}

c10::Stream exchangeStream(c10::Stream stream) {
  checkStream(stream);
  int16_t& id = current_ids[static_cast<size_t>(stream.device_index())];
  const c10::Stream previous = makeStream(stream.device_index(), id);
  id = static_cast<int16_t>(stream.id());
  return previous;
}

c10::Stream streamFromPool(c10::DeviceIndex index, int priority) {
  index = resolveDevice(index);
  const int pool = priority < 0 ? 1 : 0;
  const uint32_t turn = streamsOf(index).next[static_cast<size_t>(pool)].fetch_add(1);
  return makeStream(index, 1 + pool * kPoolSize + static_cast<int>(turn % kPoolSize));
}

accelStream_t driverStream(const c10::Stream& stream) {
  checkStream(stream);
  const accelStream_t handle = streamsOf(stream.device_index())
                                   .handles[static_cast<size_t>(stream.id())]
                                   .load(std::memory_order_acquire);
  return C10_LIKELY(handle != nullptr) ? handle : createHandle(stream);
}

bool queryStream(const c10::Stream& stream) {
  const accelError_t error = accelStreamQuery(driverStream(stream));
  if (error == ACCEL_ERROR_NOT_READY) return false;
  ACCEL_CHECK(error);
  return true;
}

void synchronizeStream(const c10::Stream& stream) {
  const accelStream_t handle = driverStream(stream);
  withoutGil([&] { ACCEL_CHECK(accelStreamSynchronize(handle)); });
}

}  // namespace torch_accel
