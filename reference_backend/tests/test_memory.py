"""The caching allocator: statistics, reuse in stream order, limits, threads."""

import gc
import threading

import pytest
import torch

MIB = 1 << 20


@pytest.fixture(autouse=True)
def empty_memory():
    gc.collect()
    torch.accel.synchronize()
    torch.accel.empty_cache()
    torch.accel.reset_peak_memory_stats()
    torch.accel.reset_accumulated_memory_stats()
    yield
    torch.accel.set_per_process_memory_fraction(1.0)


def stat(name: str, device=0) -> int:
    return torch.accel.memory_stats(device)[name]


def test_allocated_is_exact():
    before = torch.accel.memory_allocated()
    a = torch.empty(1000, dtype=torch.uint8, device="accel")  # rounded up to 1024
    b = torch.empty(4 * MIB, dtype=torch.uint8, device="accel")
    assert torch.accel.memory_allocated() - before == 1024 + 4 * MIB
    assert torch.accelerator.memory_allocated() == torch.accel.memory_allocated()
    assert a.data_ptr() % 512 == 0 and b.data_ptr() % 512 == 0
    del b
    assert torch.accel.memory_allocated() - before == 1024
    assert torch.accel.max_memory_allocated() - before == 1024 + 4 * MIB
    torch.accel.reset_peak_memory_stats()
    assert torch.accel.max_memory_allocated() - before == 1024
    del a
    assert torch.accel.memory_allocated() == before


def test_accumulated_and_requested():
    for _ in range(3):
        torch.empty(1000, dtype=torch.uint8, device="accel")
    assert stat("allocation.all.allocated") == stat("allocation.all.freed") == 3
    assert stat("allocated_bytes.all.allocated") == 3 * 1024
    assert stat("requested_bytes.all.freed") == 3 * 1000
    assert stat("allocated_bytes.small_pool.allocated") == 3 * 1024
    assert stat("allocated_bytes.large_pool.allocated") == 0
    torch.accel.reset_accumulated_memory_stats()
    assert stat("allocation.all.allocated") == 0


def test_reserved_survives_free_and_drops_with_empty_cache():
    before = torch.accel.memory_reserved()
    free_before, total = torch.accel.get_memory_info()
    x = torch.empty(32 * MIB, dtype=torch.uint8, device="accel")
    assert torch.accel.memory_reserved() - before == 32 * MIB
    assert free_before - torch.accel.get_memory_info()[0] == 32 * MIB
    del x
    assert torch.accel.memory_reserved() - before == 32 * MIB
    torch.accel.empty_cache()
    assert torch.accel.memory_reserved() == before
    assert torch.accel.get_memory_info() == (free_before, total)


