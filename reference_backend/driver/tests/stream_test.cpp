// Streams: order, asynchrony, queries, waiting, workers.
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <set>

#include "helpers.h"

using namespace driver_tests;

namespace {

// A kernel that queues itself again until told to stop: the stream is never idle.
struct Chain {
  explicit Chain(accelStream_t stream) : stream(stream) { next(); }

  void next() {
    launch(stream, [this] {
      if (!stop) next();
    });
  }

  const accelStream_t stream;
  std::atomic<bool> stop{false};
};

// Busy, not asleep: a sleep takes longer than what is to be met.
void spinFor(std::chrono::nanoseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

TEST(work_runs_in_order) {
  accelStream_t stream = makeStream();
  std::vector<int> seen;
  for (int i = 0; i < 10000; ++i) {
    launch(stream, [&seen, i] { seen.push_back(i); });
  }
  CHECK_OK(accelStreamSynchronize(stream));
  CHECK_EQ(seen.size(), 10000u);
  for (int i = 0; i < 10000; ++i) CHECK_EQ(seen[static_cast<size_t>(i)], i);
}

TEST(a_launch_returns_before_its_kernel_ran) {
  accelStream_t stream = makeStream();
  Gate gate;
  std::atomic<bool> ran{false};
  launch(stream, [&] { gate.pass(); });
  launch(stream, [&] { ran = true; });
  CHECK(!ran.load());
  gate.open();
  CHECK_OK(accelStreamSynchronize(stream));
  CHECK(ran.load());
}

TEST(a_query_is_ready_only_when_nothing_is_queued_or_running) {
  accelStream_t stream = makeStream();
  CHECK_OK(accelStreamQuery(stream));
  Gate first;
  Gate second;
  Gate entered;
  launch(stream, [&] { first.pass(); });
  launch(stream, [&] {
    entered.open();
    second.pass();
  });
  CHECK_EQ(accelStreamQuery(stream), ACCEL_ERROR_NOT_READY);
  first.open();
  entered.pass();  // the last kernel runs, the queue is empty
  CHECK_EQ(accelStreamQuery(stream), ACCEL_ERROR_NOT_READY);
  second.open();
  CHECK_OK(accelStreamSynchronize(stream));
  CHECK_OK(accelStreamQuery(stream));
}

TEST(a_query_sees_the_end_without_a_synchronisation) {
  accelStream_t stream = makeStream();
  for (int i = 0; i < 2000; ++i) {
    int value = 0;
    launch(stream, [&] { value = i; });
    while (accelStreamQuery(stream) == ACCEL_ERROR_NOT_READY) {
    }
    CHECK_EQ(value, i);
  }
}

TEST(streams_overlap) {
  for (const int other_device : {0, 1}) {
    accelStream_t first = makeStream(0);
    accelStream_t second = makeStream(other_device);
    Gate gates[2];
    launch(first, [&] {
      gates[0].open();
      gates[1].pass();
    });
    launch(second, [&] {
      gates[1].open();
      gates[0].pass();
    });
    CHECK_OK(accelStreamSynchronize(first));
    CHECK_OK(accelStreamSynchronize(second));
  }
}

TEST(synchronisation_waits_for_what_was_queued_up_to_the_call) {
  accelStream_t stream = makeStream();
  void* block = allocate(1);
  Event event;
  Chain chain(stream);
  // Each would hang if it waited for an idle stream.
  CHECK_OK(accelStreamSynchronize(stream));
  CHECK_OK(accelDeviceSynchronize(0));
  CHECK_OK(accelFree(block));
  CHECK_OK(accelEventRecord(event, stream));
  CHECK_OK(accelEventSynchronize(event));
  CHECK_EQ(accelStreamQuery(stream), ACCEL_ERROR_NOT_READY);
  chain.stop = true;
  while (accelStreamQuery(stream) == ACCEL_ERROR_NOT_READY) sleepMilliseconds(1);
}

TEST(many_threads_wait_for_different_places) {
  accelStream_t stream = makeStream();
  constexpr int count = 8;
  std::vector<std::thread> threads;
  std::vector<Gate> gates(count);
  std::atomic<int> done{0};
  for (int i = 0; i < count; ++i) {
    launch(stream, [&gates, &done, i] {
      gates[static_cast<size_t>(i)].pass();
      ++done;
    });
    Gate called;
    threads.emplace_back([&, i] {
      called.open();
      CHECK_OK(accelStreamSynchronize(stream));
      CHECK(done.load() > i);
      if (i + 1 < count) gates[static_cast<size_t>(i + 1)].open();
    });
    called.pass();
    sleepMilliseconds(2);  // most threads are asleep in their wait by then
  }
  gates[0].open();
  for (auto& thread : threads) thread.join();
}

TEST(a_worker_starts_with_the_first_work_and_runs_it_all) {
  const int threads = threadsAtStart();
  accelStream_t stream = makeStream();
  accelStream_t other = makeStream();
  CHECK_EQ(threadCount(), threads);
  std::set<std::thread::id> ids;
  for (int i = 0; i < 3; ++i) {
    launch(stream, [&] { ids.insert(std::this_thread::get_id()); });
    CHECK_OK(accelStreamSynchronize(stream));
  }
  CHECK_EQ(threadCount(), threads + 1);
  CHECK_EQ(ids.size(), 1u);
  launch(other, [&] { ids.insert(std::this_thread::get_id()); });
  CHECK_OK(accelStreamSynchronize(other));
  CHECK_EQ(ids.size(), 2u);
  CHECK(!ids.contains(std::this_thread::get_id()));
}

TEST(workers_leave_the_processs_signals_to_others) {
  accelStream_t stream = makeStream();
  launch(stream, [] {
    sigset_t blocked;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &blocked), 0);
    for (const int number : {SIGINT, SIGTERM, SIGALRM, SIGCHLD})
      CHECK(sigismember(&blocked, number));
    for (const int number : {SIGSEGV, SIGFPE, SIGBUS}) CHECK(!sigismember(&blocked, number));
  });
  CHECK_OK(accelStreamSynchronize(stream));
  sigset_t blocked;
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &blocked), 0);
  CHECK(!sigismember(&blocked, SIGINT));
}

