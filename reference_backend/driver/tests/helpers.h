// What many tests of the driver need: callables as kernels, gates, streams and events.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "testing.h"

namespace driver_tests {

// A gate that kernels wait at until it is opened. Nobody waits longer than 20 s.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

  void pass() {
    std::unique_lock lock(mutex_);
    CHECK(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return open_; }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// Queues a callable; the result of accelLaunchKernel.
inline accelError_t tryLaunch(accelStream_t stream, std::function<void()> callable,
                              const char* name = "kernel") {
  using Callable = std::function<void()>;
  auto owned = std::make_unique<Callable>(std::move(callable));
  const accelError_t error = accelLaunchKernel(
      stream, name,
      [](void* argument, char*, size_t) {
        (*static_cast<Callable*>(argument))();
        return 0;
      },
      owned.get(), [](void* argument) { delete static_cast<Callable*>(argument); });
  if (error == ACCEL_SUCCESS) owned.release();
  return error;
}

inline void launch(accelStream_t stream, std::function<void()> callable) {
  CHECK_OK(tryLaunch(stream, std::move(callable)));
}

// A kernel that reports failure with a message.
inline void launchFailing(accelStream_t stream, const char* name, const char* message) {
  CHECK_OK(accelLaunchKernel(
      stream, name,
      [](void* argument, char* buffer, size_t size) {
        snprintf(buffer, size, "%s", static_cast<const char*>(argument));
        return 1;
      },
      const_cast<char*>(message), nullptr));
}

inline accelStream_t makeStream(int device = 0, int priority = 0) {
  accelStream_t stream = nullptr;
  CHECK_OK(accelStreamCreate(device, priority, &stream));
  CHECK(stream != nullptr);
  return stream;
}

// An event that is destroyed with its scope, or by hand after release().
class Event {
 public:
  explicit Event(int device = 0, unsigned flags = ACCEL_EVENT_DEFAULT) {
    CHECK_OK(accelEventCreate(device, flags, &event_));
    CHECK(event_ != nullptr);
  }
  ~Event() {
    if (event_) CHECK_OK(accelEventDestroy(event_));
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  operator accelEvent_t() const { return event_; }
  accelEvent_t release() { return std::exchange(event_, nullptr); }

 private:
  accelEvent_t event_ = nullptr;
};

inline char* allocate(size_t size, int device = 0) {
  void* address = nullptr;
  CHECK_OK(accelMalloc(device, size, &address));
  CHECK(address != nullptr);
  return static_cast<char*>(address);
}

inline size_t freeBytes(int device = 0) {
  size_t bytes = 0;
  CHECK_OK(accelMemGetInfo(device, &bytes, nullptr));
  return bytes;
}

// The bytes of device memory, through a queued copy.
inline std::vector<unsigned char> bytesOf(const void* address, size_t size, accelStream_t stream) {
  std::vector<unsigned char> bytes(size);
  CHECK_OK(accelMemcpyAsync(bytes.data(), address, size, stream));
  CHECK_OK(accelStreamSynchronize(stream));
  return bytes;
}

// Threads before the test starts any. The thread sanitizer adds one of its own with the first.
inline int threadsAtStart() {
  std::thread([] {}).join();
  return threadCount();
}

inline void sleepMilliseconds(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

}  // namespace driver_tests
