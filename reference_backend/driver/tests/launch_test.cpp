// Kernels, their failures, copies and fills.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <set>
#include <stdexcept>

#include "helpers.h"

using namespace driver_tests;

namespace {

constexpr size_t kPage = ACCEL_PAGE_SIZE;

using Synchronisation = std::function<accelError_t(accelStream_t)>;

// Every call that synchronises with device 0.
std::vector<Synchronisation> synchronisations() {
  return {
      [](accelStream_t stream) { return accelStreamSynchronize(stream); },
      [](accelStream_t) { return accelDeviceSynchronize(0); },
      [](accelStream_t stream) {
        Event event;
        CHECK_OK(accelEventRecord(event, stream));
        return accelEventSynchronize(event);
      },
  };
}

}  // namespace

TEST(error_codes_have_names_and_sentences) {
  std::set<std::string> names;
  std::set<std::string> sentences;
  for (int code = ACCEL_SUCCESS; code <= ACCEL_ERROR_SHUT_DOWN; ++code) {
    names.insert(accelGetErrorName(static_cast<accelError_t>(code)));
    sentences.insert(accelGetErrorString(static_cast<accelError_t>(code)));
  }
  CHECK_EQ(names.size(), 12u);
  CHECK_EQ(sentences.size(), 12u);
  CHECK(!names.contains("ACCEL_ERROR_UNKNOWN"));
  CHECK_EQ(std::string(accelGetErrorName(ACCEL_ERROR_OUT_OF_MEMORY)), "ACCEL_ERROR_OUT_OF_MEMORY");
  CHECK_EQ(std::string(accelGetErrorName(static_cast<accelError_t>(15))), "ACCEL_ERROR_UNKNOWN");
}

TEST(the_last_message_belongs_to_the_thread) {
  CHECK_EQ(std::string(accelGetLastErrorMessage()), "");
  CHECK_EQ(accelSetDevice(7), ACCEL_ERROR_INVALID_DEVICE);
  std::thread([] {
    CHECK_EQ(std::string(accelGetLastErrorMessage()), "");
    CHECK_EQ(accelSetDevice(8), ACCEL_ERROR_INVALID_DEVICE);
  }).join();
  CHECK_OK(accelSetDevice(0));
  CHECK_EQ(std::string(accelGetLastErrorMessage()), "accelSetDevice: no device 7, there are 2");
}

TEST(a_failure_is_returned_once_by_the_next_synchronisation) {
  for (const auto& synchronise : synchronisations()) {
    accelStream_t stream = makeStream();
    bool later = false;
    launchFailing(stream, "add", "index 7 is out of range");
    launch(stream, [&] { later = true; });
    while (accelStreamQuery(stream) == ACCEL_ERROR_NOT_READY) sleepMilliseconds(1);
    CHECK_OK(accelStreamQuery(stream));  // a query does not take it
    CHECK(later);
    CHECK_OK(accelDeviceSynchronize(1));  // nor does another device
    CHECK_EQ(synchronise(stream), ACCEL_ERROR_LAUNCH_FAILURE);
    CHECK_EQ(std::string(accelGetLastErrorMessage()), "add: index 7 is out of range");
    CHECK_OK(synchronise(stream));
    launch(stream, [] {});
    CHECK_OK(accelStreamSynchronize(stream));
  }
}

TEST(the_first_failure_wins) {
  accelStream_t stream = makeStream();
  launchFailing(stream, "first", "one");
  launchFailing(stream, "second", "two");
  CHECK_FAILS(accelStreamSynchronize(stream), ACCEL_ERROR_LAUNCH_FAILURE, "first: one");
  launchFailing(stream, "third", "three");
  CHECK_FAILS(accelStreamSynchronize(stream), ACCEL_ERROR_LAUNCH_FAILURE, "third: three");
}

TEST(a_failure_belongs_to_the_device) {
  accelStream_t failing = makeStream();
  launchFailing(failing, "broken", "message");
  while (accelStreamQuery(failing) == ACCEL_ERROR_NOT_READY) sleepMilliseconds(1);
  CHECK_FAILS(accelStreamSynchronize(makeStream()), ACCEL_ERROR_LAUNCH_FAILURE, "broken: message");
  CHECK_OK(accelStreamSynchronize(failing));
}

TEST(exceptions_of_kernels_and_cleanups_are_failures) {
  accelStream_t stream = makeStream();
  launch(stream, [] { throw std::runtime_error("thrown"); });
  CHECK_FAILS(accelStreamSynchronize(stream), ACCEL_ERROR_LAUNCH_FAILURE, "kernel: thrown");
  launch(stream, [] { throw 1; });
  CHECK_FAILS(accelStreamSynchronize(stream), ACCEL_ERROR_LAUNCH_FAILURE, "kernel: ");
  CHECK_OK(accelLaunchKernel(
      stream, "tidy", [](void*, char*, size_t) { return 0; }, nullptr, [](void*) { throw 1; }));
  CHECK_FAILS(accelStreamSynchronize(stream), ACCEL_ERROR_LAUNCH_FAILURE, "tidy: the cleanup");
  CHECK_OK(accelStreamSynchronize(stream));
}

