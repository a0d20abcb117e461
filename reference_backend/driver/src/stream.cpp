// Streams: queueing, the worker's loop, waiting.
//
// A vendor's driver writes to a hardware queue instead; what callers may rely on is the same.
#include "stream.h"

#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "error.h"
#include "worker.h"

using torch_accel::driver::Task;

namespace {

using torch_accel::driver::kKernelMessageSize;

// How long a worker without work, or a thread that waits, polls before it sleeps. Waking a sleeper
// costs 5 to 25 us; work of an eager program usually follows within this time.
constexpr std::chrono::microseconds kSpin{30};
// A queue that grew beyond this gives its memory back once empty.
constexpr size_t kKeptCapacity = 4096;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Polls `ready` for about kSpin, and lets other threads have the core: what is waited for may need
// it. (With more runnable threads than cores, polling without that more than doubles the time of
// small kernels and their synchronisation.)
template <class F>
bool spinUntil(F&& ready) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      relax();
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < deadline);
  return ready();
}

}  // namespace

accelError_t accelStream::push(Task task, uint64_t* position) {
  std::shared_ptr<accelStream> keep;  // the stream may be destroyed between unlock and notify
  {
    const std::lock_guard lock(mutex_);
    if (closed_) {
      return torch_accel::driver::fail(
          ACCEL_ERROR_SHUT_DOWN, "%s: the stream was destroyed or shut down", task.name.c_str());
    }
    if (worker_ == Worker::kNone) {
      const accelError_t error = torch_accel::driver::startWorker(shared_from_this());
      if (error != ACCEL_SUCCESS) return error;
      worker_ = Worker::kRunning;
      device_.markStarted();
    }
    tasks_.push_back(std::move(task));
    const uint64_t number = queued_.load(std::memory_order_relaxed) + 1;
    if (position) *position = number;
    queued_.store(number, std::memory_order_release);
    if (asleep_) {
      asleep_ = false;
      keep = shared_from_this();
    }
  }
  if (keep) keep->work_arrived_.notify_one();
  return ACCEL_SUCCESS;
}

void accelStream::waitFor(uint64_t position) {
  if (finished(position)) return;
  if (spinUntil([&] { return finished(position); })) return;
  std::unique_lock lock(finished_mutex_);
  for (;;) {
    // Order matters, here and in setFinished(): first say what is wanted, then look. Both sides use
    // sequentially consistent operations, so at least one of them sees the other.
    if (position < wake_at_.load(std::memory_order_relaxed)) wake_at_.store(position);
    if (finished_.load() >= position) return;
    work_finished_.wait(lock);
  }
}

void accelStream::setFinished(uint64_t position) {
  finished_.store(position);
  if (position < wake_at_.load()) return;
  {
    const std::lock_guard lock(finished_mutex_);
    wake_at_.store(std::numeric_limits<uint64_t>::max());  // who still waits sets it again
  }
  work_finished_.notify_all();
}

bool accelStream::take(std::vector<Task>& batch, uint64_t done) {
  spinUntil([&] { return queued_.load(std::memory_order_acquire) != done; });
  std::unique_lock lock(mutex_);
  while (tasks_.empty()) {
    if (closed_) return false;
    asleep_ = true;
    work_arrived_.wait(lock, [&] { return !asleep_; });
  }
  batch.swap(tasks_);
  return true;
}

void accelStream::run(const Task& task) {
  char message[kKernelMessageSize];
  message[0] = '\0';
  try {
    const int status = task.kernel(task.argument, message, sizeof(message));
    message[sizeof(message) - 1] = '\0';
    if (status != 0) {
      if (message[0] == '\0') {
        std::snprintf(message, sizeof(message), "the kernel returned %d", status);
      }
      device_.setPending(task.name, message);
    }
  } catch (const std::exception& e) {
    device_.setPending(task.name, e.what());
  } catch (...) {
    device_.setPending(task.name, "the kernel threw something that is no std::exception");
  }
  if (!task.cleanup) return;
  try {
    task.cleanup(task.argument);
  } catch (...) {
    device_.setPending(task.name, "the cleanup threw an exception");
  }
}

