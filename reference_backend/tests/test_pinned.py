"""Pinned host memory and what it makes asynchronous."""

import torch

DELAY_MS = 200


def test_is_pinned():
    pinned = torch.arange(100).pin_memory()
    assert pinned.is_pinned() and pinned[3:].is_pinned()  # interior addresses too
    assert pinned.tolist() == list(range(100))
    assert not torch.arange(100).is_pinned()
    assert torch.empty(8, pin_memory=True).is_pinned()
    assert not torch.arange(3).to("accel").is_pinned()


def test_host_to_device_does_not_wait():
    pinned = torch.arange(1000).pin_memory()
    torch.accel._sleep(DELAY_MS)
    x = pinned.to("accel", non_blocking=True)
    assert not torch.accel.current_stream().query()
    assert x.cpu().tolist() == list(range(1000))


def test_dropped_source_is_not_reused_too_early():
    expected = torch.arange(1 << 16)
    pinned = expected.pin_memory()
    torch.accel._sleep(DELAY_MS)
    x = pinned.to("accel", non_blocking=True)
    address = pinned.data_ptr()
    del pinned
    others = [torch.full((1 << 16,), -1).pin_memory() for _ in range(4)]
    assert address not in [o.data_ptr() for o in others]
    assert torch.equal(x.cpu(), expected)
    del others
    torch.accel.synchronize()
    again = [torch.empty(1 << 16, dtype=torch.int64, pin_memory=True) for _ in range(5)]
    assert address in [a.data_ptr() for a in again]


def test_device_to_host_is_covered_by_an_event():
    x = torch.arange(1000).to("accel")
    target = torch.full((1000,), -1).pin_memory()
    torch.accel._sleep(DELAY_MS)
    target.copy_(x, non_blocking=True)
    event = torch.accel.current_stream().record_event()
    assert not event.query()
    assert target[0] == -1
    event.synchronize()
    assert target.tolist() == list(range(1000))


def test_strided_and_casting_copies_with_pinned_memory():
    source = torch.arange(24).reshape(4, 6).pin_memory()
    x = torch.empty(6, 4, dtype=torch.float32, device="accel")
    x.copy_(source.t(), non_blocking=True)
    target = torch.zeros(4, 6, dtype=torch.int16).pin_memory()
    target.t().copy_(x, non_blocking=True)
    torch.accel.synchronize()
    assert target.tolist() == source.tolist()


def test_empty_host_cache():
    torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True)
    torch.accel.empty_host_cache()
    torch.accelerator.empty_host_cache()


def test_data_loader_pins():
    data = torch.utils.data.TensorDataset(torch.arange(10))
    loader = torch.utils.data.DataLoader(data, batch_size=5, pin_memory=True)
    batches = [b for (b,) in loader]
    assert all(b.is_pinned() for b in batches)
    moved = [b.to("accel", non_blocking=True).cpu().tolist() for b in batches]
    assert moved == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
