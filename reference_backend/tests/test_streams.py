"""Streams: order within, independence between, and who sees which as current."""

import threading
import time

import pytest
import torch

DELAY_MS = 300


def test_default_stream():
    default = torch.accel.default_stream()
    assert torch.accel.current_stream() == default == torch.accelerator.current_stream()
    assert torch.accel.Stream() != default
    assert torch.accel.default_stream(1).device_index == 1


def test_new_streams_differ():
    streams = [torch.Stream("accel") for _ in range(8)]
    assert len({s.stream_id for s in streams}) == 8
    assert torch.accel.default_stream().stream_id not in {s.stream_id for s in streams}
    high = torch.accel.Stream(priority=-1)
    assert high.stream_id not in {s.stream_id for s in streams}


def test_isinstance():
    stream = torch.accel.Stream(1)
    assert type(stream) is torch.Stream
    assert isinstance(stream, torch.accel.Stream)
    assert isinstance(torch.accelerator.current_stream(), torch.accel.Stream)
    assert not isinstance("accel", torch.accel.Stream)
    assert stream.device == torch.device("accel:1")


def test_stream_of_another_id_is_refused():
    stream = torch.Stream(
        stream_id=10_000,
        device_index=0,
        device_type=torch.accel.default_stream().device_type,
    )
    with pytest.raises(RuntimeError, match="no stream of id 10000"):
        stream.synchronize()


def test_work_is_asynchronous():
    """300 ms of queued work: an add behind it is queued at once, and another stream overtakes."""
    x = torch.arange(1024.0).to("accel")
    expected = (torch.arange(1024.0) + 1).tolist()
    side = torch.accel.Stream()
    with side:
        warm = x + 1
    side.synchronize()
    assert warm.cpu().tolist() == expected
    main = torch.accel.current_stream()

    begin = time.perf_counter()
    torch.accel._sleep(DELAY_MS)
    enqueue_s = []
    for _ in range(5):
        queued_at = time.perf_counter()
        y = x + 1
        enqueue_s.append(time.perf_counter() - queued_at)
    assert not main.query()
    with side:
        z = x + 1
        overtaken = z.cpu().tolist()  # waits for the side stream only
    assert side.query()
    assert not main.query()
    assert overtaken == expected
    main.synchronize()
    assert time.perf_counter() - begin >= DELAY_MS / 1e3
    assert main.query()
    assert y.cpu().tolist() == expected
    assert min(enqueue_s) < 1e-3  # the least, as other processes may take the processor


def test_work_of_a_stream_runs_in_order():
    x = torch.zeros(1 << 12).to("accel")
    stream = torch.accel.Stream()
    stream.wait_stream(torch.accel.current_stream())
    with stream:
        for value in range(200):
            if value % 50 == 0:
                torch.accel._sleep(5)
            x.copy_(torch.full((1 << 12,), float(value)), non_blocking=True)
        assert x.cpu().unique().tolist() == [199.0]


def test_wait_stream_and_synchronize():
    source = torch.arange(8).to("accel")
    first, second = torch.accel.Stream(), torch.accel.Stream()
    target = torch.full((8,), -1).to("accel")
    with first:
        torch.accel._sleep(100)
        target.copy_(source)
    second.wait_stream(first)
    with second:
        copied = target.clone()
    assert not second.query()
    second.synchronize()
    assert copied.cpu().tolist() == list(range(8))


def test_context_manager_restores():
    stream = torch.accel.Stream(1)
    with pytest.raises(KeyError), torch.accel.stream(stream):
        assert torch.accel.current_device() == 1
        assert torch.accel.current_stream() == stream
        raise KeyError
    assert torch.accel.current_device() == 0
    assert torch.accel.current_stream(1) == torch.accel.default_stream(1)
    with torch.accel.stream(None):
        assert torch.accel.current_stream() == torch.accel.default_stream()
    torch.accel.set_stream(None)


def test_current_stream_is_the_threads_own():
    stream = torch.accel.Stream()
    seen = []
    with stream:
        thread = threading.Thread(target=lambda: seen.append(torch.accel.current_stream()))
        thread.start()
        thread.join()
    assert seen == [torch.accel.default_stream()]


def test_synchronize_of_a_device_that_is_not_current():
    with torch.accel.device(1):
        torch.accel._sleep(100)
    assert torch.accel.current_device() == 0
    assert not torch.accel.default_stream(1).query()
    torch.accel.synchronize(0)
    assert not torch.accel.default_stream(1).query()
    torch.accelerator.synchronize(1)
    assert torch.accel.default_stream(1).query()


def test_synchronize_lets_other_python_threads_run():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(1)
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    for wait in (
        torch.accel.synchronize,
        torch.accel.current_stream().synchronize,
        torch.zeros(1).to("accel").cpu,
        torch.zeros(1).to("accel").item,
    ):
        torch.accel._sleep(100)
        before = len(ticks)
        wait()
        assert len(ticks) - before > 10, wait
    stop.set()
    thread.join()


def test_many_threads_enqueue():
    results = [None] * 4

    def work(index):
        with torch.accel.Stream():
            x = torch.full((256,), float(index)).to("accel")
            for _ in range(200):
                x = x.clone()
            results[index] = x.cpu().unique().tolist()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert results == [[float(i)] for i in range(4)]


def test_worker_threads_are_few_and_idle_ones_sleep(run_python):
    done = run_python(
        """
        import os, time, torch, torch_accel
        x = torch.arange(4).to("accel").clone(); torch.accel.synchronize()
        time.sleep(0.1)
        before = time.process_time(); time.sleep(0.5); busy = time.process_time() - before
        print(busy < 0.1, busy)
        """
    )
    assert done.stdout.startswith("True"), done.stdout + done.stderr