TEST(failures_without_a_proper_message_are_reported) {
  accelStream_t stream = makeStream();
  const accelKernel_t silent = [](void*, char*, size_t) { return 3; };
  CHECK_OK(accelLaunchKernel(stream, "silent", silent, nullptr, nullptr));
  CHECK_FAILS(accelStreamSynchronize(stream), ACCEL_ERROR_LAUNCH_FAILURE,
              "silent: the kernel returned 3");
  const accelKernel_t endless = [](void*, char* message, size_t size) {
    std::memset(message, 'x', size);  // no final 0
    return 1;
  };
  CHECK_OK(accelLaunchKernel(stream, "endless", endless, nullptr, nullptr));
  CHECK_FAILS(accelStreamSynchronize(stream), ACCEL_ERROR_LAUNCH_FAILURE, "endless: xxx");
  const accelKernel_t fine = [](void*, char* message, size_t size) {
    std::memset(message, 'x', size);
    return 0;
  };
  CHECK_OK(accelLaunchKernel(stream, "fine", fine, nullptr, nullptr));
  CHECK_OK(accelStreamSynchronize(stream));
}

TEST(cleanups_run_once_on_the_worker_before_the_work_counts_as_done) {
  struct Argument {
    int outcome;
    std::atomic<int> cleanups{0};
    std::thread::id kernel_thread;
  };
  const accelKernel_t kernel = [](void* pointer, char*, size_t) {
    auto* argument = static_cast<Argument*>(pointer);
    argument->kernel_thread = std::this_thread::get_id();
    CHECK_EQ(argument->cleanups.load(), 0);
    if (argument->outcome == 2) throw std::runtime_error("thrown");
    return argument->outcome;
  };
  const accelKernelCleanup_t cleanup = [](void* pointer) {
    auto* argument = static_cast<Argument*>(pointer);
    CHECK(argument->kernel_thread == std::this_thread::get_id());
    sleepMilliseconds(5);
    ++argument->cleanups;
  };
  accelStream_t stream = makeStream();
  for (const int outcome : {0, 1, 2}) {
    Argument argument{outcome, {}, {}};
    CHECK_OK(accelLaunchKernel(stream, "kernel", kernel, &argument, cleanup));
    CHECK_EQ(accelStreamSynchronize(stream),
             outcome == 0 ? ACCEL_SUCCESS : ACCEL_ERROR_LAUNCH_FAILURE);
    CHECK_EQ(argument.cleanups.load(), 1);
  }
}

TEST(the_kernels_name_is_copied) {
  accelStream_t stream = makeStream();
  Gate gate;
  launch(stream, [&] { gate.pass(); });
  char name[] = "a name that is longer than a short string";
  launchFailing(stream, name, "message");
  std::memset(name, '?', sizeof(name) - 1);
  gate.open();
  CHECK_FAILS(accelStreamSynchronize(stream), ACCEL_ERROR_LAUNCH_FAILURE,
              "a name that is longer than a short string: message");
}

TEST(a_launch_refuses_null) {
  accelStream_t stream = makeStream();
  const accelKernel_t kernel = [](void*, char*, size_t) { return 0; };
  const accelKernelCleanup_t cleanup = [](void*) { CHECK(!"the argument is the caller's"); };
  CHECK_FAILS(accelLaunchKernel(nullptr, "k", kernel, nullptr, cleanup), ACCEL_ERROR_INVALID_VALUE,
              "stream is null");
  CHECK_FAILS(accelLaunchKernel(stream, nullptr, kernel, nullptr, cleanup),
              ACCEL_ERROR_INVALID_VALUE, "name is null");
  CHECK_FAILS(accelLaunchKernel(stream, "k", nullptr, nullptr, cleanup), ACCEL_ERROR_INVALID_VALUE,
              "kernel is null");
  CHECK_OK(accelStreamSynchronize(stream));
}

