"""The child's side: runs the tests that it is asked for and sends their reports back."""

from __future__ import annotations

import faulthandler
import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
import torch
from _pytest.runner import runtestprotocol

from conformance.harness import device as devices
from conformance.harness import run
from conformance.harness.isolation.child import Workplace
from conformance.harness.probe import DeviceProbe

UNUSABLE = 70
"""The exit code of a child that gives itself up; the page says why (EX_SOFTWARE, sysexits.h)."""


class Request(NamedTuple):
    """Run a test. ``nextitem`` decides what is torn down after it; both are node ids."""

    item: str
    nextitem: str | None
    in_detail: bool = False
    """Whether to note each sample's description and write native stacks, which costs time."""


class Answer(NamedTuple):
    """The reports of a test as ``pytest_report_to_serializable`` has them."""

    reports: list[dict[str, Any]]
    broken: str | None
    """What no longer works on the device, if it did when the process started."""
    imported: list[str]
    """Modules of torch, and those that it needs, that were imported for the test."""


def serve(workplace: Workplace, session: pytest.Session) -> None:
    """Answer requests until there are no more (None).

    The first answer is the device probe's problem at the start, or None.
    """
    # Where they end is no longer known to pytest; what is shown goes to the captured stderr.
    warnings.showwarning = warnings._showwarning_orig  # type: ignore[attr-defined]
    devices.current().make_current()
    probe = DeviceProbe(devices.current())
    connection, pid, folder = workplace.connection, os.getpid(), os.getcwd()
    connection.send(probe.problem)
    items = {item.nodeid: item for item in session.items}
    imports = _Imports()
    while (request := connection.recv()) is not None:
        workplace.page.write("")
        if request.in_detail:
            _write_native_stacks(workplace)
        run.on_progress(workplace.page.write, in_detail=request.in_detail)
        os.chdir(folder)
        reports = _run(items, request, workplace)
        if os.getpid() != pid:
            os._exit(0)  # a fork by the cell that came back here: one answer is enough
        broken = probe.ask()
        if not workplace.is_intact():
            _end(workplace, "the cell closed or replaced file descriptors that were not its own")
        connection.send(Answer(reports, broken, imports.new()))
    session._setupstate.teardown_exact(None)


class _Imports:
    """Notes what is imported late, so that the next child can be forked with it."""

    _PACKAGES = ("torch", "sympy")

    def __init__(self) -> None:
        self._known = len(sys.modules)

    def new(self) -> list[str]:
        """The modules imported since the last call, in their order."""
        before, self._known = self._known, len(sys.modules)
        if self._known == before:
            return []
        names = list(sys.modules)[before:]
        return [name for name in names if name.partition(".")[0] in self._PACKAGES]


def _run(
    items: Mapping[str, pytest.Item], request: Request, workplace: Workplace
) -> list[dict[str, Any]]:
    item = items[request.item]
    nextitem = items.get(request.nextitem) if request.nextitem else None
    try:
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    except (KeyboardInterrupt, pytest.exit.Exception) as error:
        _end(workplace, f"the cell raised {type(error).__name__}, which ends a process")
    hook, config = item.ihook, item.config
    return [hook.pytest_report_to_serializable(config=config, report=r) for r in reports]


def _write_native_stacks(workplace: Workplace) -> None:
    """Have torch print them on a fatal signal, which takes it seconds, after faulthandler."""
    faulthandler.disable()
    torch._C._set_print_stack_traces_on_fatal_signal(True)
    faulthandler.enable(workplace.stacks, all_threads=True)


def _end(workplace: Workplace, why: str) -> None:
    workplace.page.write(why)
    os._exit(UNUSABLE)
