// Names and sentences of the error codes, and each thread's last message.
//
// A vendor's driver brings its own; only the meaning of the codes matters above.
#include "error.h"

#include <cstdarg>
#include <cstdio>

namespace torch_accel::driver {
namespace {

struct Description {
  const char* name;
  const char* sentence;
};

Description describe(accelError_t error) {
  switch (error) {
    case ACCEL_SUCCESS:
      return {"ACCEL_SUCCESS", "no error"};
    case ACCEL_ERROR_INVALID_VALUE:
      return {"ACCEL_ERROR_INVALID_VALUE", "an argument is not valid"};
    case ACCEL_ERROR_INVALID_DEVICE:
      return {"ACCEL_ERROR_INVALID_DEVICE", "there is no device of that index"};
    case ACCEL_ERROR_OUT_OF_MEMORY:
      return {"ACCEL_ERROR_OUT_OF_MEMORY", "out of memory"};
    case ACCEL_ERROR_NOT_READY:
      return {"ACCEL_ERROR_NOT_READY", "the work has not finished yet"};
    case ACCEL_ERROR_INVALID_ADDRESS:
      return {"ACCEL_ERROR_INVALID_ADDRESS", "the address does not belong to a live allocation"};
    case ACCEL_ERROR_LAUNCH_FAILURE:
      return {"ACCEL_ERROR_LAUNCH_FAILURE", "a kernel failed"};
    case ACCEL_ERROR_NOT_RECORDED:
      return {"ACCEL_ERROR_NOT_RECORDED", "the event was never recorded"};
    case ACCEL_ERROR_NO_TIMING:
      return {"ACCEL_ERROR_NO_TIMING", "the event was created without timing"};
    case ACCEL_ERROR_WRONG_DEVICE:
      return {"ACCEL_ERROR_WRONG_DEVICE", "the objects belong to different devices"};
    case ACCEL_ERROR_FORKED:
      return {"ACCEL_ERROR_FORKED", "the device cannot be used in a forked child process"};
    case ACCEL_ERROR_SHUT_DOWN:
      return {"ACCEL_ERROR_SHUT_DOWN", "the driver was shut down"};
  }
  return {"ACCEL_ERROR_UNKNOWN", "not an error code of this driver"};
}

// A plain array: it stays readable while the thread's other locals are being destroyed.
thread_local char last_message[kKernelMessageSize + 512];

}  // namespace

accelError_t fail(accelError_t error, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last_message, sizeof(last_message), format, arguments);
  va_end(arguments);
  return error;
}

}  // namespace torch_accel::driver

using torch_accel::driver::describe;

const char* accelGetErrorName(accelError_t error) {
  return describe(error).name;
}

const char* accelGetErrorString(accelError_t error) {
  return describe(error).sentence;
}

const char* accelGetLastErrorMessage() {
  return torch_accel::driver::last_message;
}
