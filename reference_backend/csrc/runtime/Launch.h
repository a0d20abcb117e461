// Queueing kernels: the bridge from a C++ callable to the driver's plain-C launch.
//
// Everything that touches device memory goes through launch(): the callable runs later, on the
// stream's worker thread. It may hold device addresses, sizes and values, and copies of CPU data;
// it must not hold tensors that Python can see (their last reference would drop on the worker,
// which needs the GIL). Memory needs no reference: a block freed meanwhile is reused in stream
// order.
//
// A vendor replaces: the body of enqueue() with their own launch call.
#pragma once

#include <c10/core/Stream.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "accel_driver.h"

namespace torch_accel {

// Base of queued callables, one allocation each.
struct Kernel {
  virtual ~Kernel() = default;
  virtual void run() = 0;
};

// Queues `kernel` on `stream`. `name` appears in error messages. What run() throws becomes the
// device's pending error "<name>: <what>", raised at the next synchronisation with the device.
void enqueue(const c10::Stream& stream, const char* name, std::unique_ptr<Kernel> kernel);

// Queues a callable `void f()` on a stream (of the current device: the current stream).
template <class F>
void launch(const c10::Stream& stream, const char* name, F&& f) {
  struct Callable final : Kernel {
    explicit Callable(F&& f) : f_(std::forward<F>(f)) {}
    void run() override { f_(); }
    std::decay_t<F> f_;
  };
  enqueue(stream, name, std::make_unique<Callable>(std::forward<F>(f)));
}

// Queues a callable, waits for it (and so for all work before it on the stream) without holding the
// GIL, and rethrows on the calling thread what it threw, with its type (IndexError stays
// IndexError). What earlier work on the stream left pending stays pending.
void launchAndWait(const c10::Stream& stream, const char* name, std::unique_ptr<Kernel> kernel);

template <class F>
void launchAndWait(const c10::Stream& stream, const char* name, F&& f) {
  struct Callable final : Kernel {
    explicit Callable(F& f) : f_(f) {}
    void run() override { f_(); }
    F& f_;  // outlives the kernel: the caller waits
  };
  launchAndWait(stream, name, std::unique_ptr<Kernel>(std::make_unique<Callable>(f)));
}

// True on a stream's worker thread.
bool onWorker();

// For kernels: the memory behind a device address.
template <class T>
inline T* kernelPointer(T* device_address) {
  return static_cast<T*>(accelKernelPointer(
      const_cast<const void*>(static_cast<const volatile void*>(device_address))));
}

// Counters since the process began, for tests and for the declaration of what ran where.
struct LaunchCounters {
  uint64_t asynchronous;  // kernels queued without waiting
  uint64_t synchronous;   // kernels queued and waited for
};
LaunchCounters launchCounters();

}  // namespace torch_accel
