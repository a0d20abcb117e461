// Worker threads. They are joined, not detached: after accelShutdown none runs, not even the
// destructors of its thread-local objects. A worker that ends joins the one that ended before it,
// so no caller waits for that and at most one thread is left to join.
//
// A vendor's driver has the card's queues in their place, but meets the same questions: what a
// forked child may do, and what happens at exit.
#include "worker.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>

#include "device.h"
#include "error.h"
#include "memory.h"
#include "stream.h"

namespace torch_accel::driver {
namespace {

struct Workers {
  std::atomic<bool> started{false};  // a worker was started in this process or an ancestor
  std::atomic<bool> forked{false};   // this is a child, and `started` was set at the fork
  std::atomic<bool> shut_down{false};
  std::mutex shutdown_mutex;  // one accelShutdown at a time
  std::mutex mutex;           // guards what follows
  std::condition_variable ended;
  size_t live = 0;
  std::optional<pthread_t> unjoined;  // the worker that ended last
};

Workers& workers() {
  static auto* const instance = new Workers;  // outlives statics: workers may still run at exit
  return *instance;
}

thread_local bool on_worker = false;

// A worker takes no signals that are meant for the process; faults of its own kernels it does.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
      sigdelset(&blocked, fault);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// Refused without privileges (RLIMIT_NICE): the stream is then an ordinary one.
void preferThisThread() {
  constexpr int kHighPriorityNice = -5;
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kHighPriorityNice);
}

void* runWorker(void* argument) {
  on_worker = true;
  {
    const std::unique_ptr<std::shared_ptr<accelStream>> holder(
        static_cast<std::shared_ptr<accelStream>*>(argument));
    accelStream& stream = **holder;
    char name[16];
    std::snprintf(name, sizeof(name), "accel:%d", stream.device().index());
    pthread_setname_np(pthread_self(), name);
    if (stream.priority() < 0) preferThisThread();
    stream.work();
  }
  Workers& all = workers();
  std::optional<pthread_t> before = pthread_self();
  {
    const std::lock_guard lock(all.mutex);
    before.swap(all.unjoined);
    --all.live;
    all.ended.notify_all();
  }
  if (before) pthread_join(*before, nullptr);
  return nullptr;
}

void beforeFork() {
  for (const auto& device : devices()) device->lockForFork();
  lockMemoryForFork();
  workers().mutex.lock();
}

void afterForkInParent() {
  workers().mutex.unlock();
  unlockMemoryAfterFork();
  for (const auto& device : devices()) device->unlockAfterFork();
}

void afterForkInChild() {
  Workers& all = workers();
  if (all.started.load(std::memory_order_relaxed)) {
    all.forked.store(true, std::memory_order_relaxed);
  }
  afterForkInParent();
}

}  // namespace

accelError_t checkNotForked(const char* function) {
  if (!workers().forked.load(std::memory_order_relaxed)) return ACCEL_SUCCESS;
  return fail(ACCEL_ERROR_FORKED,
              "%s: this process was forked from one that was using the device, and cannot use it; "
              "start the process with the 'spawn' method, or use the device only after the fork",
              function);
}

accelError_t checkUsable(const char* function) {
  if (const accelError_t error = checkNotForked(function)) return error;
  if (!workers().shut_down.load(std::memory_order_acquire)) return ACCEL_SUCCESS;
  return fail(ACCEL_ERROR_SHUT_DOWN, "%s: the driver was shut down", function);
}

accelError_t checkMayWait(const char* function) {
  if (const accelError_t error = checkNotForked(function)) return error;
  if (!on_worker) return ACCEL_SUCCESS;
  return fail(ACCEL_ERROR_INVALID_VALUE,
              "%s: called from a kernel or its cleanup, which would wait for itself", function);
}

accelError_t startWorker(const std::shared_ptr<accelStream>& stream) {
  prepareForFork();
  Workers& all = workers();
  auto argument = std::make_unique<std::shared_ptr<accelStream>>(stream);
  {
    const std::lock_guard lock(all.mutex);
    ++all.live;
    all.started.store(true, std::memory_order_relaxed);
  }
  pthread_t thread;
  int status = 0;
  {
    const SignalsBlocked blocked;
    status = pthread_create(&thread, nullptr, runWorker, argument.get());
  }
  if (status != 0) {
    const std::lock_guard lock(all.mutex);
    --all.live;
    all.ended.notify_all();
    return fail(ACCEL_ERROR_OUT_OF_MEMORY, "cannot start a stream's worker thread: %s",
                std::strerror(status));
  }
  argument.release();  // the worker's
  return ACCEL_SUCCESS;
}

void prepareForFork() {
  static const int registered = pthread_atfork(beforeFork, afterForkInParent, afterForkInChild);
  (void)registered;
}

}  // namespace torch_accel::driver

using namespace torch_accel::driver;

accelError_t accelShutdown() {
  return guarded(__func__, [] {
    Workers& all = workers();
    if (all.forked.load(std::memory_order_relaxed)) return ACCEL_SUCCESS;  // no workers here
    if (const accelError_t error = checkMayWait("accelShutdown")) return error;
    const std::lock_guard one_at_a_time(all.shutdown_mutex);
    all.shut_down.store(true, std::memory_order_release);
    for (const auto& device : devices()) {
      for (const auto& stream : device->streams()) stream->close();
    }
    std::optional<pthread_t> last;
    {
      std::unique_lock lock(all.mutex);
      all.ended.wait(lock, [&] { return all.live == 0; });
      last.swap(all.unjoined);
    }
    if (last) pthread_join(*last, nullptr);  // it has joined the others
    return ACCEL_SUCCESS;
  });
}