void accelStream::work() {
  std::vector<Task> batch;
  uint64_t done = 0;
  while (take(batch, done)) {
    for (const Task& task : batch) {
      run(task);
      setFinished(++done);
    }
    batch.clear();
    if (batch.capacity() > kKeptCapacity) batch.shrink_to_fit();
  }
  retire();
}

void accelStream::retire() {
  bool leave = false;
  {
    const std::lock_guard lock(mutex_);
    worker_ = Worker::kEnded;
    leave = destroyed_;
  }
  if (leave) device_.remove(this);
}

void accelStream::closeLocked() {
  closed_ = true;
  if (asleep_) {
    asleep_ = false;
    work_arrived_.notify_one();
  }
}

void accelStream::close() {
  const std::lock_guard lock(mutex_);
  closeLocked();
}

void accelStream::destroy() {
  const std::shared_ptr<accelStream> keep = shared_from_this();
  bool leave = false;
  {
    const std::lock_guard lock(mutex_);
    closeLocked();
    destroyed_ = true;
    leave = worker_ != Worker::kRunning;  // else the worker leaves, in retire()
  }
  if (leave) device_.remove(this);
}

using namespace torch_accel::driver;

accelError_t accelStreamCreate(int device, int priority, accelStream_t* stream) {
  return guarded(__func__, [&] {
    if (!stream) return fail(ACCEL_ERROR_INVALID_VALUE, "accelStreamCreate: stream is null");
    if (priority != 0 && priority != -1) {
      return fail(ACCEL_ERROR_INVALID_VALUE, "accelStreamCreate: priority %d is not 0 or -1",
                  priority);
    }
    Device* found = nullptr;
    if (const accelError_t error = findDevice("accelStreamCreate", device, &found)) return error;
    if (const accelError_t error = checkUsable("accelStreamCreate")) return error;
    prepareForFork();
    auto created = std::make_shared<accelStream>(*found, priority);
    if (const accelError_t error = found->add(created)) return error;
    *stream = created.get();
    return ACCEL_SUCCESS;
  });
}

accelError_t accelStreamDestroy(accelStream_t stream) {
  return guarded(__func__, [&] {
    if (!stream) return fail(ACCEL_ERROR_INVALID_VALUE, "accelStreamDestroy: stream is null");
    // In a forked child the worker does not exist and the mutex may be held for ever.
    if (checkNotForked("accelStreamDestroy") != ACCEL_SUCCESS) return ACCEL_SUCCESS;
    stream->destroy();
    return ACCEL_SUCCESS;
  });
}

accelError_t accelStreamGetDevice(accelStream_t stream, int* device) {
  if (!stream || !device) {
    return fail(ACCEL_ERROR_INVALID_VALUE, "accelStreamGetDevice: %s is null",
                stream ? "device" : "stream");
  }
  *device = stream->device().index();
  return ACCEL_SUCCESS;
}

accelError_t accelStreamQuery(accelStream_t stream) {
  if (!stream) return fail(ACCEL_ERROR_INVALID_VALUE, "accelStreamQuery: stream is null");
  if (const accelError_t error = checkNotForked("accelStreamQuery")) return error;
  if (stream->finished(stream->queued())) return ACCEL_SUCCESS;
  return ACCEL_ERROR_NOT_READY;
}

accelError_t accelStreamSynchronize(accelStream_t stream) {
  return guarded(__func__, [&] {
    if (!stream) return fail(ACCEL_ERROR_INVALID_VALUE, "accelStreamSynchronize: stream is null");
    if (const accelError_t error = checkMayWait("accelStreamSynchronize")) return error;
    const std::shared_ptr<accelStream> keep = stream->shared_from_this();
    keep->waitFor(keep->queued());
    return keep->device().takePending();
  });
}