TEST(a_high_priority_stream_is_preferred_where_allowed) {
  const auto niceOfWorker = [](int priority) {
    accelStream_t stream = makeStream(0, priority);
    int result = 0;
    launch(stream,
           [&] { result = getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))); });
    CHECK_OK(accelStreamSynchronize(stream));
    return result;
  };
  // Whether this process may: tried on a thread of its own.
  bool allowed = false;
  const int own = getpriority(PRIO_PROCESS, 0);
  std::thread([&] {
    allowed = setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), own - 1) == 0;
  }).join();
  CHECK_EQ(niceOfWorker(0), own);
  if (allowed) {
    CHECK(niceOfWorker(-1) < own);
  } else {
    CHECK_EQ(niceOfWorker(-1), own);
  }
}

TEST(stream_calls_refuse_wrong_arguments) {
  accelStream_t stream = nullptr;
  CHECK_FAILS(accelStreamCreate(0, 1, &stream), ACCEL_ERROR_INVALID_VALUE, "priority 1");
  CHECK_FAILS(accelStreamCreate(0, -2, &stream), ACCEL_ERROR_INVALID_VALUE, "priority -2");
  CHECK_FAILS(accelStreamCreate(2, 0, &stream), ACCEL_ERROR_INVALID_DEVICE, "device 2");
  CHECK_FAILS(accelStreamCreate(0, 0, nullptr), ACCEL_ERROR_INVALID_VALUE, "stream is null");
  CHECK(stream == nullptr);
  CHECK_FAILS(accelStreamDestroy(nullptr), ACCEL_ERROR_INVALID_VALUE, "stream is null");
  CHECK_FAILS(accelStreamQuery(nullptr), ACCEL_ERROR_INVALID_VALUE, "stream is null");
  CHECK_FAILS(accelStreamSynchronize(nullptr), ACCEL_ERROR_INVALID_VALUE, "stream is null");
  int device = -1;
  CHECK_FAILS(accelStreamGetDevice(nullptr, &device), ACCEL_ERROR_INVALID_VALUE, "stream is null");
  stream = makeStream(1);
  CHECK_FAILS(accelStreamGetDevice(stream, nullptr), ACCEL_ERROR_INVALID_VALUE, "device is null");
  CHECK_OK(accelStreamGetDevice(stream, &device));
  CHECK_EQ(device, 1);
}

TEST(destroying_a_stream_lets_its_work_finish_and_does_not_wait) {
  const int threads = threadsAtStart();
  Gate gate;
  std::atomic<int> done{0};
  accelStream_t stream = makeStream();
  launch(stream, [&] { gate.pass(); });
  for (int i = 0; i < 100; ++i) launch(stream, [&] { ++done; });
  CHECK_OK(accelStreamDestroy(stream));  // would hang here if it waited
  CHECK_EQ(done.load(), 0);
  gate.open();
  CHECK_OK(accelDeviceSynchronize(0));  // still waits for the destroyed stream's work
  CHECK_EQ(done.load(), 100);
  waitForThreadCount(threads);
}

TEST(a_kernel_may_destroy_its_own_stream) {
  const int threads = threadsAtStart();
  accelStream_t stream = makeStream();
  launch(stream, [=] { CHECK_OK(accelStreamDestroy(stream)); });
  CHECK_OK(accelDeviceSynchronize(0));
  waitForThreadCount(threads);
}

TEST(a_destroyed_stream_takes_no_more_work) {
  accelStream_t stream = makeStream();
  Gate entered;
  Gate destroyed;
  launch(stream, [&] {
    entered.open();
    destroyed.pass();
    CHECK_FAILS(tryLaunch(stream, [] {}), ACCEL_ERROR_SHUT_DOWN, "destroyed");
  });
  entered.pass();
  CHECK_OK(accelStreamDestroy(stream));
  destroyed.open();
  CHECK_OK(accelDeviceSynchronize(0));
}

