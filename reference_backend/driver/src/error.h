// Error messages, and the wall that keeps C++ exceptions inside the driver.
#pragma once

#include <cstddef>
#include <exception>
#include <new>

#include "accel_driver.h"

namespace torch_accel::driver {

// Room for a kernel's own message, with its final 0.
constexpr size_t kKernelMessageSize = 4096;

// Keeps the message for accelGetLastErrorMessage() and returns `error`.
[[gnu::format(printf, 2, 3)]] accelError_t fail(accelError_t error, const char* format,
                                                ...) noexcept;

// Runs the body of an API function; what it throws becomes an error code.
template <class F>
accelError_t guarded(const char* function, F&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(ACCEL_ERROR_OUT_OF_MEMORY, "%s: the host is out of memory", function);
  } catch (const std::exception& e) {
    return fail(ACCEL_ERROR_OUT_OF_MEMORY, "%s: the host refused a resource: %s", function,
                e.what());
  }
}

}  // namespace torch_accel::driver
