"""Events: versions, waits, times, errors."""

import gc

import pytest
import torch

DELAY_MS = 100


def test_unrecorded_event_holds_nothing_up():
    event = torch.accel.Event()
    assert event.query()
    event.wait()
    event.synchronize()
    torch.accel.current_stream().wait_event(event)
    assert torch.accel.current_stream().query()


def test_query_and_synchronize():
    event = torch.Event("accel")
    torch.accel._sleep(DELAY_MS)
    event.record()
    torch.accel._sleep(DELAY_MS)
    assert not event.query()
    event.synchronize()
    assert event.query()
    assert not torch.accel.current_stream().query()


def test_event_of_an_idle_stream_is_complete():
    torch.accel.synchronize()
    event = torch.accel.current_stream().record_event()
    assert event.query()


def test_recording_again_does_not_move_a_wait():
    first, second = torch.accel.Stream(), torch.accel.Stream()
    event = torch.Event("accel")
    with first:
        torch.accel._sleep(20)
    event.record(first)
    second.wait_event(event)
    with first:
        torch.accel._sleep(2000)
    event.record(first)
    second.synchronize()  # for the first record only
    assert not event.query()
    assert not first.query()


def test_elapsed_time():
    start, end = torch.Event("accel", enable_timing=True), torch.Event("accel", enable_timing=True)
    start.record()
    torch.accel._sleep(DELAY_MS)
    end.record()
    end.synchronize()
    assert DELAY_MS <= start.elapsed_time(end) < 10 * DELAY_MS


def test_elapsed_time_errors():
    plain, timed = torch.Event("accel"), torch.Event("accel", enable_timing=True)
    with pytest.raises((RuntimeError, ValueError)):
        timed.elapsed_time(torch.Event("accel", enable_timing=True))  # not recorded
    plain.record()
    timed.record()
    torch.accel.synchronize()
    with pytest.raises((RuntimeError, ValueError)):
        plain.elapsed_time(timed)
    torch.accel._sleep(DELAY_MS)
    late = torch.Event("accel", enable_timing=True)
    late.record()
    with pytest.raises(RuntimeError):
        timed.elapsed_time(late)


def test_destroyed_while_pending():
    side = torch.accel.Stream()
    x = torch.full((8,), -1).to("accel")
    ones = torch.arange(8).to("accel")
    for _ in range(20):
        torch.accel._sleep(5)
        event = torch.accel.current_stream().record_event()
        side.wait_event(event)
        del event
    gc.collect()
    with side:
        x.copy_(ones)
    side.synchronize()
    assert x.cpu().tolist() == list(range(8))


def test_wait_across_devices():
    source = torch.arange(8).to("accel:0")
    target = torch.full((8,), -1).to("accel:0")
    with torch.accel.device(0):
        torch.accel._sleep(DELAY_MS)
        target.copy_(source)
        event = torch.accel.current_stream(0).record_event()
    other = torch.accel.default_stream(1)
    other.wait_event(event)
    assert not other.query()
    other.synchronize()
    assert event.query()


def test_recording_on_another_device_raises():
    event = torch.Event("accel")
    event.record(torch.accel.default_stream(0))
    with pytest.raises(RuntimeError, match="accel:0"):
        event.record(torch.accel.default_stream(1))


def test_isinstance():
    event = torch.accel.Event(enable_timing=True)
    assert type(event) is torch.Event
    assert isinstance(event, torch.accel.Event)
    assert not isinstance(torch.accel.Stream(), torch.accel.Event)
