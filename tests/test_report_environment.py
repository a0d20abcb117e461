"""The environment is described whatever the backend does when it is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from conformance.report import collect_environment
from conformance.report.device_probe import RunningProbe
from conformance.report.environment import commit

BACKEND = """
import types, torch

class Properties:
    name = "Chip 9"
    total_memory = 1 << 34
    clock = float("inf")
    def method(self): ...

module = types.ModuleType("torch.chip")
module.is_available = lambda: True
module.device_count = lambda: 2
module.get_device_properties = lambda index: Properties()
torch.utils.rename_privateuse1_backend("chip")
torch._register_device_module("chip", module)
print("a backend that talks")
"""


@pytest.fixture
def backend(tmp_path, monkeypatch):
    """Makes a backend module of source text; gives its name."""

    def make(source):
        (tmp_path / "chip_backend.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
        return "chip_backend"

    return make


def test_environment_of_a_backend(backend):
    found = collect_environment(
        "chip:1", [backend(BACKEND)], {"profile": "full", "op": ("add", "sub"), "dtype": None}
    )
    assert found["device"] == {
        "name": "chip:1",
        "count": 2,
        "properties": {"name": "Chip 9", "total_memory": 1 << 34, "clock": "Infinity"},
    }
    assert found["torch"]["version"].startswith("2.")
    assert found["backend"] == [{"module": "chip_backend", "distribution": None, "version": None}]
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["machine"]["cores"] >= 1
    assert found["options"] == {"profile": "full", "op": ["add", "sub"], "dtype": None}
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("raise ImportError('libchip.so is missing')", "ImportError: libchip.so is missing"),
        ("import os; os.kill(os.getpid(), 11)", "died of SIGSEGV"),
        (BACKEND + "del module.get_device_properties", "AttributeError: "),
    ],
)
def test_backend_that_fails_when_asked(backend, source, problem):
    found = collect_environment("chip", [backend(source)])
    assert found["device"]["problem"].startswith(problem)
    assert found["torch"]["version"]


def test_backend_that_hangs_when_asked(backend):
    start = time.monotonic()
    module = backend("import time; time.sleep(600)")
    found = RunningProbe("chip", [module]).answer(timeout_s=0.5)
    assert found == {"device": {"name": "chip", "problem": "no answer within 0.5 s"}}
    assert time.monotonic() - start < 30


def test_unknown_device():
    assert "problem" in RunningProbe("nonsense").answer()["device"]


def test_commit_of_this_checkout_only(monkeypatch, tmp_path):
    here = os.path.dirname(__file__)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=False
    )
    assert commit().get("commit") == (head.stdout.strip() or None)
    monkeypatch.setattr("conformance.report.environment.__file__", str(tmp_path / "x.py"))
    assert commit() == {}
