"""The pytest plugin that both sides run under: which tests to run, and what became of them.

Into ``--bench-out`` go ``selected.json`` (the names of the tests that were to run),
``results.json`` (name to outcome), and for each process that ran tests ``start-<id>`` (CPU seconds
it had used when it had collected).
"""

from __future__ import annotations

import json
import math
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_RANKS = ("passed", "skipped", "failed")


@dataclass
class Settings:
    """What the upstream-style tests need to know when they are imported."""

    properties: set[tuple[str, str]] = field(default_factory=set)
    patched: bool = False


settings = Settings()
_outcomes: dict[str, str] = {}


def sample(names: Iterable[str], every: int) -> set[str]:
    """One name in ``every``, rounded up: always the same of the same names, spread evenly.

    The order of the names does not matter, and neither kind of operator nor dtype is preferred.
    """
    shuffled = sorted(names, key=lambda name: (zlib.crc32(name.encode()), name))
    return set(shuffled[: math.ceil(len(shuffled) / every)])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options; only ``suite.py`` gives them."""
    group = parser.getgroup("bench")
    group.addoption("--bench-out", type=Path, required=True)
    group.addoption("--bench-every", type=int, default=1)
    group.addoption("--bench-property", action="append", default=[])
    group.addoption("--bench-patched", action="store_true")
    group.addoption("--bench-device")
    group.addoption("--bench-backend-module", action="append", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Find the device for the upstream-style tests, before they import torch's test modules."""
    options = config.option
    settings.properties = {tuple(name.split("/")) for name in options.bench_property}
    settings.patched = options.bench_patched
    if options.bench_device:
        from conformance.harness.device import DeviceError, resolve

        try:
            resolve(options.bench_device, options.bench_backend_module)
        except DeviceError as error:
            raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what upstream's style has no test for, and all but a sample of the rest."""
    chosen = sample((i.name for i in items if _has_a_dtype(i)), config.option.bench_every)
    dropped = [item for item in items if item.name not in chosen]
    items[:] = [item for item in items if item.name in chosen]
    config.hook.pytest_deselected(items=dropped)


def _has_a_dtype(item: pytest.Item) -> bool:
    planned = getattr(getattr(item, "function", None), "planned", None)
    return planned is None or planned.not_applicable is None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note what is to run and what it took to get here."""
    if not session.items:
        return  # the controller of workers
    out = session.config.option.bench_out
    worker = getattr(session.config, "workerinput", {}).get("workerid", "main")
    (out / f"start-{worker}").write_text(str(time.process_time()))
    if worker in ("main", "gw0"):
        _write(out / "selected.json", sorted(item.name for item in session.items))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the outcome of the test's call, or what kept it from one or spoiled it."""
    if report.when == "call" or not report.passed:
        name = report.nodeid.rsplit("::", 1)[-1]
        _outcomes[name] = max(_outcomes.get(name, "passed"), report.outcome, key=_RANKS.index)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the outcomes, in the process that knows them all."""
    if not hasattr(session.config, "workerinput"):
        _write(session.config.option.bench_out / "results.json", _outcomes)


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=0) + "\n")
