// Events: versions, waits, timing.
#include <atomic>

#include "helpers.h"

using namespace driver_tests;

TEST(an_event_never_recorded_is_complete_and_no_wait) {
  accelStream_t stream = makeStream();
  Event event;
  CHECK_OK(accelEventQuery(event));
  CHECK_OK(accelEventSynchronize(event));
  CHECK_OK(accelStreamWaitEvent(stream, event));
  launch(stream, [] {});
  CHECK_OK(accelStreamSynchronize(stream));
  CHECK_OK(accelEventDestroy(event.release()));
}

TEST(an_event_is_complete_when_the_work_before_it_is) {
  accelStream_t stream = makeStream();
  Event event;
  Gate before;
  Gate after;
  std::atomic<bool> done{false};
  launch(stream, [&] {
    before.pass();
    sleepMilliseconds(5);
    done = true;
  });
  CHECK_OK(accelEventRecord(event, stream));
  launch(stream, [&] { after.pass(); });
  CHECK_EQ(accelEventQuery(event), ACCEL_ERROR_NOT_READY);
  before.open();
  CHECK_OK(accelEventSynchronize(event));  // would hang if it waited for the work behind it
  CHECK(done.load());
  CHECK_OK(accelEventQuery(event));
  CHECK_EQ(accelStreamQuery(stream), ACCEL_ERROR_NOT_READY);
  after.open();
  CHECK_OK(accelStreamSynchronize(stream));
}

TEST(an_event_recorded_on_an_idle_stream_is_complete) {
  accelStream_t stream = makeStream();
  Event event;
  CHECK_OK(accelEventRecord(event, stream));
  CHECK_OK(accelEventSynchronize(event));
  CHECK_OK(accelEventQuery(event));
}

TEST(a_wait_holds_up_later_work_of_its_stream_only) {
  accelStream_t recording = makeStream();
  accelStream_t waiting = makeStream();
  accelStream_t bystander = makeStream();
  Event event;
  Gate gate;
  Gate earlier;
  bool recorded_work_done = false;
  launch(recording, [&] {
    gate.pass();
    recorded_work_done = true;
  });
  CHECK_OK(accelEventRecord(event, recording));
  launch(waiting, [&] { earlier.open(); });
  CHECK_OK(accelStreamWaitEvent(waiting, event));
  launch(waiting, [&] { CHECK(recorded_work_done); });
  earlier.pass();
  launch(bystander, [] {});
  CHECK_OK(accelStreamSynchronize(bystander));
  CHECK_EQ(accelStreamQuery(waiting), ACCEL_ERROR_NOT_READY);
  gate.open();
  CHECK_OK(accelStreamSynchronize(waiting));
}

TEST(a_later_record_does_not_move_a_wait) {
  accelStream_t recording = makeStream();
  accelStream_t waiting = makeStream();
  Event event;
  Gate first;
  Gate second;
  launch(recording, [&] { first.pass(); });
  CHECK_OK(accelEventRecord(event, recording));
  CHECK_OK(accelStreamWaitEvent(waiting, event));
  launch(waiting, [] {});
  launch(recording, [&] { second.pass(); });
  CHECK_OK(accelEventRecord(event, recording));
  first.open();
  CHECK_OK(accelStreamSynchronize(waiting));  // would hang if it waited for the second record
  CHECK_EQ(accelEventQuery(event), ACCEL_ERROR_NOT_READY);
  second.open();
  CHECK_OK(accelEventSynchronize(event));
}

TEST(a_wait_is_for_the_last_record) {
  accelStream_t recording = makeStream();
  accelStream_t waiting = makeStream();
  Event event;
  Gate gate;
  bool done = false;
  launch(recording, [] {});
  CHECK_OK(accelEventRecord(event, recording));
  CHECK_OK(accelEventSynchronize(event));
  launch(recording, [&] {
    gate.pass();
    done = true;
  });
  CHECK_OK(accelEventRecord(event, recording));
  CHECK_OK(accelStreamWaitEvent(waiting, event));
  launch(waiting, [&] { CHECK(done); });
  CHECK_EQ(accelEventQuery(event), ACCEL_ERROR_NOT_READY);
  gate.open();
  CHECK_OK(accelStreamSynchronize(waiting));
}

TEST(a_stream_may_wait_for_another_devices_event) {
  accelStream_t recording = makeStream(0);
  accelStream_t waiting = makeStream(1);
  Event event(0);
  Gate gate;
  bool done = false;
  launch(recording, [&] {
    gate.pass();
    done = true;
  });
  CHECK_OK(accelEventRecord(event, recording));
  CHECK_OK(accelStreamWaitEvent(waiting, event));
  launch(waiting, [&] { CHECK(done); });
  CHECK_EQ(accelStreamQuery(waiting), ACCEL_ERROR_NOT_READY);
  gate.open();
  CHECK_OK(accelDeviceSynchronize(1));
}

