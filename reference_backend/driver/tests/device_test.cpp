// Devices: settings, properties, current device, activity.
#include <cstdlib>
#include <fstream>

#include "helpers.h"

using namespace driver_tests;

namespace {

size_t virtualPages() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

}  // namespace

TEST(device_count_is_two_unless_set) {
  unsetenv("TORCH_ACCEL_DEVICES");
  int count = -1;
  CHECK_OK(accelGetDeviceCount(&count));
  CHECK_EQ(count, 2);
}

TEST(device_count_is_set_by_the_environment) {
  for (const int expected : {0, 1, 3, 64}) {
    inChild([&] {
      setenv("TORCH_ACCEL_DEVICES", std::to_string(expected).c_str(), 1);
      int count = -1;
      CHECK_OK(accelGetDeviceCount(&count));
      CHECK_EQ(count, expected);
      if (expected > 0) CHECK_OK(accelSetDevice(expected - 1));
      CHECK_FAILS(accelSetDevice(expected), ACCEL_ERROR_INVALID_DEVICE,
                  "there are " + std::to_string(expected));
      if (expected > 0) allocate(1, expected - 1);
    });
  }
}

TEST(a_wrong_setting_is_an_error_that_names_it) {
  for (const char* value : {"", "65", "-1", "two", "2x", " 2", "99999999999999999999"}) {
    inChild([&] {
      setenv("TORCH_ACCEL_DEVICES", value, 1);
      int count = -1;
      CHECK_FAILS(accelGetDeviceCount(&count), ACCEL_ERROR_INVALID_VALUE, "TORCH_ACCEL_DEVICES");
      CHECK(contains(accelGetLastErrorMessage(), "'" + std::string(value) + "'"));
      CHECK_EQ(count, 0);
      CHECK_FAILS(accelSetDevice(0), ACCEL_ERROR_INVALID_VALUE, "TORCH_ACCEL_DEVICES");
    });
  }
  for (const char* value :
       {"", "0", "4095", "-1", "1T", "1GB", "G", "513G", "99999999999999999999"}) {
    inChild([&] {
      setenv("TORCH_ACCEL_MEMORY", value, 1);
      int count = -1;
      CHECK_FAILS(accelGetDeviceCount(&count), ACCEL_ERROR_INVALID_VALUE, "TORCH_ACCEL_MEMORY");
      CHECK_EQ(count, 0);
      void* address = nullptr;
      CHECK_FAILS(accelMalloc(0, 1, &address), ACCEL_ERROR_INVALID_VALUE, "TORCH_ACCEL_MEMORY");
    });
  }
}

TEST(memory_is_set_by_the_environment) {
  struct Setting {
    const char* text;
    size_t bytes;
  };
  const Setting settings[] = {{"4096", 4096},          {"10000", 8192},
                              {"12K", 12 << 10},       {"3m", 3 << 20},
                              {"1G", size_t{1} << 30}, {"512G", size_t{512} << 30}};
  for (const Setting& setting : settings) {
    inChild([&] {
      setenv("TORCH_ACCEL_MEMORY", setting.text, 1);
      size_t free_bytes = 0;
      size_t total_bytes = 0;
      CHECK_OK(accelMemGetInfo(1, &free_bytes, &total_bytes));
      CHECK_EQ(free_bytes, setting.bytes);
      CHECK_EQ(total_bytes, setting.bytes);
      accelDeviceProperties properties;
      CHECK_OK(accelGetDeviceProperties(1, &properties));
      CHECK_EQ(properties.total_memory, setting.bytes);
    });
  }
  unsetenv("TORCH_ACCEL_MEMORY");
  CHECK_EQ(freeBytes(), size_t{4} << 30);
}

TEST(counting_devices_starts_and_maps_nothing) {
  const int threads = threadCount();
  const size_t pages = virtualPages();
  int count = 0;
  accelDeviceProperties properties;
  CHECK_OK(accelGetDeviceCount(&count));
  CHECK_OK(accelGetDeviceProperties(0, &properties));
  CHECK_OK(accelSetDevice(1));
  CHECK_EQ(threadCount(), threads);
  CHECK(virtualPages() - pages < properties.total_memory / ACCEL_PAGE_SIZE);
  allocate(1);
  CHECK(virtualPages() - pages >= properties.total_memory / ACCEL_PAGE_SIZE);
}

TEST(properties_describe_the_device) {
  accelDeviceProperties properties;
  CHECK_OK(accelGetDeviceProperties(0, &properties));
  CHECK(properties.name[0] != '\0');
  CHECK(properties.multi_processor_count >= 1);
  CHECK_EQ(properties.major, 1);
  CHECK_EQ(properties.minor, 0);
  CHECK_FAILS(accelGetDeviceProperties(2, &properties), ACCEL_ERROR_INVALID_DEVICE, "device 2");
  CHECK_FAILS(accelGetDeviceProperties(-1, &properties), ACCEL_ERROR_INVALID_DEVICE, "device -1");
  CHECK_FAILS(accelGetDeviceProperties(0, nullptr), ACCEL_ERROR_INVALID_VALUE, "properties");
  CHECK_FAILS(accelGetDeviceCount(nullptr), ACCEL_ERROR_INVALID_VALUE, "count");
}

TEST(current_device_belongs_to_the_thread) {
  int device = -1;
  CHECK_OK(accelGetDevice(&device));
  CHECK_EQ(device, 0);
  CHECK_OK(accelSetDevice(1));
  std::thread([] {
    int other = -1;
    CHECK_OK(accelGetDevice(&other));
    CHECK_EQ(other, 0);
  }).join();
  CHECK_EQ(accelSetDevice(-1), ACCEL_ERROR_INVALID_DEVICE);
  CHECK_EQ(accelSetDevice(2), ACCEL_ERROR_INVALID_DEVICE);
  CHECK_OK(accelGetDevice(&device));
  CHECK_EQ(device, 1);
  CHECK_FAILS(accelGetDevice(nullptr), ACCEL_ERROR_INVALID_VALUE, "device");
}

TEST(a_device_is_active_once_memory_or_a_worker_is) {
  const auto active = [](int device) {
    int result = -1;
    CHECK_OK(accelDeviceIsActive(device, &result));
    return result;
  };
  CHECK_EQ(active(0), 0);
  accelStream_t stream = makeStream(0);
  CHECK_EQ(active(0), 0);
  launch(stream, [] {});
  CHECK_EQ(active(0), 1);
  CHECK_EQ(active(1), 0);
  allocate(1, 1);
  CHECK_EQ(active(1), 1);
  int unused = 0;
  CHECK_FAILS(accelDeviceIsActive(2, &unused), ACCEL_ERROR_INVALID_DEVICE, "device 2");
  CHECK_FAILS(accelDeviceIsActive(0, nullptr), ACCEL_ERROR_INVALID_VALUE, "active");
}

TEST(device_synchronize_waits_for_all_streams_of_the_device_only) {
  Gate other;
  launch(makeStream(1), [&] { other.pass(); });
  std::atomic<int> done{0};
  Gate gate;
  for (int i = 0; i < 3; ++i) {
    launch(makeStream(0), [&] {
      gate.pass();
      sleepMilliseconds(5);
      ++done;
    });
  }
  gate.open();
  CHECK_OK(accelDeviceSynchronize(0));
  CHECK_EQ(done.load(), 3);
  other.open();  // would hang above if device 0 waited for device 1
  CHECK_OK(accelDeviceSynchronize(1));
  CHECK_FAILS(accelDeviceSynchronize(2), ACCEL_ERROR_INVALID_DEVICE, "device 2");
}
