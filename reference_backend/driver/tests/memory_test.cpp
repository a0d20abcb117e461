// Device memory, page-locked memory, and what an address belongs to.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "helpers.h"

using namespace driver_tests;

namespace {

constexpr size_t kPage = ACCEL_PAGE_SIZE;

void setMemory(size_t pages) {
  setenv("TORCH_ACCEL_MEMORY", std::to_string(pages * kPage).c_str(), 1);
}

bool diesOfSegmentationFault(const std::function<void()>& body) {
  const int status = statusOfChild([&] {
    signal(SIGSEGV, SIG_DFL);  // sanitizers install a handler
    body();
  });
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

void checkAttributes(const void* address, accelMemoryKind expected_kind, int expected_device) {
  auto kind = static_cast<accelMemoryKind>(-1);
  int device = -2;
  CHECK_OK(accelPointerGetAttributes(address, &kind, &device));
  CHECK_EQ(kind, expected_kind);
  CHECK_EQ(device, expected_device);
}

}  // namespace

TEST(allocations_are_pages_and_do_not_overlap) {
  std::vector<std::pair<char*, size_t>> blocks;
  for (const int device : {0, 1}) {
    for (const size_t size : {size_t{1}, kPage, kPage + 1, size_t{100000}}) {
      blocks.emplace_back(allocate(size, device), size);
      CHECK_EQ(reinterpret_cast<uintptr_t>(blocks.back().first) % kPage, 0u);
    }
  }
  std::sort(blocks.begin(), blocks.end());
  for (size_t i = 1; i < blocks.size(); ++i) {
    CHECK(blocks[i - 1].first + blocks[i - 1].second <= blocks[i].first);
  }
}

TEST(memory_is_accounted_by_device_in_whole_pages) {
  setMemory(100);
  CHECK_EQ(freeBytes(), 100 * kPage);
  void* first = allocate(1);
  CHECK_EQ(freeBytes(), 99 * kPage);
  void* second = allocate(2 * kPage + 1);
  CHECK_EQ(freeBytes(), 96 * kPage);
  CHECK_EQ(freeBytes(1), 100 * kPage);
  CHECK_OK(accelFree(first));
  CHECK_EQ(freeBytes(), 97 * kPage);
  CHECK_OK(accelFree(second));
  CHECK_EQ(freeBytes(), 100 * kPage);
  CHECK_OK(accelMemGetInfo(0, nullptr, nullptr));
  CHECK_FAILS(accelMemGetInfo(2, nullptr, nullptr), ACCEL_ERROR_INVALID_DEVICE, "device 2");
}

TEST(a_size_of_zero_is_a_null_address) {
  void* address = &address;
  CHECK_OK(accelMalloc(0, 0, &address));
  CHECK(address == nullptr);
  address = &address;
  CHECK_OK(accelHostAlloc(0, &address));
  CHECK(address == nullptr);
  CHECK_OK(accelFree(nullptr));
  CHECK_OK(accelHostFree(nullptr));
}

TEST(out_of_memory_says_what_is_there_and_is_recovered_from) {
  setMemory(10);
  void* address = &address;
  CHECK_FAILS(accelMalloc(0, 11 * kPage, &address), ACCEL_ERROR_OUT_OF_MEMORY, "45056 bytes");
  CHECK(address == nullptr);
  CHECK_EQ(accelMalloc(0, SIZE_MAX, &address), ACCEL_ERROR_OUT_OF_MEMORY);
  CHECK_EQ(accelMalloc(0, SIZE_MAX - kPage / 2, &address), ACCEL_ERROR_OUT_OF_MEMORY);
  void* all = allocate(10 * kPage);
  CHECK_EQ(freeBytes(), 0u);
  CHECK_FAILS(accelMalloc(0, 1, &address), ACCEL_ERROR_OUT_OF_MEMORY, "0 of 40960 bytes are free");
  allocate(10 * kPage, 1);  // the other device has its own
  CHECK_OK(accelFree(all));
  CHECK(allocate(10 * kPage) == all);
}

TEST(freed_neighbours_become_one_piece) {
  setMemory(4);
  const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 3, 2, 0}, {0, 3, 1, 2}};
  for (const auto& order : orders) {
    char* blocks[4];
    for (char*& block : blocks) block = allocate(kPage);
    for (const int i : order) CHECK_OK(accelFree(blocks[i]));
    CHECK_OK(accelFree(allocate(4 * kPage)));
  }
}

