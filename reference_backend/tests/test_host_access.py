"""Device memory is not the host's to touch."""

import signal

import torch

READS_DEVICE_MEMORY = """
import ctypes, torch, torch_accel
x = torch.arange(4.0).to("accel")
assert x.clone().cpu().tolist() == [0.0, 1.0, 2.0, 3.0]  # kernels can
print("before", flush=True)
print(ctypes.c_float.from_address(x.data_ptr()).value)
"""


def test_reading_device_memory_on_the_host_dies(run_python):
    done = run_python(READS_DEVICE_MEMORY)
    assert done.returncode == -signal.SIGSEGV
    assert done.stdout == "before\n"


def test_writing_device_memory_on_the_host_dies(run_python):
    source = READS_DEVICE_MEMORY.replace(
        "print(ctypes.c_float.from_address(x.data_ptr()).value)",
        "ctypes.memset(x.data_ptr(), 0, 4)",
    )
    assert "memset" in source
    assert run_python(source).returncode == -signal.SIGSEGV


def test_numpy_refuses_a_device_tensor():
    import pytest

    with pytest.raises(TypeError, match="accel"):
        torch.ones(2).to("accel").numpy()


def test_address_belongs_to_a_device():
    x = torch.empty(4, device="accel:1")
    assert x.data_ptr() != 0
    assert torch.empty(0, device="accel:1").data_ptr() == 0
