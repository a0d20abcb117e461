"""The start of a run: every option checked, the device found, before anything is spent on it."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

import conformance
from conformance.harness import device as devices
from conformance.harness.selection import Selection, SelectionError
from conformance.plugin import options
from conformance.plugin.options import Options
from conformance.plugin.recorder import Recorder
from conformance.report import ReportDirError, check_writable


def start(config: pytest.Config) -> None:
    """Check the options and register the Recorder. Raises pytest.UsageError."""
    chosen = options.read(config)
    is_worker = hasattr(config, "workerinput")
    runs_here = is_worker or not _has_workers(config)
    try:
        device = devices.resolve(chosen.device, chosen.backend_module)
        report_dir = _report_dir(config, chosen, device)
        if not is_worker and not config.option.collectonly:
            check_writable(report_dir)
        selection = Selection.from_options(**chosen.selection())
        if runs_here:
            _prepare_tests(device, chosen, selection, single_threaded=is_worker)
        elif selection:
            _prepare_tests(device, chosen, selection, single_threaded=False)
            _check_selection_here(selection)
    except (devices.DeviceError, ReportDirError, SelectionError) as error:
        raise pytest.UsageError(str(error)) from error
    # Samples provoke warnings on purpose, by the hundred; -W on the command line still wins.
    config.addinivalue_line("filterwarnings", "ignore")
    recorder = Recorder(config, device, report_dir, chosen, selection)
    config.pluginmanager.register(recorder, "conformance-recorder")
    if not runs_here and not config.option.collectonly:
        recorder.begin()


def _has_workers(config: pytest.Config) -> bool:
    return getattr(config.option, "dist", "no") != "no" and bool(getattr(config.option, "tx", None))


def _report_dir(config: pytest.Config, chosen: Options, device: devices.Device) -> Path:
    given = chosen.report_dir
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