TEST(holes_are_reused_but_not_joined_over_live_blocks) {
  setMemory(4);
  char* blocks[4];
  for (char*& block : blocks) block = allocate(kPage);
  CHECK_OK(accelFree(blocks[0]));
  CHECK_OK(accelFree(blocks[2]));
  void* address = nullptr;
  CHECK_FAILS(accelMalloc(0, 2 * kPage, &address), ACCEL_ERROR_OUT_OF_MEMORY,
              "8192 of 16384 bytes are free, at most 4096 in one piece");
  CHECK(allocate(kPage) == blocks[0]);
  CHECK(allocate(kPage) == blocks[2]);
}

TEST(only_the_first_byte_of_a_live_allocation_can_be_freed) {
  char* block = allocate(3 * kPage);
  int local = 0;
  void* pinned = nullptr;
  CHECK_OK(accelHostAlloc(kPage, &pinned));
  CHECK_FAILS(accelFree(block + kPage), ACCEL_ERROR_INVALID_ADDRESS, "not the first byte");
  CHECK_EQ(accelFree(&local), ACCEL_ERROR_INVALID_ADDRESS);
  CHECK_EQ(accelFree(pinned), ACCEL_ERROR_INVALID_ADDRESS);
  CHECK_EQ(accelFree(accelKernelPointer(block)), ACCEL_ERROR_INVALID_ADDRESS);
  CHECK_EQ(accelHostFree(block), ACCEL_ERROR_INVALID_ADDRESS);
  CHECK_FAILS(accelHostFree(static_cast<char*>(pinned) + 1), ACCEL_ERROR_INVALID_ADDRESS,
              "not the first byte");
  const size_t before = freeBytes();
  CHECK_OK(accelFree(block));
  CHECK_EQ(freeBytes(), before + 3 * kPage);
  CHECK_EQ(accelFree(block), ACCEL_ERROR_INVALID_ADDRESS);
  CHECK_OK(accelHostFree(pinned));
  CHECK_EQ(accelHostFree(pinned), ACCEL_ERROR_INVALID_ADDRESS);
}

TEST(memory_calls_refuse_null_and_unknown_devices) {
  void* address = nullptr;
  CHECK_FAILS(accelMalloc(0, 1, nullptr), ACCEL_ERROR_INVALID_VALUE, "address");
  CHECK_FAILS(accelMalloc(2, 1, &address), ACCEL_ERROR_INVALID_DEVICE, "device 2");
  CHECK_FAILS(accelMalloc(-1, 1, &address), ACCEL_ERROR_INVALID_DEVICE, "device -1");
  CHECK_FAILS(accelHostAlloc(1, nullptr), ACCEL_ERROR_INVALID_VALUE, "address");
}

TEST(free_waits_for_all_queued_work_of_the_device) {
  void* block = allocate(kPage);
  std::atomic<bool> done{false};
  Gate gate;
  launch(makeStream(0), [&] {
    gate.pass();
    sleepMilliseconds(20);
    done = true;
  });
  gate.open();
  CHECK_OK(accelFree(block));
  CHECK(done.load());
}

TEST(a_wrong_free_does_not_wait) {
  char* block = allocate(2 * kPage);
  accelStream_t stream = makeStream(0);
  Gate gate;
  launch(stream, [&] { gate.pass(); });
  CHECK_EQ(accelFree(block + kPage), ACCEL_ERROR_INVALID_ADDRESS);
  gate.open();
  CHECK_OK(accelStreamSynchronize(stream));
}

TEST(free_does_not_take_the_pending_error) {
  void* block = allocate(kPage);
  accelStream_t stream = makeStream(0);
  launchFailing(stream, "broken", "message");
  CHECK_OK(accelFree(block));
  CHECK_FAILS(accelStreamSynchronize(stream), ACCEL_ERROR_LAUNCH_FAILURE, "broken: message");
}

TEST(freed_pages_go_back_to_the_host) {
  constexpr size_t size = 64 * kPage;
  accelStream_t stream = makeStream();
  char* block = allocate(size);
  CHECK_OK(accelMemsetAsync(block, 0xab, size, stream));
  CHECK_OK(accelFree(block));
  CHECK(allocate(size) == block);
  // Pages that were given back read as 0.
  CHECK(bytesOf(block, size, stream) == std::vector<unsigned char>(size, 0));
}

TEST(host_access_to_device_memory_dies) {
  for (const int device : {0, 1}) {
    char* block = allocate(2 * kPage, device);
    for (volatile char* address : {block, block + 1, block + 2 * kPage - 1}) {
      CHECK(diesOfSegmentationFault([=] { (void)*address; }));
      CHECK(diesOfSegmentationFault([=] { *address = 1; }));
    }
  }
}

