// A stream: a queue in order, and the worker thread that runs it.
//
// Work is numbered from 1 in the order of queueing. `queued` and `finished` count; a stream is idle
// when they are equal, and an event is complete when `finished` has reached its number. Both
// questions have one answer at a time, so "the event is complete" and "the stream is idle" agree.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "accel_driver.h"
#include "device.h"

namespace torch_accel::driver {

struct Task {
  accelKernel_t kernel;
  void* argument;
  accelKernelCleanup_t cleanup;
  std::string name;
};

}  // namespace torch_accel::driver

struct accelStream : std::enable_shared_from_this<accelStream> {
 public:
  using Device = torch_accel::driver::Device;
  using Task = torch_accel::driver::Task;

  accelStream(Device& device, int priority) : device_(device), priority_(priority) {}

  Device& device() const { return device_; }
  int priority() const { return priority_; }

  // Queues a task and starts the worker if there is none; `position` (may be null) gets its number.
  // On failure the task's argument is untouched.
  accelError_t push(Task task, uint64_t* position = nullptr);

  uint64_t queued() const { return queued_.load(std::memory_order_acquire); }
  bool finished(uint64_t position) const {
    return finished_.load(std::memory_order_acquire) >= position;
  }
  // Waits until the work numbered `position` has finished.
  void waitFor(uint64_t position);

  // No more work is accepted; the worker ends after what is queued.
  void close();
  // close(), and leaves the device once drained. The handle is dead.
  void destroy();

  // The worker's loop.
  void work();

 private:
  enum class Worker { kNone, kRunning, kEnded };

  // Waits for work and takes all there is; false when the stream is closed and drained.
  bool take(std::vector<Task>& batch, uint64_t done);
  void run(const Task& task);
  void setFinished(uint64_t position);
  void closeLocked();
  void retire();

  Device& device_;
  const int priority_;

  // The queue. queued_ changes under the mutex and is read without.
  std::mutex mutex_;
  std::condition_variable work_arrived_;
  std::vector<Task> tasks_;
  std::atomic<uint64_t> queued_{0};
  bool asleep_ = false;  // the worker waits on work_arrived_ and nobody has called it yet
  bool closed_ = false;
  bool destroyed_ = false;
  Worker worker_ = Worker::kNone;

  // Completion. wake_at_ is the lowest number that a sleeping waiter wants: other completions cost
  // the worker no lock and wake nobody.
  std::atomic<uint64_t> finished_{0};
  std::atomic<uint64_t> wake_at_{std::numeric_limits<uint64_t>::max()};
  std::mutex finished_mutex_;
  std::condition_variable work_finished_;
};

namespace torch_accel::driver {

// Queues a callable of the driver's own; it may throw.
template <class F>
accelError_t pushCallable(accelStream& stream, const char* name, F callable,
                          uint64_t* position = nullptr) {
  auto owned = std::make_unique<F>(std::move(callable));
  const accelKernel_t kernel = [](void* argument, char*, size_t) {
    (*static_cast<F*>(argument))();
    return 0;
  };
  const accelKernelCleanup_t cleanup = [](void* argument) { delete static_cast<F*>(argument); };
  const accelError_t error = stream.push({kernel, owned.get(), cleanup, name}, position);
  if (error == ACCEL_SUCCESS) owned.release();
  return error;
}

}  // namespace torch_accel::driver
