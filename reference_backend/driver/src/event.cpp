// Events. Each record makes a version: a place in a stream's order, and the time when it was
// reached. Versions are shared: a queued record or wait keeps its own, whatever becomes of the
// event.
//
// A vendor's driver has fences or semaphores with a time stamp for this.
#include <chrono>
#include <memory>
#include <mutex>

#include "device.h"
#include "error.h"
#include "stream.h"
#include "worker.h"

namespace torch_accel::driver {
namespace {

using Clock = std::chrono::steady_clock;

struct Version {
  std::shared_ptr<accelStream> stream;
  uint64_t position = 0;
  Clock::time_point time;  // written before the stream's count reaches `position`

  bool complete() const { return stream->finished(position); }
};

}  // namespace
}  // namespace torch_accel::driver

struct accelEvent {
  accelEvent(torch_accel::driver::Device& device, unsigned flags) : device(device), flags(flags) {}

  std::shared_ptr<torch_accel::driver::Version> version() {
    const std::lock_guard lock(mutex);
    return last;
  }

  torch_accel::driver::Device& device;
  const unsigned flags;
  std::mutex mutex;
  std::shared_ptr<torch_accel::driver::Version> last;  // null: never recorded
};

using namespace torch_accel::driver;

accelError_t accelEventCreate(int device, unsigned flags, accelEvent_t* event) {
  return guarded(__func__, [&] {
    if (!event) return fail(ACCEL_ERROR_INVALID_VALUE, "accelEventCreate: event is null");
    if ((flags & ~ACCEL_EVENT_DISABLE_TIMING) != 0) {
      return fail(ACCEL_ERROR_INVALID_VALUE, "accelEventCreate: unknown flags 0x%x", flags);
    }
    Device* found = nullptr;
    if (const accelError_t error = findDevice("accelEventCreate", device, &found)) return error;
    if (const accelError_t error = checkNotForked("accelEventCreate")) return error;
    *event = new accelEvent(*found, flags);
    return ACCEL_SUCCESS;
  });
}

accelError_t accelEventDestroy(accelEvent_t event) {
  if (!event) return fail(ACCEL_ERROR_INVALID_VALUE, "accelEventDestroy: event is null");
  // In a forked child the last reference to a stream may go; its queue must not be touched.
  if (checkNotForked("accelEventDestroy") == ACCEL_SUCCESS) delete event;
  return ACCEL_SUCCESS;
}

accelError_t accelEventRecord(accelEvent_t event, accelStream_t stream) {
  return guarded(__func__, [&] {
    if (!event || !stream) {
      return fail(ACCEL_ERROR_INVALID_VALUE, "accelEventRecord: %s is null",
                  event ? "stream" : "event");
    }
    if (const accelError_t error = checkUsable("accelEventRecord")) return error;
    if (&event->device != &stream->device()) {
      return fail(ACCEL_ERROR_WRONG_DEVICE,
                  "accelEventRecord: the event is device %d's, the stream device %d's",
                  event->device.index(), stream->device().index());
    }
    auto version = std::make_shared<Version>();
    version->stream = stream->shared_from_this();
    const std::lock_guard lock(event->mutex);
    const uint64_t queued = stream->queued();
    if (stream->finished(queued)) {  // idle: this place in the order has been reached
      version->position = queued;
      version->time = Clock::now();
    } else {
      const accelError_t error = pushCallable(
          *stream, "accelEventRecord", [version] { version->time = Clock::now(); },
          &version->position);
      if (error != ACCEL_SUCCESS) return error;
    }
    event->last = std::move(version);
    return ACCEL_SUCCESS;
  });
}

accelError_t accelStreamWaitEvent(accelStream_t stream, accelEvent_t event) {
  return guarded(__func__, [&] {
    if (!event || !stream) {
      return fail(ACCEL_ERROR_INVALID_VALUE, "accelStreamWaitEvent: %s is null",
                  event ? "stream" : "event");
    }
    if (const accelError_t error = checkUsable("accelStreamWaitEvent")) return error;
    const auto version = event->version();
    // The order of the queue is wait enough on the recording stream itself.
    if (!version || version->complete() || version->stream.get() == stream) return ACCEL_SUCCESS;
    return pushCallable(*stream, "accelStreamWaitEvent",
                        [version] { version->stream->waitFor(version->position); });
  });
}

accelError_t accelEventQuery(accelEvent_t event) {
  return guarded(__func__, [&] {
    if (!event) return fail(ACCEL_ERROR_INVALID_VALUE, "accelEventQuery: event is null");
    if (const accelError_t error = checkNotForked("accelEventQuery")) return error;
    const auto version = event->version();
    return !version || version->complete() ? ACCEL_SUCCESS : ACCEL_ERROR_NOT_READY;
  });
}

accelError_t accelEventSynchronize(accelEvent_t event) {
  return guarded(__func__, [&] {
    if (!event) return fail(ACCEL_ERROR_INVALID_VALUE, "accelEventSynchronize: event is null");
    if (const accelError_t error = checkMayWait("accelEventSynchronize")) return error;
    Device& device = event->device;  // the event may be destroyed during the wait
    if (const auto version = event->version()) version->stream->waitFor(version->position);
    return device.takePending();
  });
}

accelError_t accelEventElapsedTime(accelEvent_t start, accelEvent_t end, double* milliseconds) {
  return guarded(__func__, [&] {
    if (!start || !end || !milliseconds) {
      return fail(ACCEL_ERROR_INVALID_VALUE, "accelEventElapsedTime: %s is null",
                  !start ? "start"
                  : !end ? "end"
                         : "milliseconds");
    }
    if (const accelError_t error = checkNotForked("accelEventElapsedTime")) return error;
    if (((start->flags | end->flags) & ACCEL_EVENT_DISABLE_TIMING) != 0) {
      return fail(ACCEL_ERROR_NO_TIMING,
                  "accelEventElapsedTime: both events must be created with timing enabled");
    }
    if (&start->device != &end->device) {
      return fail(ACCEL_ERROR_WRONG_DEVICE,
                  "accelEventElapsedTime: the events belong to devices %d and %d",
                  start->device.index(), end->device.index());
    }
    const auto first = start->version();
    const auto second = end->version();
    if (!first || !second) {
      return fail(ACCEL_ERROR_NOT_RECORDED,
                  "accelEventElapsedTime: both events must be recorded first");
    }
    if (!first->complete() || !second->complete()) {
      return fail(ACCEL_ERROR_NOT_READY, "accelEventElapsedTime: an event is not complete yet");
    }
    *milliseconds = std::chrono::duration<double, std::milli>(second->time - first->time).count();
    return ACCEL_SUCCESS;
  });
}