TEST(kernels_reach_device_memory_at_one_distance) {
  const ptrdiff_t distance = accelKernelDistance();
  for (const int device : {0, 1}) {
    char* block = allocate(kPage, device);
    CHECK(static_cast<char*>(accelKernelPointer(block)) == block + distance);
    accelStream_t stream = makeStream(device);
    launch(stream, [=] { std::memset(accelKernelPointer(block), 7, kPage); });
    launch(stream, [=] {
      const auto* bytes = static_cast<unsigned char*>(accelKernelPointer(block));
      for (size_t i = 0; i < kPage; ++i) CHECK_EQ(int{bytes[i]}, 7);
    });
    CHECK_OK(accelStreamSynchronize(stream));
  }
  CHECK_EQ(accelKernelDistance(), distance);
  CHECK(accelKernelPointer(nullptr) == nullptr);
}

TEST(kernels_cannot_run_from_one_device_into_the_next) {
  setMemory(4);
  allocate(4 * kPage, 1);
  auto* end = static_cast<volatile char*>(accelKernelPointer(allocate(4 * kPage, 0))) + 4 * kPage;
  CHECK(!diesOfSegmentationFault([=] { *(end - 1) = 1; }));
  CHECK(diesOfSegmentationFault([=] { *end = 1; }));
}

TEST(devices_do_not_share_memory) {
  char* block[2] = {allocate(kPage, 0), allocate(kPage, 1)};
  accelStream_t stream = makeStream();
  for (const int device : {0, 1}) {
    CHECK_OK(accelMemsetAsync(block[device], 10 + device, kPage, stream));
  }
  for (const int device : {0, 1}) {
    const auto expected = static_cast<unsigned char>(10 + device);
    CHECK(bytesOf(block[device], kPage, stream) == std::vector<unsigned char>(kPage, expected));
  }
}

TEST(attributes_tell_what_an_address_belongs_to) {
  int local = 0;
  checkAttributes(nullptr, ACCEL_MEMORY_UNKNOWN, -1);
  checkAttributes(&local, ACCEL_MEMORY_UNKNOWN, -1);
  for (const int device : {0, 1}) {
    char* block = allocate(2 * kPage, device);
    checkAttributes(block, ACCEL_MEMORY_DEVICE, device);
    checkAttributes(block + 5000, ACCEL_MEMORY_DEVICE, device);
    checkAttributes(block + 2 * kPage - 1, ACCEL_MEMORY_DEVICE, device);
    checkAttributes(block + 2 * kPage, ACCEL_MEMORY_UNKNOWN, -1);
    checkAttributes(block - 1, ACCEL_MEMORY_UNKNOWN, -1);
    checkAttributes(accelKernelPointer(block), ACCEL_MEMORY_UNKNOWN, -1);
    CHECK_OK(accelPointerGetAttributes(block, nullptr, nullptr));
    CHECK_OK(accelFree(block));
    checkAttributes(block, ACCEL_MEMORY_UNKNOWN, -1);
  }
}

TEST(page_locked_memory_is_known_and_the_hosts) {
  void* address = nullptr;
  CHECK_OK(accelHostAlloc(10000, &address));
  char* block = static_cast<char*>(address);
  CHECK_EQ(reinterpret_cast<uintptr_t>(block) % kPage, 0u);
  std::memset(block, 3, 10000);
  checkAttributes(block, ACCEL_MEMORY_HOST, -1);
  checkAttributes(block + 9999, ACCEL_MEMORY_HOST, -1);
  checkAttributes(block - 1, ACCEL_MEMORY_UNKNOWN, -1);
  checkAttributes(block + 3 * kPage, ACCEL_MEMORY_UNKNOWN, -1);
  CHECK_OK(accelHostFree(block));
  checkAttributes(block, ACCEL_MEMORY_UNKNOWN, -1);
  CHECK_FAILS(accelHostAlloc(SIZE_MAX, &address), ACCEL_ERROR_OUT_OF_MEMORY, "no room");
  CHECK(address == nullptr);
  CHECK_EQ(accelHostAlloc(SIZE_MAX / 2, &address), ACCEL_ERROR_OUT_OF_MEMORY);
}

TEST(many_threads_allocate_and_free) {
  setMemory(2000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      accelStream_t stream = makeStream(t % 2);
      for (int i = 0; i < 200; ++i) {
        const size_t size = kPage * static_cast<size_t>(1 + (i * 7 + t) % 5) - 3;
        char* block = allocate(size, t % 2);
        const auto value = static_cast<unsigned char>(t * 50 + i % 50);
        CHECK_OK(accelMemsetAsync(block, value, size, stream));
        CHECK(bytesOf(block, size, stream) == std::vector<unsigned char>(size, value));
        CHECK_OK(accelFree(block));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ(freeBytes(0), 2000 * kPage);
  CHECK_EQ(freeBytes(1), 2000 * kPage);
}
