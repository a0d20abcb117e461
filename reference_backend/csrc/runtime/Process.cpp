// See Process.h.
#include "runtime/Process.h"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "accel_driver.h"

namespace torch_accel {
namespace {

std::atomic<GilReleaser> gil_releaser{nullptr};
std::atomic<FirstUseHook> first_use_hook{nullptr};
std::atomic<bool> in_use{false};
std::atomic<bool> in_bad_fork{false};
std::once_flag first_use;

void drainAtExit() {
  // Registered at first use, so it runs before the static destructors of what was loaded earlier.
  // Workers never take the GIL, so nothing that is queued can wait for the exiting interpreter.
  if (!inBadFork()) accelShutdown();
}

}  // namespace

void setGilReleaser(GilReleaser releaser) {
  gil_releaser.store(releaser);
}
void setFirstUseHook(FirstUseHook hook) {
  first_use_hook.store(hook);
}

void callWithoutGil(void (*body)(void*), void* argument) {
  if (const GilReleaser releaser = gil_releaser.load(std::memory_order_acquire)) {
    releaser(body, argument);
  } else {
    body(argument);
  }
}

void noteUse() {
  TORCH_CHECK(
      !inBadFork(),
      "Cannot use the accel device in a forked subprocess whose parent had already used it. To use "
      "accel with multiprocessing, use the 'spawn' start method");
  if (C10_LIKELY(inUse())) return;
  std::call_once(first_use, [] {
    pthread_atfork(nullptr, nullptr, [] { in_bad_fork.store(true); });
    std::atexit(drainAtExit);
    if (const FirstUseHook hook = first_use_hook.load()) hook();
    in_use.store(true, std::memory_order_release);
  });
}

bool inUse() {
  return in_use.load(std::memory_order_acquire);
}
bool inBadFork() {
  return in_bad_fork.load(std::memory_order_relaxed);
}

}  // namespace torch_accel
