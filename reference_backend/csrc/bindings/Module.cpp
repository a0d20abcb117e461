// torch_accel._C: what the Python package needs beyond the interfaces that torch reaches by itself.
#include <pybind11/pybind11.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/device_lazy_init.h>

#include <chrono>
#include <thread>

#include "accel_driver.h"
#include "aten/Generic.h"
#include "bindings/Generic.h"
#include "runtime/Allocator.h"
#include "runtime/Device.h"
#include "runtime/Error.h"
#include "runtime/Generator.h"
#include "runtime/Launch.h"
#include "runtime/Process.h"
#include "runtime/Stream.h"

namespace py = pybind11;

namespace torch_accel {
namespace {

void releaseGil(void (*body)(void*), void* argument) {
  if (Py_IsInitialized() && PyGILState_Check()) {
    const py::gil_scoped_release released;
    body(argument);
  } else {
    body(argument);
  }
}

// Tells torch, however the device came to be used first: torch.accelerator's functions do nothing
// on a device that torch holds for uninitialised, and a forked child must know that it can't use
// it.
void onFirstUse() {
  torch::utils::set_requires_device_init(kAccel, false);
  torch::utils::register_fork_handler_for_device_init(kAccel);
}

py::dict deviceProperties(c10::DeviceIndex index) {
  accelDeviceProperties properties;
  ACCEL_CHECK(accelGetDeviceProperties(resolveDevice(index), &properties));
  py::dict result;
  result["name"] = properties.name;
  result["total_memory"] = properties.total_memory;
  result["multi_processor_count"] = properties.multi_processor_count;
  result["major"] = properties.major;
  result["minor"] = properties.minor;
  return result;
}

// Occupies the current stream for a time, as torch.cuda._sleep does: a delay to queue work behind.
void sleepOnStream(double milliseconds) {
  TORCH_CHECK_VALUE(milliseconds >= 0, "a time to sleep is not negative, got ", milliseconds);
  launch(currentStream(), "accel::sleep", [milliseconds] {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
  });
}

void drain() {
  if (!inUse() || inBadFork()) return;
  withoutGil([] {
    for (c10::DeviceIndex i = 0; i < deviceCount(); ++i) (void)accelDeviceSynchronize(i);
  });
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  setGilReleaser(&releaseGil);
  setFirstUseHook(&onFirstUse);

  module.def("init", &noteUse, "Marks the device as used; raises in a bad fork.");
  module.def("is_initialized", &inUse);
  module.def("is_in_bad_fork", &inBadFork);
  module.def("drain", &drain, "Waits for all work of all devices, dropping pending errors.");

  module.def("device_count", [] { return static_cast<int>(deviceCount()); });
  module.def("current_device", [] { return static_cast<int>(currentDevice()); });
  module.def("set_device", &setDevice);
  module.def("exchange_device",
             [](c10::DeviceIndex i) { return static_cast<int>(exchangeDevice(i)); });
  module.def("device_properties", &deviceProperties);
  module.def("synchronize", &synchronizeDevice);

  module.def("default_generator", [](c10::DeviceIndex index) {
    return py::reinterpret_steal<py::object>(THPGenerator_Wrap(defaultGenerator(index)));
  });
  bindGeneric(module);

  module.def("set_memory_fraction", &setMemoryFraction);
  module.def("sleep", &sleepOnStream);
  registerGenericOps();
  module.def("launch_counters", [] {
    const LaunchCounters counters = launchCounters();
    py::dict result;
    result["asynchronous"] = counters.asynchronous;
    result["synchronous"] = counters.synchronous;
    return result;
  });
}

}  // namespace torch_accel