TEST(destroyed_streams_leave_no_memory) {
  const int threads = threadsAtStart();
  const auto churn = [&] {
    for (int i = 0; i < 1000; ++i) {
      CHECK_OK(accelStreamDestroy(makeStream()));
      accelStream_t used = makeStream();
      launch(used, [] {});
      CHECK_OK(accelStreamDestroy(used));
    }
    CHECK_OK(accelDeviceSynchronize(0));
    waitForThreadCount(threads);
    return mallinfo2().uordblks;  // 0 under a sanitizer
  };
  const size_t before = churn();
  CHECK(churn() < before + 100000);
}

TEST(a_thousand_streams_leave_no_thread) {
  const int threads = threadsAtStart();
  std::atomic<int> done{0};
  for (int i = 0; i < 1000; ++i) {
    accelStream_t stream = makeStream(i % 2, i % 3 == 0 ? -1 : 0);
    launch(stream, [&] { ++done; });
    if (i % 5 == 0) CHECK_OK(accelStreamSynchronize(stream));
    CHECK_OK(accelStreamDestroy(stream));
    CHECK_OK(accelStreamDestroy(makeStream()));  // never used
  }
  CHECK_OK(accelDeviceSynchronize(0));
  CHECK_OK(accelDeviceSynchronize(1));
  CHECK_EQ(done.load(), 1000);
  waitForThreadCount(threads);
}

TEST(kernels_may_queue_work_but_not_wait) {
  accelStream_t stream = makeStream();
  accelStream_t other = makeStream();
  Event event;
  void* block = allocate(1);
  std::atomic<int> done{0};
  launch(stream, [&] {
    launch(stream, [&] { ++done; });
    launch(other, [&] { ++done; });
    CHECK_FAILS(accelStreamSynchronize(stream), ACCEL_ERROR_INVALID_VALUE, "from a kernel");
    CHECK_FAILS(accelDeviceSynchronize(0), ACCEL_ERROR_INVALID_VALUE, "from a kernel");
    CHECK_FAILS(accelEventSynchronize(event), ACCEL_ERROR_INVALID_VALUE, "from a kernel");
    CHECK_FAILS(accelFree(block), ACCEL_ERROR_INVALID_VALUE, "from a kernel");
    CHECK_FAILS(accelShutdown(), ACCEL_ERROR_INVALID_VALUE, "from a kernel");
  });
  CHECK_OK(accelStreamSynchronize(stream));
  CHECK_OK(accelStreamSynchronize(stream));  // what the kernel queued
  CHECK_OK(accelStreamSynchronize(other));
  CHECK_EQ(done.load(), 2);
}

TEST(no_wakeup_of_a_worker_is_lost) {
  // Launches arrive around the time when the worker stops polling and falls asleep, and nothing
  // follows that could wake it instead. A lost wake-up is a hang.
  accelStream_t stream = makeStream();
  std::minstd_rand random(1);
  int done = 0;
  for (int i = 0; i < 100000; ++i) {
    launch(stream, [&] { ++done; });
    if (i % 5 > 1) continue;
    CHECK_OK(accelStreamSynchronize(stream));
    CHECK_EQ(done, i + 1);
    if (i % 5 == 0) spinFor(std::chrono::nanoseconds(25000 + random() % 12000));
  }
  CHECK_OK(accelStreamSynchronize(stream));
  CHECK_EQ(done, 100000);
}

TEST(no_wakeup_of_a_waiter_is_lost) {
  // Kernels end around the time when the waiting thread stops polling and falls asleep.
  accelStream_t stream = makeStream();
  std::minstd_rand random(1);
  for (int i = 0; i < 30000; ++i) {
    const auto time = std::chrono::nanoseconds(25000 + random() % 12000);
    launch(stream, [=] { spinFor(time); });
    CHECK_OK(accelStreamSynchronize(stream));
  }
}

TEST(many_threads_use_the_same_streams) {
  accelStream_t streams[3] = {makeStream(0), makeStream(0, -1), makeStream(1)};
  int counts[3] = {};  // each is touched by its stream's worker only
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(static_cast<unsigned>(t + 1));
      const Event events[2] = {Event(0), Event(1)};
      for (int i = 0; i < 1500; ++i) {
        const size_t to = random() % 3;
        const size_t from = random() % 3;
        launch(streams[to], [&counts, to] { ++counts[to]; });
        const Event& event = events[from / 2];
        CHECK_OK(accelEventRecord(event, streams[from]));
        CHECK_OK(accelStreamWaitEvent(streams[to], event));
        if (i % 10 == 0) CHECK_OK(accelEventSynchronize(event));
        if (i % 50 == 0) CHECK_OK(accelDeviceSynchronize(t % 2));
        const accelError_t ready = accelStreamQuery(streams[to]);
        CHECK(ready == ACCEL_SUCCESS || ready == ACCEL_ERROR_NOT_READY);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_OK(accelDeviceSynchronize(0));
  CHECK_OK(accelDeviceSynchronize(1));
  CHECK_EQ(counts[0] + counts[1] + counts[2], 4 * 1500);
}
