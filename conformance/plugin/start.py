"""The start of a run: every option checked, the device found, before anything is spent on it."""

from __future__ import annotations

import importlib
import os
import pkgutil
from pathlib import Path
from typing import Any

import pytest

import conformance
from conformance.harness import device as devices
from conformance.harness.selection import Selection, SelectionError
from conformance.harness.shards import Shard, ShardError
from conformance.plugin import brief, logs, options
from conformance.plugin.options import Options
from conformance.plugin.planning import DURATIONS, Planning, Schedule
from conformance.plugin.recorder import Recorder
from conformance.report import (
    Durations,
    DurationsError,
    JournalError,
    ReportDirError,
    ResumeError,
    check_writable,
    done_before,
    identify,
    recorded_durations,
)

_PYTESTS = ("keyword", "markexpr", "deselect")
"""pytest's own options that decide which tests run, by their names in ``config.option``."""


def start(session: pytest.Session) -> None:
    """Check the options and register the plugins of the run. Raises pytest.UsageError."""
    config = session.config
    chosen = options.read(config)
    is_worker = hasattr(config, "workerinput")
    runs_here = is_worker or not _has_workers(config)
    try:
        device = devices.resolve(chosen.device, chosen.backend_module)
        if chosen.spread_devices:
            device = _spread(config, chosen, device, is_worker)
        report_dir = _report_dir(config, chosen, device)
        if not is_worker and not config.option.collectonly:
            check_writable(report_dir)
        selection = Selection.from_options(**chosen.selection())
        if runs_here:
            _prepare_tests(device, chosen, selection, single_threaded=is_worker)
        elif selection:
            _prepare_tests(device, chosen, selection, single_threaded=False)
            _check_selection_here(selection)
        if is_worker:
            identity: dict[str, Any] = {}
            schedule = Schedule.from_workerinput(config.workerinput["conformance"])
        else:
            shard = Shard.parse(chosen.shard) if chosen.shard is not None else Shard()
            durations = _durations(config, chosen)
            identity = _identity(config, chosen, device, shard, durations)
            done = None
            if chosen.resume:
                done = done_before(report_dir, identity)
                config.get_terminal_writer().line(_resuming(report_dir, done))
            schedule = Schedule(shard, durations, bool(done), done or frozenset())
    except (
        devices.DeviceError,
        DurationsError,
        ReportDirError,
        ResumeError,
        SelectionError,
        ShardError,
    ) as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[DURATIONS] = schedule.durations
    # Samples provoke warnings on purpose, by the hundred; -W on the command line still wins.
    config.addinivalue_line("filterwarnings", "ignore")
    planning = Planning(config, schedule, selection)
    config.pluginmanager.register(planning, "conformance-planning")
    config.pluginmanager.register(brief, "conformance-brief")
    config.pluginmanager.register(logs, "conformance-logs")
    recorder = Recorder(config, device, report_dir, chosen, planning, identity)
    config.pluginmanager.register(recorder, "conformance-recorder")
    if not runs_here and not config.option.collectonly:
        try:
            recorder.begin()
        except (JournalError, ReportDirError) as error:
            raise pytest.UsageError(str(error)) from error
    if runs_here and not config.option.collectonly:
        _isolate(session, recorder, chosen)


def _isolate(session: pytest.Session, recorder: Recorder, chosen: Options) -> None:
    """Have cells run in a child process, unless this is one."""
    is_child = getattr(session.config, "workerinput", {}).get("spawned", False)
    if chosen.isolation == "none" or session.config.option.usepdb or is_child:
        return
    if not hasattr(os, "fork"):
        if chosen.isolation != "auto":
            raise pytest.UsageError(
                f"--isolation={chosen.isolation} needs an operating system with fork()"
            )
        return
    from conformance.harness.isolation.watchdog import default_memory_limit
    from conformance.plugin.isolation.runner import Isolation, Limiter

    processes = getattr(session.config, "workerinput", {}).get("workercount", 1)
    memory = (chosen.cell_memory or 0) * 2**30 or default_memory_limit(processes)
    # A cell that was cut short at its limit must not raise the limit.
    recorded = session.config.stash[DURATIONS].ended
    limiter = Limiter(chosen.cell_timeout, memory, recorded)
    isolation = Isolation(session, recorder, chosen.isolation, limiter, chosen.fatal_pattern)
    session.config.pluginmanager.register(isolation, "conformance-isolation")


def _spread(
    config: pytest.Config, chosen: Options, device: devices.Device, is_worker: bool
) -> devices.Device:
    """The device that this process uses under ``--spread-devices``. Raises pytest.UsageError."""
    if chosen.device is not None and ":" in chosen.device:
        raise pytest.UsageError(
            f"--spread-devices uses all devices: give --device={device.type} without an index"
        )
    if not is_worker and not _has_workers(config):
        raise pytest.UsageError(
            "--spread-devices deals the workers of pytest-xdist to the devices: say how many with "
            "-n, such as -n 2"
        )
    worker = config.workerinput["workerid"] if is_worker else "gw0"
    return devices.select_index(device, int(worker.removeprefix("gw")))


def _durations(config: pytest.Config, chosen: Options) -> Durations:
    if chosen.durations_from is None:
        return Durations()
    return recorded_durations(Path(config.invocation_params.dir, chosen.durations_from))


def _identity(
    config: pytest.Config,
    chosen: Options,
    device: devices.Device,
    shard: Shard,
    durations: Durations,
) -> dict[str, Any]:
    """What ``run.json`` is to say of this run; what pytest itself is told to select, included."""
    pytests = {"tests": config.args, **{n: getattr(config.option, n, None) for n in _PYTESTS}}
    decisive = {**chosen.given(), **{name: value for name, value in pytests.items() if value}}
    if shard.count > 1:
        decisive["durations"] = {"sha256": durations.sha256 if durations.seconds else None}
    return identify(device.type, device.backend_modules, decisive)


def _resuming(report_dir: Path, done: frozenset[str] | None) -> str:
    if done:
        return f"--resume: cells that are recorded in {report_dir} and not run again: {len(done)}"
    return f"--resume: no cell is recorded in {report_dir}: running all of them"


def _has_workers(config: pytest.Config) -> bool:
    return getattr(config.option, "dist", "no") != "no" and bool(getattr(config.option, "tx", None))


def _report_dir(config: pytest.Config, chosen: Options, device: devices.Device) -> Path:
    given = chosen.report_dir
    if given is not None and not given.strip():
        raise ReportDirError("--report-dir= names no directory; leave it out for the default")
    if given is None:
        name = device.type if not device.index else f"{device.type}-{device.index}"
        given = str(Path("build", "conformance", name))
    return Path(config.invocation_params.dir, given)


def _prepare_tests(
    device: devices.Device, chosen: Options, selection: Selection, *, single_threaded: bool
) -> None:
    """Make torch's test machinery ready for the device, and set what the checks are to plan."""
    import torch

    if single_threaded:
        torch.set_num_threads(1)
    devices.device_test_base(device)
    from conformance.harness import plan

    plan.select(selection, chosen.profile)


def _check_selection_here(selection: Selection) -> None:
    """Check the selection in a process that collects no tests itself, before workers start."""
    from conformance.harness import plan

    for area in pkgutil.iter_modules(conformance.__path__, "conformance."):
        if area.ispkg:
            folder = importlib.import_module(area.name)
            for module in pkgutil.iter_modules(folder.__path__, f"{area.name}."):
                if module.name.rpartition(".")[2].startswith("test_"):
                    importlib.import_module(module.name)
    selection.check(plan.offered())
