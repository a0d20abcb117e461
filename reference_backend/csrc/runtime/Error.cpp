// See Error.h.
#include "runtime/Error.h"

#include <c10/util/Exception.h>

#include <string>

namespace torch_accel {

void raiseDriverError(accelError_t error, const char* what) {
  const char* details = accelGetLastErrorMessage();
  std::string message = details && *details ? details : accelGetErrorString(error);
  const c10::SourceLocation here{__func__, __FILE__, static_cast<uint32_t>(__LINE__)};
  switch (error) {
    case ACCEL_ERROR_OUT_OF_MEMORY:
      throw c10::OutOfMemoryError(here, "accel out of memory: " + message);
    case ACCEL_ERROR_LAUNCH_FAILURE:
      throw c10::AcceleratorError(
          here, static_cast<int32_t>(error),
          "accel kernel failed: " + message +
              "\nKernels run asynchronously: the call that queued it may lie further back.");
    case ACCEL_ERROR_FORKED:
      throw c10::Error(
          here,
          "Cannot use the accel device in a forked subprocess whose parent had already used it. "
          "To use accel with multiprocessing, use the 'spawn' start method");
    default:
      throw c10::Error(here, std::string("accel driver: ") + what +
                                 " failed: " + accelGetErrorName(error) + ": " + message);
  }
}

}  // namespace torch_accel
