// The worker threads of all streams: start, end, shutdown, and what a fork means for them.
#pragma once

#include <memory>

#include "accel_driver.h"

namespace torch_accel::driver {

// ACCEL_ERROR_FORKED in a child forked after the parent had started a worker, else ACCEL_SUCCESS.
accelError_t checkNotForked(const char* function);
// Also ACCEL_ERROR_SHUT_DOWN after accelShutdown().
accelError_t checkUsable(const char* function);
// For calls that wait: also refuses on a worker, which would wait for itself.
accelError_t checkMayWait(const char* function);

// Starts the stream's worker, which calls stream->work().
accelError_t startWorker(const std::shared_ptr<accelStream>& stream);
// Makes fork() keep the driver's tables consistent in the child. Called before the first use of
// any.
void prepareForFork();

}  // namespace torch_accel::driver