TEST(copies_between_all_kinds_of_memory) {
  constexpr size_t size = 3 * kPage + 5;
  accelStream_t stream = makeStream();
  void* pinned[2];
  for (void*& block : pinned) CHECK_OK(accelHostAlloc(size, &block));
  std::vector<char> pageable[2] = {std::vector<char>(size), std::vector<char>(size)};
  struct Place {
    char* destination;
    char* source;
  };
  const Place places[] = {
      {allocate(size, 0), allocate(size, 0)},
      {allocate(size, 1), allocate(size, 1)},
      {static_cast<char*>(pinned[0]), static_cast<char*>(pinned[1])},
      {pageable[0].data(), pageable[1].data()},
  };
  unsigned char value = 1;
  for (const Place& to : places) {
    for (const Place& from : places) {
      CHECK_OK(accelMemsetAsync(to.destination, 0, size, stream));
      CHECK_OK(accelMemsetAsync(from.source, value, size, stream));
      CHECK_OK(accelMemcpyAsync(to.destination + 1, from.source + 1, size - 2, stream));
      std::vector<unsigned char> expected(size, value);
      expected.front() = expected.back() = 0;
      CHECK(bytesOf(to.destination, size, stream) == expected);
      ++value;
    }
  }
}

TEST(a_copy_waits_for_its_turn) {
  accelStream_t stream = makeStream();
  char* block = allocate(4);
  Gate gate;
  int source = 1;
  int target = 0;
  launch(stream, [&] { gate.pass(); });
  CHECK_OK(accelMemcpyAsync(block, &source, sizeof(source), stream));
  CHECK_OK(accelMemcpyAsync(&target, block, sizeof(target), stream));
  source = 2;  // pageable memory is read when the copy runs
  CHECK_EQ(target, 0);
  gate.open();
  CHECK_OK(accelStreamSynchronize(stream));
  CHECK_EQ(target, 2);
}

TEST(copies_may_overlap) {
  constexpr size_t size = 2 * kPage;
  accelStream_t stream = makeStream();
  char* block = allocate(size);
  std::vector<unsigned char> expected(size);
  for (size_t i = 0; i < size; ++i) expected[i] = static_cast<unsigned char>(i * 7 % 251);
  CHECK_OK(accelMemcpyAsync(block, expected.data(), size, stream));
  CHECK_OK(accelStreamSynchronize(stream));
  CHECK_OK(accelMemcpyAsync(block + 100, block, size - 100, stream));
  std::memmove(expected.data() + 100, expected.data(), size - 100);
  CHECK(bytesOf(block, size, stream) == expected);
  CHECK_OK(accelMemcpyAsync(block, block + 37, size - 37, stream));
  std::memmove(expected.data(), expected.data() + 37, size - 37);
  CHECK(bytesOf(block, size, stream) == expected);
}

TEST(copies_refuse_addresses_between_the_devices) {
  setenv("TORCH_ACCEL_MEMORY", "4096", 1);
  char* block = allocate(kPage);
  CHECK_FAILS(accelMemsetAsync(block + kPage, 0, 1, makeStream()), ACCEL_ERROR_INVALID_ADDRESS,
              "destination");
}

TEST(copies_and_fills_refuse_what_is_not_there) {
  accelStream_t stream = makeStream();
  char* block = allocate(kPage);
  char* neighbour = allocate(kPage);
  CHECK(neighbour == block + kPage);
  char local[8] = {};
  CHECK_FAILS(accelMemcpyAsync(nullptr, local, 8, stream), ACCEL_ERROR_INVALID_VALUE,
              "destination is null");
  CHECK_FAILS(accelMemcpyAsync(local, nullptr, 8, stream), ACCEL_ERROR_INVALID_VALUE,
              "source is null");
  CHECK_FAILS(accelMemcpyAsync(local, block, 8, nullptr), ACCEL_ERROR_INVALID_VALUE,
              "stream is null");
  CHECK_FAILS(accelMemsetAsync(nullptr, 0, 8, stream), ACCEL_ERROR_INVALID_VALUE,
              "destination is null");
  CHECK_FAILS(accelMemsetAsync(block, 0, 8, nullptr), ACCEL_ERROR_INVALID_VALUE, "stream is null");
  CHECK_FAILS(accelMemcpyAsync(block + kPage - 4, local, 8, stream), ACCEL_ERROR_INVALID_ADDRESS,
              "8 bytes at destination");
  CHECK_FAILS(accelMemcpyAsync(local, block + kPage - 4, 8, stream), ACCEL_ERROR_INVALID_ADDRESS,
              "8 bytes at source");
  CHECK_FAILS(accelMemsetAsync(block, 0, kPage + 1, stream), ACCEL_ERROR_INVALID_ADDRESS,
              "device 0");
  CHECK_EQ(accelMemsetAsync(block + 1, 0, SIZE_MAX, stream), ACCEL_ERROR_INVALID_ADDRESS);
  CHECK_OK(accelMemsetAsync(block + 1, 0, kPage - 1, stream));
  CHECK_OK(accelFree(block));
  CHECK_FAILS(accelMemcpyAsync(local, block, 8, stream), ACCEL_ERROR_INVALID_ADDRESS, "source");
  CHECK_OK(accelMemcpyAsync(nullptr, nullptr, 0, stream));
  CHECK_OK(accelMemsetAsync(nullptr, 0, 0, stream));
  CHECK_OK(accelStreamSynchronize(stream));
}
