"""Shared by the reference backend's tests: the device, and Python in a subprocess."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch
import torch_accel  # noqa: F401  (registers the device)

SUBPROCESS_TIMEOUT_S = 60


@pytest.fixture(autouse=True)
def clean_device():
    """Starts and ends every test with idle devices, the current device 0 and default streams."""
    yield
    for index in range(torch.accel.device_count()):
        torch.accel.set_stream(torch.accel.default_stream(index))
        torch.accel.synchronize(index)
    torch.accel.set_device(0)


@pytest.fixture
def run_python():
    """Runs source text in a fresh interpreter; returns the CompletedProcess (text output).

    The child finds the same packages; `env` adds to its environment. A child that does not end
    within the limit fails the test.
    """

    def run(source: str, env: dict[str, str] | None = None, timeout: float = SUBPROCESS_TIMEOUT_S):
        path = os.pathsep.join(p for p in sys.path if p)
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **(env or {})}
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(source)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run
