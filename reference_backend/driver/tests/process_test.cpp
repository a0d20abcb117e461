// The driver and the life of the process: fork, shutdown, exit.
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>

#include "helpers.h"

using namespace driver_tests;

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

TEST(a_child_of_a_process_with_workers_is_refused_not_hung) {
  accelStream_t stream = makeStream();
  Event event;
  char* block = allocate(1);
  Gate gate;
  launch(stream, [&] { gate.pass(); });
  CHECK_OK(accelEventRecord(event, stream));
  const auto refused = [&] {
    accelStream_t new_stream = nullptr;
    accelEvent_t new_event = nullptr;
    void* address = nullptr;
    double ms = 0;
    CHECK_FAILS(tryLaunch(stream, [] {}), ACCEL_ERROR_FORKED, "spawn");
    CHECK_EQ(accelMemcpyAsync(block, &ms, 1, stream), ACCEL_ERROR_FORKED);
    CHECK_EQ(accelMemsetAsync(block, 0, 1, stream), ACCEL_ERROR_FORKED);
    CHECK_EQ(accelStreamCreate(0, 0, &new_stream), ACCEL_ERROR_FORKED);
    CHECK_EQ(accelStreamQuery(stream), ACCEL_ERROR_FORKED);
    CHECK_EQ(accelStreamSynchronize(stream), ACCEL_ERROR_FORKED);
    CHECK_EQ(accelStreamWaitEvent(stream, event), ACCEL_ERROR_FORKED);
    CHECK_EQ(accelDeviceSynchronize(0), ACCEL_ERROR_FORKED);
    CHECK_EQ(accelEventCreate(0, 0, &new_event), ACCEL_ERROR_FORKED);
    CHECK_EQ(accelEventRecord(event, stream), ACCEL_ERROR_FORKED);
    CHECK_EQ(accelEventQuery(event), ACCEL_ERROR_FORKED);
    CHECK_EQ(accelEventSynchronize(event), ACCEL_ERROR_FORKED);
    CHECK_EQ(accelEventElapsedTime(event, event, &ms), ACCEL_ERROR_FORKED);
    CHECK_EQ(accelMalloc(0, 1, &address), ACCEL_ERROR_FORKED);
    CHECK_EQ(accelFree(block), ACCEL_ERROR_FORKED);
    CHECK_EQ(accelMemGetInfo(0, nullptr, nullptr), ACCEL_ERROR_FORKED);
    CHECK_EQ(accelHostAlloc(1, &address), ACCEL_ERROR_FORKED);
    // What asks nothing of the device answers, and what gives up does no harm.
    int device = -1;
    CHECK_OK(accelGetDeviceCount(&device));
    CHECK_EQ(device, 2);
    CHECK_OK(accelSetDevice(1));
    CHECK_OK(accelPointerGetAttributes(block, nullptr, &device));
    CHECK_EQ(device, 0);
    CHECK_OK(accelEventDestroy(event));
    CHECK_OK(accelStreamDestroy(stream));
    CHECK_OK(accelShutdown());
    CHECK_OK(accelShutdown());
  };
  inChild(refused);
  inChild([&] { inChild(refused); });  // a grandchild
  gate.open();
  CHECK_OK(accelStreamSynchronize(stream));  // the parent is as it was
  CHECK_OK(accelEventQuery(event));
}

TEST(a_child_of_a_process_without_workers_works) {
  char* block = allocate(10);
  accelStream_t stream = makeStream();
  Event event;
  CHECK_OK(accelEventRecord(event, stream));
  for (int i = 0; i < 2; ++i) {
    inChild([&] {
      CHECK_OK(accelEventQuery(event));
      CHECK_OK(accelMemsetAsync(block, 5, 10, stream));
      CHECK(bytesOf(block, 10, stream) == std::vector<unsigned char>(10, 5));
      accelStream_t own = makeStream(1);
      launch(own, [] {});
      CHECK_OK(accelDeviceSynchronize(1));
      CHECK_OK(accelFree(allocate(10, 1)));
      CHECK_OK(accelFree(block));
      CHECK_OK(accelShutdown());
    });
  }
  CHECK(bytesOf(block, 10, stream) == std::vector<unsigned char>(10, 0));
}

