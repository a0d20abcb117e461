// Turns the driver's error codes into PyTorch's exceptions.
//
// A vendor replaces: the mapping from their driver's codes to c10's exception classes.
#pragma once

#include <c10/macros/Macros.h>

#include "accel_driver.h"

namespace torch_accel {

// Raises for `error`: c10::OutOfMemoryError for ACCEL_ERROR_OUT_OF_MEMORY, c10::AcceleratorError
// (Python: torch.AcceleratorError, a RuntimeError) for a kernel's pending error, c10::Error
// otherwise. `what` names the driver call.
[[noreturn]] void raiseDriverError(accelError_t error, const char* what);

}  // namespace torch_accel

#define ACCEL_CHECK(call)                                        \
  do {                                                           \
    const accelError_t accel_check_error = (call);               \
    if (C10_UNLIKELY(accel_check_error != ACCEL_SUCCESS)) {      \
      ::torch_accel::raiseDriverError(accel_check_error, #call); \
    }                                                            \
  } while (0)
