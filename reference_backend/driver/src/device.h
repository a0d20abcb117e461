// A device: its streams and its pending error.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "accel_driver.h"

namespace torch_accel::driver {

class Device {
 public:
  explicit Device(int index) : index_(index) {}

  int index() const { return index_; }

  // Adds a stream unless the driver was shut down; remove() when it is destroyed and drained.
  accelError_t add(std::shared_ptr<accelStream> stream);
  void remove(const accelStream* stream);
  std::vector<std::shared_ptr<accelStream>> streams();

  // Waits for what is queued on all streams. The pending error stays.
  void wait();

  // Keeps a kernel's failure unless one is pending already.
  void setPending(const std::string& name, const char* message);
  // ACCEL_SUCCESS, or the pending error, which is cleared.
  accelError_t takePending();

  void markStarted() { started_.store(true, std::memory_order_relaxed); }
  bool started() const { return started_.load(std::memory_order_relaxed); }

  void lockForFork() { mutex_.lock(); }
  void unlockAfterFork() { mutex_.unlock(); }

 private:
  const int index_;
  std::mutex mutex_;
  std::unordered_map<const accelStream*, std::shared_ptr<accelStream>> streams_;
  std::string pending_;
  std::atomic<bool> has_pending_{false};
  std::atomic<bool> started_{false};
};

// All devices, leaked on purpose; empty when there is none.
const std::vector<std::unique_ptr<Device>>& devices();

// Sets `device` for a valid index, else fails.
accelError_t findDevice(const char* function, int index, Device** device);

}  // namespace torch_accel::driver
