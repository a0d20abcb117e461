"""The current device: per thread, guarded, restored."""

import threading

import pytest
import torch


def test_counts_agree():
    count = torch.accel.device_count()
    assert count == torch.accelerator.device_count() >= 2


def test_current_device_agrees_everywhere():
    torch.accel.set_device(1)
    assert torch.accel.current_device() == torch.accelerator.current_device_index() == 1
    assert torch.empty(1, device="accel").device.index == 1
    torch.accelerator.set_device_index(0)
    assert torch.accel.current_device() == 0
    assert torch.empty(1, device="accel").device.index == 0


@pytest.mark.parametrize("guard", [torch.accel.device, torch.accelerator.device_index])
def test_guard_restores_after_an_exception(guard):
    with pytest.raises(KeyError), guard(1):
        assert torch.accel.current_device() == 1
        raise KeyError
    assert torch.accel.current_device() == 0


def test_guard_of_none_changes_nothing():
    with torch.accel.device(None):
        assert torch.accel.current_device() == 0


def test_current_device_is_the_threads_own():
    torch.accel.set_device(1)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.accel.current_device()))
    thread.start()
    thread.join()
    assert seen == [0]
    assert torch.accel.current_device() == 1


@pytest.mark.parametrize("index", [2, 7, 100])
def test_index_out_of_range(index):
    for call in (
        lambda: torch.accel.set_device(index),
        lambda: torch.accelerator.set_device_index(index),
        lambda: torch.empty(1, device=f"accel:{index}"),
        lambda: torch.ones(1).to(f"accel:{index}"),
        lambda: torch.accel.synchronize(index),
        lambda: torch.accel.get_device_properties(index),
        lambda: torch.Stream(f"accel:{index}"),
        lambda: torch.accel.memory_stats(index),
    ):
        with pytest.raises(RuntimeError, match=f"invalid accel device index {index}"):
            call()
    assert torch.accel.current_device() == 0


def test_device_arguments():
    for device in (1, "accel:1", torch.device("accel", 1)):
        assert torch.accel.get_device_properties(device).total_memory > 0
        with torch.accel.device(device):
            assert torch.accel.current_device() == 1
    with pytest.raises(ValueError, match="expected an accel device, got cpu"):
        torch.accel.set_device("cpu")
    with pytest.raises(TypeError, match=r"got 1\.5"):
        torch.accel.set_device(1.5)


def test_device_of():
    with torch.accel.device_of(torch.empty(1, device="accel:1")):
        assert torch.accel.current_device() == 1
    with torch.accel.device_of(torch.empty(1)):
        assert torch.accel.current_device() == 0


def test_operators_run_on_the_tensors_device():
    tensor = torch.arange(4, device="cpu").to("accel:1")
    assert torch.accel.current_device() == 0
    copy = tensor.clone()
    assert copy.device.index == 1
    assert copy.cpu().tolist() == [0, 1, 2, 3]
    assert torch.accel.current_device() == 0


def test_properties():
    properties = torch.accel.get_device_properties()
    assert properties.name == torch.accel.get_device_name()
    assert properties.total_memory == torch.accel.get_memory_info()[1]
    assert torch.accel.get_device_capability() == (properties.major, properties.minor)
    dtypes = torch.accelerator.get_device_capability()["supported_dtypes"]
    assert {torch.float32, torch.bfloat16, torch.complex64, torch.bool} <= dtypes
    assert torch.qint8 not in dtypes


def test_number_of_devices_is_set_from_outside(run_python):
    done = run_python(
        "import torch, torch_accel; print(torch.empty(1, device='accel:4').device,"
        " torch.accel.device_count())",
        env={"TORCH_ACCEL_DEVICES": "5"},
    )
    assert done.stdout.split() == ["accel:4", "5"], done.stderr


def test_asking_uses_nothing(run_python):
    done = run_python(
        """
        import os, torch, torch_accel
        torch.accel.is_available(), torch.accel.device_count(), torch.accelerator.device_count()
        torch.accel.manual_seed_all(1), torch.accel.get_device_properties(1)
        torch.accel.synchronize(), torch.accel.empty_cache(), torch.accel.memory_stats()
        print(torch.accel.is_initialized(), torch.accel._initialized,
              len(os.listdir("/proc/self/task")))
        torch.empty(1, device="accel")
        print(torch.accel.is_initialized(), torch.accel._initialized)
        """
    )
    first, second = done.stdout.strip().splitlines()
    assert first == "False False 1"
    assert second == "True True"
