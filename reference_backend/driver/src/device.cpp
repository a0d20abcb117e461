// Devices: count, properties, current device, synchronisation and the pending error.
//
// A vendor's driver enumerates cards here; the pending error is what their error queue reports.
#include "device.h"

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "error.h"
#include "memory.h"
#include "settings.h"
#include "stream.h"
#include "worker.h"

namespace torch_accel::driver {
namespace {

thread_local int current_device = 0;

}  // namespace

accelError_t Device::add(std::shared_ptr<accelStream> stream) {
  const std::lock_guard lock(mutex_);
  // Under the mutex: accelShutdown sets the flag, then takes the mutex to see every stream.
  if (const accelError_t error = checkUsable("accelStreamCreate")) return error;
  const accelStream* const key = stream.get();
  streams_.emplace(key, std::move(stream));
  return ACCEL_SUCCESS;
}

void Device::remove(const accelStream* stream) {
  std::shared_ptr<accelStream> last;  // released after the mutex
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  last = std::move(found->second);
  streams_.erase(found);
}

std::vector<std::shared_ptr<accelStream>> Device::streams() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<accelStream>> result;
  result.reserve(streams_.size());
  for (const auto& entry : streams_) result.push_back(entry.second);
  return result;
}

void Device::wait() {
  // Positions of all streams first: work queued after the call does not prolong it.
  std::vector<std::pair<std::shared_ptr<accelStream>, uint64_t>> targets;
  for (auto& stream : streams()) {
    const uint64_t target = stream->queued();
    targets.emplace_back(std::move(stream), target);
  }
  for (const auto& [stream, target] : targets) stream->waitFor(target);
}

void Device::setPending(const std::string& name, const char* message) {
  const std::lock_guard lock(mutex_);
  if (has_pending_.load(std::memory_order_relaxed)) return;
  pending_ = name + ": " + message;
  has_pending_.store(true, std::memory_order_release);
}

accelError_t Device::takePending() {
  if (!has_pending_.load(std::memory_order_acquire)) return ACCEL_SUCCESS;
  const std::lock_guard lock(mutex_);
  if (!has_pending_.load(std::memory_order_relaxed)) return ACCEL_SUCCESS;
  has_pending_.store(false, std::memory_order_relaxed);
  return fail(ACCEL_ERROR_LAUNCH_FAILURE, "%s", pending_.c_str());
}

const std::vector<std::unique_ptr<Device>>& devices() {
  static const auto* const instance = [] {
    auto* const all = new std::vector<std::unique_ptr<Device>>;
    for (int i = 0; i < settings().devices; ++i) all->push_back(std::make_unique<Device>(i));
    return all;
  }();
  return *instance;
}

accelError_t findDevice(const char* function, int index, Device** device) {
  const auto& all = devices();
  if (!settings().problem.empty()) {
    return fail(ACCEL_ERROR_INVALID_VALUE, "%s: %s", function, settings().problem.c_str());
  }
  if (index < 0 || static_cast<size_t>(index) >= all.size()) {
    return fail(ACCEL_ERROR_INVALID_DEVICE, "%s: no device %d, there are %zu", function, index,
                all.size());
  }
  *device = all[static_cast<size_t>(index)].get();
  return ACCEL_SUCCESS;
}

}  // namespace torch_accel::driver

using namespace torch_accel::driver;

accelError_t accelGetDeviceCount(int* count) {
  return guarded(__func__, [&] {
    if (!count) return fail(ACCEL_ERROR_INVALID_VALUE, "accelGetDeviceCount: count is null");
    *count = settings().devices;
    if (settings().problem.empty()) return ACCEL_SUCCESS;
    return fail(ACCEL_ERROR_INVALID_VALUE, "accelGetDeviceCount: %s", settings().problem.c_str());
  });
}

accelError_t accelGetDeviceProperties(int device, accelDeviceProperties* properties) {
  return guarded(__func__, [&] {
    if (!properties) {
      return fail(ACCEL_ERROR_INVALID_VALUE, "accelGetDeviceProperties: properties is null");
    }
    Device* found = nullptr;
    if (const accelError_t error = findDevice("accelGetDeviceProperties", device, &found)) {
      return error;
    }
    *properties = {};
    std::snprintf(properties->name, sizeof(properties->name), "Reference accelerator");
    properties->total_memory = settings().memory;
    properties->multi_processor_count =
        static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    properties->major = 1;
    properties->minor = 0;
    return ACCEL_SUCCESS;
  });
}

accelError_t accelGetDevice(int* device) {
  if (!device) return fail(ACCEL_ERROR_INVALID_VALUE, "accelGetDevice: device is null");
  *device = current_device;
  return ACCEL_SUCCESS;
}

accelError_t accelSetDevice(int device) {
  return guarded(__func__, [&] {
    Device* found = nullptr;
    if (const accelError_t error = findDevice("accelSetDevice", device, &found)) return error;
    current_device = device;
    return ACCEL_SUCCESS;
  });
}

accelError_t accelDeviceIsActive(int device, int* active) {
  return guarded(__func__, [&] {
    if (!active) return fail(ACCEL_ERROR_INVALID_VALUE, "accelDeviceIsActive: active is null");
    Device* found = nullptr;
    if (const accelError_t error = findDevice("accelDeviceIsActive", device, &found)) return error;
    *active = found->started() || memoryMapped(device);
    return ACCEL_SUCCESS;
  });
}

accelError_t accelDeviceSynchronize(int device) {
  return guarded(__func__, [&] {
    Device* found = nullptr;
    if (const accelError_t error = findDevice("accelDeviceSynchronize", device, &found)) {
      return error;
    }
    if (const accelError_t error = checkMayWait("accelDeviceSynchronize")) return error;
    found->wait();
    return found->takePending();
  });
}
