// Work on a stream: kernels, copies, fills.
//
// A vendor's driver loads device code and starts DMA here. These "kernels" are host functions that
// run on the worker, and a copy is a memmove there.
#include <cstring>

#include "error.h"
#include "memory.h"
#include "stream.h"
#include "worker.h"

using namespace torch_accel::driver;

accelError_t accelLaunchKernel(accelStream_t stream, const char* name, accelKernel_t kernel,
                               void* argument, accelKernelCleanup_t cleanup) {
  return guarded(__func__, [&] {
    if (!stream || !name || !kernel) {
      return fail(ACCEL_ERROR_INVALID_VALUE, "accelLaunchKernel: %s is null",
                  !stream ? "stream"
                  : !name ? "name"
                          : "kernel");
    }
    if (const accelError_t error = checkUsable("accelLaunchKernel")) return error;
    return stream->push({kernel, argument, cleanup, name});
  });
}

accelError_t accelMemcpyAsync(void* destination, const void* source, size_t size,
                              accelStream_t stream) {
  return guarded(__func__, [&] {
    if (!stream) return fail(ACCEL_ERROR_INVALID_VALUE, "accelMemcpyAsync: stream is null");
    if (const accelError_t error = checkUsable("accelMemcpyAsync")) return error;
    if (size == 0) return ACCEL_SUCCESS;
    if (const accelError_t error = checkRange("accelMemcpyAsync", "destination", destination, size))
      return error;
    if (const accelError_t error = checkRange("accelMemcpyAsync", "source", source, size))
      return error;
    return pushCallable(*stream, "accelMemcpyAsync",
                        [=] { std::memmove(hostView(destination), hostView(source), size); });
  });
}

accelError_t accelMemsetAsync(void* destination, int value, size_t size, accelStream_t stream) {
  return guarded(__func__, [&] {
    if (!stream) return fail(ACCEL_ERROR_INVALID_VALUE, "accelMemsetAsync: stream is null");
    if (const accelError_t error = checkUsable("accelMemsetAsync")) return error;
    if (size == 0) return ACCEL_SUCCESS;
    if (const accelError_t error = checkRange("accelMemsetAsync", "destination", destination, size))
      return error;
    return pushCallable(*stream, "accelMemsetAsync",
                        [=] { std::memset(hostView(destination), value, size); });
  });
}