TEST(an_event_may_move_between_streams_of_its_device) {
  accelStream_t streams[2] = {makeStream(), makeStream()};
  Event event;
  Gate gate;
  launch(streams[0], [&] { gate.pass(); });
  CHECK_OK(accelEventRecord(event, streams[0]));
  CHECK_EQ(accelEventQuery(event), ACCEL_ERROR_NOT_READY);
  CHECK_OK(accelEventRecord(event, streams[1]));
  CHECK_OK(accelEventQuery(event));
  gate.open();
  CHECK_OK(accelDeviceSynchronize(0));
}

TEST(event_calls_refuse_wrong_arguments) {
  accelEvent_t none = nullptr;
  CHECK_FAILS(accelEventCreate(0, 2, &none), ACCEL_ERROR_INVALID_VALUE, "flags 0x2");
  CHECK_FAILS(accelEventCreate(2, 0, &none), ACCEL_ERROR_INVALID_DEVICE, "device 2");
  CHECK_FAILS(accelEventCreate(0, 0, nullptr), ACCEL_ERROR_INVALID_VALUE, "event is null");
  CHECK(none == nullptr);
  Event event(0);
  accelStream_t stream = makeStream(1);
  CHECK_FAILS(accelEventRecord(event, stream), ACCEL_ERROR_WRONG_DEVICE,
              "the event is device 0's, the stream device 1's");
  CHECK_FAILS(accelEventRecord(nullptr, stream), ACCEL_ERROR_INVALID_VALUE, "event is null");
  CHECK_FAILS(accelEventRecord(event, nullptr), ACCEL_ERROR_INVALID_VALUE, "stream is null");
  CHECK_FAILS(accelStreamWaitEvent(nullptr, event), ACCEL_ERROR_INVALID_VALUE, "stream is null");
  CHECK_FAILS(accelStreamWaitEvent(stream, nullptr), ACCEL_ERROR_INVALID_VALUE, "event is null");
  CHECK_FAILS(accelEventQuery(nullptr), ACCEL_ERROR_INVALID_VALUE, "event is null");
  CHECK_FAILS(accelEventSynchronize(nullptr), ACCEL_ERROR_INVALID_VALUE, "event is null");
  CHECK_FAILS(accelEventDestroy(nullptr), ACCEL_ERROR_INVALID_VALUE, "event is null");
}

TEST(an_event_may_be_destroyed_while_its_record_and_a_wait_are_queued) {
  accelStream_t recording = makeStream();
  accelStream_t waiting = makeStream();
  Event event;
  Gate gate;
  bool done = false;
  launch(recording, [&] {
    gate.pass();
    done = true;
  });
  CHECK_OK(accelEventRecord(event, recording));
  CHECK_OK(accelStreamWaitEvent(waiting, event));
  launch(waiting, [&] { CHECK(done); });
  CHECK_OK(accelEventDestroy(event.release()));
  gate.open();
  CHECK_OK(accelStreamSynchronize(waiting));
}

TEST(an_event_outlives_the_stream_it_was_recorded_on) {
  const int threads = threadsAtStart();
  accelStream_t stream = makeStream();
  Event event;
  Gate gate;
  launch(stream, [&] { gate.pass(); });
  CHECK_OK(accelEventRecord(event, stream));
  CHECK_OK(accelStreamDestroy(stream));
  CHECK_EQ(accelEventQuery(event), ACCEL_ERROR_NOT_READY);
  gate.open();
  CHECK_OK(accelEventSynchronize(event));
  waitForThreadCount(threads);
  CHECK_OK(accelEventQuery(event));
  accelStream_t other = makeStream();
  CHECK_OK(accelStreamWaitEvent(other, event));
  launch(other, [] {});
  CHECK_OK(accelStreamSynchronize(other));
  CHECK_OK(accelEventDestroy(event.release()));
}

TEST(events_and_streams_agree) {
  accelStream_t stream = makeStream();
  Event event;
  for (int i = 0; i < 5000; ++i) {
    launch(stream, [] {});
    CHECK_OK(accelEventRecord(event, stream));
    if (i % 2 == 0) {
      CHECK_OK(accelEventSynchronize(event));
      CHECK_OK(accelStreamQuery(stream));
    } else {
      CHECK_OK(accelStreamSynchronize(stream));
      CHECK_OK(accelEventQuery(event));
    }
  }
}

