// The device guard: current device, streams and events, as c10 asks for them.
//
// A vendor replaces: nothing but the driver calls on events.
#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "accel_driver.h"
#include "runtime/Allocator.h"
#include "runtime/Device.h"
#include "runtime/Error.h"
#include "runtime/Process.h"
#include "runtime/Stream.h"

namespace torch_accel {
namespace {

accelEvent_t asEvent(void* event) {
  return static_cast<accelEvent_t>(event);
}

struct AccelGuardImpl final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kAccel; }

  c10::Device exchangeDevice(c10::Device device) const override {
    checkType(device);
    return c10::Device(kAccel, torch_accel::exchangeDevice(device.index()));
  }
  c10::Device getDevice() const override { return c10::Device(kAccel, currentDevice()); }
  void setDevice(c10::Device device) const override {
    checkType(device);
    torch_accel::setDevice(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0) (void)accelSetDevice(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return torch_accel::deviceCount(); }
  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    resolveDevice(device.index());
    // The dtypes that the CPU, whose code the kernels run, converts between.
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = 0;
    for (const c10::ScalarTypeIndex type : {c10::kIndex_Bool,
                                            c10::kIndex_Byte,
                                            c10::kIndex_Char,
                                            c10::kIndex_Short,
                                            c10::kIndex_Int,
                                            c10::kIndex_Long,
                                            c10::kIndex_UInt16,
                                            c10::kIndex_UInt32,
                                            c10::kIndex_UInt64,
                                            c10::kIndex_Half,
                                            c10::kIndex_BFloat16,
                                            c10::kIndex_Float,
                                            c10::kIndex_Double,
                                            c10::kIndex_ComplexHalf,
                                            c10::kIndex_ComplexFloat,
                                            c10::kIndex_ComplexDouble,
                                            c10::kIndex_Float8_e5m2,
                                            c10::kIndex_Float8_e4m3fn,
                                            c10::kIndex_Float8_e5m2fnuz,
                                            c10::kIndex_Float8_e4m3fnuz}) {
      capability.capability_data.capability_bits |= uint64_t{1} << type;
    }
    return capability;
  }

  c10::Stream getStream(c10::Device device) const override { return currentStream(device.index()); }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return defaultStream(device.index());
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return streamFromPool(device.index(), high_priority ? -1 : 0);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return streamFromPool(device.index(), priority);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return torch_accel::exchangeStream(stream);
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return driverStream(stream);
  }
  bool queryStream(const c10::Stream& stream) const override {
    return torch_accel::queryStream(stream);
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    torch_accel::synchronizeStream(stream);
  }
  bool isStreamCapturing(const c10::Stream&) const override { return false; }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    torch_accel::synchronizeDevice(index);
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex index,
              const c10::EventFlag flag) const override {
    TORCH_CHECK(
        index == -1 || index == stream.device_index(),
        "an event of accel:", static_cast<int>(index),
        " cannot be recorded on a stream of accel:", static_cast<int>(stream.device_index()));
    const accelStream_t handle = driverStream(stream);
    if (!*event) {
      const unsigned flags = flag == c10::EventFlag::BACKEND_DEFAULT ? ACCEL_EVENT_DEFAULT
                                                                     : ACCEL_EVENT_DISABLE_TIMING;
      accelEvent_t created = nullptr;
      ACCEL_CHECK(accelEventCreate(stream.device_index(), flags, &created));
      *event = created;
    }
    ACCEL_CHECK(accelEventRecord(asEvent(*event), handle));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event) ACCEL_CHECK(accelStreamWaitEvent(driverStream(stream), asEvent(event)));
  }
  bool queryEvent(void* event) const override {
    if (!event) return true;
    const accelError_t error = accelEventQuery(asEvent(event));
    if (error == ACCEL_ERROR_NOT_READY) return false;
    ACCEL_CHECK(error);
    return true;
  }
  void synchronizeEvent(void* event) const override {
    if (event) withoutGil([&] { ACCEL_CHECK(accelEventSynchronize(asEvent(event))); });
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start && end,
                "both events must be recorded before their elapsed time can be taken");
    double milliseconds = 0;
    ACCEL_CHECK(accelEventElapsedTime(asEvent(start), asEvent(end), &milliseconds));
    return milliseconds;
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event) (void)accelEventDestroy(asEvent(event));
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    deviceAllocator()->recordStream(data, stream);
  }

 private:
  static void checkType(c10::Device device) {
    TORCH_CHECK(device.type() == kAccel, "expected an accel device, got ", device);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, AccelGuardImpl)

}  // namespace
}  // namespace torch_accel
