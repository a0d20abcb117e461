// What the runtime needs from the process around it: Python's lock, first use, fork and exit.
//
// The layers above must not hold Python's GIL while they wait for a worker. They ask here, so that
// only the bindings need Python's headers.
#pragma once

#include <memory>
#include <type_traits>

namespace torch_accel {

// Calls body(argument), with the GIL released if the calling thread holds it.
using GilReleaser = void (*)(void (*body)(void*), void* argument);
// Called once, before the first memory or stream of any device is created.
using FirstUseHook = void (*)();

// Both are set by the bindings; without them nothing is released and nothing is called.
void setGilReleaser(GilReleaser releaser);
void setFirstUseHook(FirstUseHook hook);

void callWithoutGil(void (*body)(void*), void* argument);

// Runs `f()` without the GIL. Exceptions pass through.
template <class F>
void withoutGil(F&& f) {
  callWithoutGil([](void* argument) { (*static_cast<std::remove_reference_t<F>*>(argument))(); },
                 const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

// To be called before a device is used for the first time: installs the fork and exit handlers.
// Raises in a process forked after its parent had used a device.
void noteUse();
bool inUse();
// True in a process that was forked after its parent had used a device.
bool inBadFork();

}  // namespace torch_accel