TEST(a_token_passes_round_a_ring_of_streams) {
  constexpr int streams_count = 5;
  constexpr int rounds = 400;
  accelStream_t streams[streams_count];
  std::vector<std::unique_ptr<Event>> events;
  for (int i = 0; i < streams_count; ++i) {
    streams[i] = makeStream(i % 2);
    events.push_back(std::make_unique<Event>(i % 2, ACCEL_EVENT_DISABLE_TIMING));
  }
  int token = 0;  // unguarded: the events alone order the accesses
  for (int step = 0; step < rounds * streams_count; ++step) {
    const size_t here = step % streams_count;
    const size_t before = (here + streams_count - 1) % streams_count;
    CHECK_OK(accelStreamWaitEvent(streams[here], *events[before]));
    launch(streams[here], [&token, step] {
      CHECK_EQ(token, step);
      ++token;
    });
    CHECK_OK(accelEventRecord(*events[here], streams[here]));
  }
  CHECK_OK(accelEventSynchronize(*events.back()));
  CHECK_EQ(token, rounds * streams_count);
}

TEST(elapsed_time_is_that_of_the_work_between) {
  accelStream_t stream = makeStream();
  Event start;
  Event end;
  Gate gate;
  launch(stream, [&] { gate.pass(); });
  CHECK_OK(accelEventRecord(start, stream));
  launch(stream, [] { sleepMilliseconds(30); });
  CHECK_OK(accelEventRecord(end, stream));
  sleepMilliseconds(200);  // before `start` is reached: must not count
  const auto opened = std::chrono::steady_clock::now();
  gate.open();
  CHECK_OK(accelEventSynchronize(end));
  const std::chrono::duration<double, std::milli> waited =
      std::chrono::steady_clock::now() - opened;
  sleepMilliseconds(20);  // after `end` was reached: must not count
  double elapsed = 0;
  CHECK_OK(accelEventElapsedTime(start, end, &elapsed));
  CHECK(elapsed >= 30);
  CHECK(elapsed <= waited.count());
  double reverse = 0;
  CHECK_OK(accelEventElapsedTime(end, start, &reverse));
  CHECK_EQ(reverse, -elapsed);
  CHECK_OK(accelEventElapsedTime(end, end, &reverse));
  CHECK_EQ(reverse, 0.0);
}

TEST(elapsed_time_says_why_it_has_none) {
  accelStream_t stream = makeStream();
  Event recorded;
  Event unrecorded;
  Event pending;
  Event untimed(0, ACCEL_EVENT_DISABLE_TIMING);
  Event foreign(1);
  double ms = 0;
  Gate gate;
  CHECK_OK(accelEventRecord(recorded, stream));
  CHECK_OK(accelEventRecord(untimed, stream));
  CHECK_OK(accelEventRecord(foreign, makeStream(1)));
  launch(stream, [&] { gate.pass(); });
  CHECK_OK(accelEventRecord(pending, stream));
  CHECK_FAILS(accelEventElapsedTime(recorded, unrecorded, &ms), ACCEL_ERROR_NOT_RECORDED,
              "recorded");
  CHECK_FAILS(accelEventElapsedTime(unrecorded, recorded, &ms), ACCEL_ERROR_NOT_RECORDED,
              "recorded");
  CHECK_FAILS(accelEventElapsedTime(recorded, pending, &ms), ACCEL_ERROR_NOT_READY, "complete");
  CHECK_FAILS(accelEventElapsedTime(pending, recorded, &ms), ACCEL_ERROR_NOT_READY, "complete");
  CHECK_FAILS(accelEventElapsedTime(untimed, recorded, &ms), ACCEL_ERROR_NO_TIMING, "timing");
  CHECK_FAILS(accelEventElapsedTime(recorded, untimed, &ms), ACCEL_ERROR_NO_TIMING, "timing");
  CHECK_FAILS(accelEventElapsedTime(recorded, foreign, &ms), ACCEL_ERROR_WRONG_DEVICE, "0 and 1");
  CHECK_FAILS(accelEventElapsedTime(nullptr, recorded, &ms), ACCEL_ERROR_INVALID_VALUE, "start");
  CHECK_FAILS(accelEventElapsedTime(recorded, nullptr, &ms), ACCEL_ERROR_INVALID_VALUE, "end");
  CHECK_FAILS(accelEventElapsedTime(recorded, recorded, nullptr), ACCEL_ERROR_INVALID_VALUE,
              "milliseconds");
  gate.open();
  CHECK_OK(accelEventSynchronize(pending));
  CHECK_OK(accelEventElapsedTime(recorded, pending, &ms));
}

TEST(an_event_recorded_on_an_idle_stream_has_the_time_of_the_call) {
  accelStream_t stream = makeStream();
  Event start;
  Event end;
  const auto before = std::chrono::steady_clock::now();
  CHECK_OK(accelEventRecord(start, stream));
  sleepMilliseconds(10);
  CHECK_OK(accelEventRecord(end, stream));
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - before;
  double elapsed = 0;
  CHECK_OK(accelEventElapsedTime(start, end, &elapsed));
  CHECK(elapsed >= 10);
  CHECK(elapsed <= taken.count());
}