def test_blocks_split_and_merge():
    blocks = [torch.empty(MIB // 2, dtype=torch.uint8, device="accel") for _ in range(4)]
    addresses = sorted(b.data_ptr() for b in blocks)
    assert addresses[3] - addresses[0] == 3 * (MIB // 2)  # of one segment
    assert stat("segment.small_pool.current") >= 1
    reserved = torch.accel.memory_reserved()
    del blocks[1], blocks[1]
    assert stat("inactive_split_bytes.all.current") >= MIB
    merged = torch.empty(MIB, dtype=torch.uint8, device="accel")
    assert addresses[0] < merged.data_ptr() < addresses[3]
    assert torch.accel.memory_reserved() == reserved
    del blocks, merged
    torch.accel.empty_cache()
    assert stat("inactive_split_bytes.all.current") == 0 or torch.accel.memory_allocated() > 0


def test_zero_bytes():
    x = torch.empty(0, 3, device="accel:1")
    assert x.data_ptr() == 0
    assert x.device == torch.device("accel:1")
    assert x.untyped_storage().device == torch.device("accel:1")
    assert x.cpu().shape == (0, 3)


def test_freed_block_is_reused_on_its_stream_only():
    side = torch.accel.Stream()
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="accel")
    address = x.data_ptr()
    del x
    with side:
        other = torch.empty(3 * MIB, dtype=torch.uint8, device="accel")
    assert other.data_ptr() != address
    again = torch.empty(3 * MIB, dtype=torch.uint8, device="accel")
    assert again.data_ptr() == address


def test_record_stream_delays_reuse():
    side = torch.accel.Stream()
    x = torch.arange(MIB, dtype=torch.int32).to("accel")
    address = x.data_ptr()
    side.wait_stream(torch.accel.current_stream())
    with side:
        torch.accel._sleep(200)
        seen = x.clone()
    x.record_stream(side)
    del x
    assert stat("active_bytes.all.current") - stat("allocated_bytes.all.current") == 4 * MIB
    overwriting = torch.full((MIB,), -1, dtype=torch.int32).to("accel", non_blocking=True)
    assert overwriting.data_ptr() != address
    side.synchronize()
    assert torch.equal(seen.cpu(), torch.arange(MIB, dtype=torch.int32))
    reused = torch.empty(MIB, dtype=torch.int32, device="accel")
    assert reused.data_ptr() == address
    assert stat("active_bytes.all.current") == stat("allocated_bytes.all.current")


def test_without_record_stream_a_block_is_overwritten():
    """The race that record_stream is there for is real on this device."""
    side = torch.accel.Stream()
    x = torch.arange(MIB, dtype=torch.int32).to("accel")
    side.wait_stream(torch.accel.current_stream())
    with side:
        torch.accel._sleep(200)
        seen = x.clone()
    del x
    overwriting = torch.full((MIB,), -1, dtype=torch.int32).to("accel", non_blocking=True)
    torch.accel.current_stream().synchronize()
    assert overwriting.cpu()[0] == -1
    side.synchronize()
    assert seen.cpu().unique().tolist() == [-1]


def test_out_of_memory():
    total = torch.accel.get_memory_info()[1]
    ooms = stat("num_ooms")
    with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate .* GiB"):
        torch.empty(2 * total, dtype=torch.uint8, device="accel")
    assert stat("num_ooms") == ooms + 1
    assert torch.arange(4).to("accel").cpu().tolist() == [0, 1, 2, 3]
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 61, dtype=torch.uint8, device="accel")


def test_cache_is_flushed_before_out_of_memory():
    torch.accel.set_per_process_memory_fraction(0.1)
    half = int(torch.accel.get_memory_info()[1] * 0.06)
    x = torch.empty(half, dtype=torch.uint8, device="accel")
    del x  # cached now, and in the way of one that is a little larger
    y = torch.empty(half + 4 * MIB, dtype=torch.uint8, device="accel")
    assert stat("num_alloc_retries") == 1
    with pytest.raises(torch.OutOfMemoryError, match="may be used"):
        torch.empty(half, dtype=torch.uint8, device="accel")
    del y
    assert torch.empty(half, dtype=torch.uint8, device="accel").numel() == half


def test_memory_size_is_set_from_outside(run_python):
    done = run_python(
        """
        import torch, torch_accel
        assert torch.accel.get_memory_info()[1] == 64 << 20
        held = []
        try:
            while True:
                held.append(torch.empty(8 << 20, dtype=torch.uint8, device="accel"))
        except torch.OutOfMemoryError:
            print(len(held))
        """,
        env={"TORCH_ACCEL_MEMORY": "64M"},
    )
    assert 6 <= int(done.stdout) <= 8, done.stderr


def test_free_on_another_thread():
    before = torch.accel.memory_allocated()
    held = [torch.empty(MIB, device="accel") for _ in range(8)]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert torch.accel.memory_allocated() == before


def test_many_threads():
    before = torch.accel.memory_allocated()
    errors = []

    def work(seed):
        try:
            with torch.accel.Stream():
                held = []
                for i in range(400):
                    n = (i * 7919 + seed * 104729) % 50_000 + 1
                    x = torch.full((n,), n, dtype=torch.int32).to("accel", non_blocking=True)
                    held.append((n, x.clone()))
                    if len(held) > 10:
                        n, y = held.pop(seed)
                        assert y.cpu().unique().tolist() == [n]
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not errors
    torch.accel.synchronize()
    assert torch.accel.memory_allocated() == before
    torch.accel.empty_cache()


def test_fraction_is_checked():
    with pytest.raises(ValueError, match="between 0 and 1"):
        torch.accel.set_per_process_memory_fraction(1.5)


def test_storage_resize_keeps_the_prefix():
    x = torch.arange(8, dtype=torch.int32).to("accel")
    storage = x.untyped_storage()
    storage.resize_(64)
    y = torch.empty(0, dtype=torch.int32, device="accel").set_(storage)
    assert y.cpu()[:8].tolist() == list(range(8))
    storage.resize_(8)
    assert x.as_strided((2,), (1,)).cpu().tolist() == [0, 1]
    storage.resize_(0)
    assert storage.data_ptr() == 0 and storage.nbytes() == 0


def test_resize_grows_and_keeps_contents():
    x = torch.arange(4).to("accel")
    x.resize_(2, 4)
    assert x.shape == (2, 4) and x.cpu()[0].tolist() == [0, 1, 2, 3]
    x.resize_(2)
    assert x.cpu().tolist() == [0, 1]
    assert x.untyped_storage().nbytes() == 64
    x.resize_(2, 3, 4, 5, memory_format=torch.channels_last)
    assert x.is_contiguous(memory_format=torch.channels_last)


def test_set_():
    x = torch.arange(6.0).to("accel")
    y = torch.empty(0, device="accel")
    y.set_(x)
    assert y.data_ptr() == x.data_ptr() and y.is_set_to(x)
    y.set_(x.untyped_storage(), 1, (2, 2), (1, 2))
    assert y.cpu().tolist() == [[1.0, 3.0], [2.0, 4.0]]
    y.set_(x.untyped_storage())
    assert y.cpu().tolist() == list(range(6))
    y.set_()
    assert y.shape == (0,) and y.device == x.device
    with pytest.raises(RuntimeError, match="different device"):
        y.set_(torch.arange(6.0).untyped_storage(), 0, (2,), (1,))
