// See Launch.h.
#include "runtime/Launch.h"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <string_view>

#include "runtime/Error.h"
#include "runtime/Process.h"
#include "runtime/Stream.h"

namespace torch_accel {
namespace {

std::atomic<uint64_t> asynchronous_launches{0};
std::atomic<uint64_t> synchronous_launches{0};

struct SilentWarnings final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

// The state of a worker thread: kernels run CPU operators below autograd, unseen by observers, and
// without warnings (what is to be said is said by the call that queues).
struct WorkerState {
  WorkerState() {
    at::init_num_threads();
    c10::GradMode::set_enabled(false);
    c10::WarningUtils::set_warning_handler(&silent);
  }
  ~WorkerState() { c10::WarningUtils::set_warning_handler(nullptr); }
  SilentWarnings silent;
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  at::DisableRecordFunctionGuard unobserved;
};

thread_local bool on_worker = false;

void setUpWorker() {
  static thread_local WorkerState state;
  on_worker = true;
}

void writeMessage(std::string_view text, char* message, size_t message_size) {
  if (message_size == 0) return;
  const size_t n = std::min(text.size(), message_size - 1);
  std::memcpy(message, text.data(), n);
  message[n] = '\0';
}

int runKernel(void* argument, char* message, size_t message_size) {
  if (C10_UNLIKELY(!on_worker)) setUpWorker();
  try {
    static_cast<Kernel*>(argument)->run();
    return 0;
  } catch (const c10::Error& error) {
    writeMessage(error.what_without_backtrace(), message, message_size);
  } catch (const std::exception& error) {
    writeMessage(error.what(), message, message_size);
  } catch (...) {
    writeMessage("unknown exception", message, message_size);
  }
  return 1;
}

void deleteKernel(void* argument) {
  delete static_cast<Kernel*>(argument);
}

// A kernel with a caller that waits. It lives on the caller's stack: the worker's last touch is the
// notification, made under the mutex so that the caller can't return and destroy it meanwhile.
struct Waited {
  Kernel* kernel;
  std::exception_ptr error;
  bool ran = false;
  bool done = false;
  std::mutex mutex;
  std::condition_variable condition;
};

int runWaited(void* argument, char*, size_t) {
  if (C10_UNLIKELY(!on_worker)) setUpWorker();
  auto* waited = static_cast<Waited*>(argument);
  waited->ran = true;
  try {
    waited->kernel->run();
  } catch (...) {
    waited->error = std::current_exception();
  }
  return 0;
}

void finishWaited(void* argument) {
  auto* waited = static_cast<Waited*>(argument);
  const std::lock_guard<std::mutex> lock(waited->mutex);
  waited->done = true;
  waited->condition.notify_one();
}

}  // namespace

void enqueue(const c10::Stream& stream, const char* name, std::unique_ptr<Kernel> kernel) {
  const accelStream_t handle = driverStream(stream);
  asynchronous_launches.fetch_add(1, std::memory_order_relaxed);
  ACCEL_CHECK(accelLaunchKernel(handle, name, runKernel, kernel.get(), deleteKernel));
  kernel.release();  // the driver's now
}

void launchAndWait(const c10::Stream& stream, const char* name, std::unique_ptr<Kernel> kernel) {
  TORCH_INTERNAL_ASSERT(!onWorker(), name, ": a kernel must not wait for another kernel");
  const accelStream_t handle = driverStream(stream);
  synchronous_launches.fetch_add(1, std::memory_order_relaxed);
  Waited waited;
  waited.kernel = kernel.get();
  withoutGil([&] {
    ACCEL_CHECK(accelLaunchKernel(handle, name, runWaited, &waited, finishWaited));
    std::unique_lock<std::mutex> lock(waited.mutex);
    waited.condition.wait(lock, [&] { return waited.done; });
  });
  if (waited.error) std::rethrow_exception(waited.error);
  TORCH_CHECK(waited.ran, name, ": the accel driver dropped the kernel (it was shut down)");
}

bool onWorker() {
  return on_worker;
}

LaunchCounters launchCounters() {
  return {asynchronous_launches.load(), synchronous_launches.load()};
}

}  // namespace torch_accel