TEST(a_child_may_ask_for_attributes_whatever_the_parents_threads_do) {
  std::atomic<bool> stop{false};
  char* block = allocate(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        CHECK_OK(accelFree(allocate(1)));
        CHECK_OK(accelStreamDestroy(makeStream()));
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    inChild([&] {
      int device = -1;
      CHECK_OK(accelPointerGetAttributes(block, nullptr, &device));
      CHECK_EQ(device, 0);
    });
  }
  stop = true;
  for (auto& thread : threads) thread.join();
}

TEST(shutdown_finishes_queued_work_and_ends_the_workers) {
  const int threads = threadsAtStart();
  accelStream_t streams[3] = {makeStream(0), makeStream(0, -1), makeStream(1)};
  Event event(0);
  char* block = allocate(1);
  std::atomic<int> done{0};
  Gate gate;
  launch(streams[0], [&] { gate.pass(); });
  CHECK_OK(accelEventRecord(event, streams[0]));
  for (accelStream_t stream : streams) {
    CHECK_OK(accelStreamWaitEvent(stream, event));
    for (int i = 0; i < 100; ++i) launch(stream, [&] { ++done; });
  }
  accelStream_t destroyed = makeStream();
  launch(destroyed, [&] {
    gate.pass();
    ++done;
  });
  CHECK_OK(accelStreamDestroy(destroyed));
  std::thread opener([&] {
    sleepMilliseconds(20);
    gate.open();
  });
  CHECK_OK(accelShutdown());
  CHECK_EQ(done.load(), 301);
  opener.join();
  // The kernel takes a joined thread off its list a moment after it told the joiner.
  waitForThreadCount(threads);
  CHECK_OK(accelShutdown());

  accelStream_t stream = nullptr;
  CHECK_FAILS(tryLaunch(streams[0], [] {}), ACCEL_ERROR_SHUT_DOWN, "shut down");
  CHECK_EQ(accelMemsetAsync(block, 0, 1, streams[0]), ACCEL_ERROR_SHUT_DOWN);
  CHECK_EQ(accelMemcpyAsync(block, block, 1, streams[0]), ACCEL_ERROR_SHUT_DOWN);
  CHECK_EQ(accelEventRecord(event, streams[0]), ACCEL_ERROR_SHUT_DOWN);
  CHECK_EQ(accelStreamWaitEvent(streams[0], event), ACCEL_ERROR_SHUT_DOWN);
  CHECK_EQ(accelStreamCreate(0, 0, &stream), ACCEL_ERROR_SHUT_DOWN);
  // What needs no worker goes on, so that objects may be released in any order.
  CHECK_OK(accelStreamQuery(streams[0]));
  CHECK_OK(accelStreamSynchronize(streams[0]));
  CHECK_OK(accelDeviceSynchronize(0));
  CHECK_OK(accelEventSynchronize(event));
  CHECK_OK(accelEventDestroy(event.release()));
  CHECK_OK(accelFree(block));
  for (accelStream_t each : streams) CHECK_OK(accelStreamDestroy(each));
  CHECK_EQ(threadCount(), threads);
}

TEST(shutdown_keeps_the_pending_error) {
  accelStream_t stream = makeStream();
  launchFailing(stream, "broken", "message");
  CHECK_OK(accelShutdown());
  CHECK_FAILS(accelStreamSynchronize(stream), ACCEL_ERROR_LAUNCH_FAILURE, "broken: message");
}

TEST(shutdown_of_an_unused_driver) {
  CHECK_OK(accelShutdown());
  CHECK_OK(accelShutdown());
  accelStream_t stream = nullptr;
  CHECK_EQ(accelStreamCreate(0, 0, &stream), ACCEL_ERROR_SHUT_DOWN);
}

TEST(launches_race_with_shutdown) {
  accelStream_t stream = makeStream();
  std::atomic<int> accepted{0};
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (tryLaunch(stream, [&] { ++ran; }) == ACCEL_SUCCESS) ++accepted;
    });
  }
  while (accepted < 100) std::this_thread::yield();
  CHECK_OK(accelShutdown());
  for (auto& thread : threads) thread.join();
  CHECK_EQ(ran.load(), accepted.load());
}

TEST(a_process_may_exit_without_shutdown_while_kernels_run) {
  if (kThreadSanitizer) return;  // it reports every thread that runs at exit
  const int status = statusOfChild([] {
    launch(makeStream(), [] { sleepMilliseconds(10000); });
    std::exit(7);
  });
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 7);
}
