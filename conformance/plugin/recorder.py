"""Records each cell as its test ends, and writes the reports when the run does.

Under pytest-xdist the workers attach a record to each test report and the controller, which gets
them all, journals them. The plan is what the collecting process planned; it is kept in the report
folder as ``plan.json``, from which the controller knows it too.
"""

from __future__ import annotations

import os
import unittest
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.harness import errors, run
from conformance.harness.device import Device
from conformance.harness.outcomes import Outcome
from conformance.plugin.options import Options
from conformance.plugin.planning import PLANNED, Planning
from conformance.report import (
    DirLock,
    Journal,
    JournalError,
    Plan,
    Progress,
    Record,
    ReportDirError,
    build_report,
    collect_environment,
    is_red,
    plan_file,
    read_journal,
    read_plan,
    remove_files,
    terminal_summary,
    write_identity,
    write_plan,
    write_reports,
)
from conformance.report.device_probe import RunningProbe
from conformance.report.text import as_unicode, printable

_STILLBORN = 3
"""Workers in a row that may die before they have collected."""
_RUN = pytest.StashKey[run.CellRun]()
RECORD = "conformance_record"
"""The attribute of a test's report that holds its cell's record, as JSON values."""
_KEPT = ("records.jsonl", "run.json")
"""What a resumed run goes on with."""
_STALE = ("plan.json", "report.json", "junit.xml", "matrix.md")
"""What every run writes anew."""


class Recorder:
    """The hooks of a run that contains conformance checks."""

    def __init__(
        self,
        config: pytest.Config,
        device: Device,
        report_dir: Path,
        options: Options,
        planning: Planning,
        identity: Mapping[str, Any],
    ) -> None:
        self._config, self._device = config, device
        self._report_dir, self._options = report_dir, options
        self._planning, self._identity = planning, identity
        self._worker_id: str | None = getattr(config, "workerinput", {}).get("workerid")
        self._parent = os.getppid()
        self._records = self._worker_id is None and not config.option.collectonly
        self._lock: DirLock | None = None
        self._journal: Journal | None = None
        self._plan: Plan | None = None
        self._progress: Progress | None = None
        self._report: dict[str, Any] | None = None
        self._trouble: str | None = None
        self._collected: set[str] = set()
        self._stillborn = 0
        self._probe: RunningProbe | None = None

    # Starting

    def pytest_collection_finish(self) -> None:
        """Keep the plan: what is left after every selection, pytest's own included."""
        plan = self._planning.plan
        if plan is None or self._config.option.collectonly:
            return
        try:
            if self._records:
                self.begin()
                write_plan(self._report_dir, plan)
            elif self._has_parent() and not (self._report_dir / plan_file.NAME).exists():
                write_plan(self._report_dir, plan)  # all workers have the same
        except (JournalError, ReportDirError) as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)

    def _has_parent(self) -> bool:
        """Whether the process still lives that started this worker: else the folder is another's.

        A run may have been killed and the next one started while its workers still collect.
        """
        return os.getppid() == self._parent

    def begin(self) -> None:
        """Start the journal, or go on with it.

        What an earlier run left is removed first, the journal before anything else, so that no two
        runs mix and no journal stands beside what is not of its run. Raises ReportDirError and
        JournalError.
        """
        resumed = self._planning.schedule.resumed
        self._lock = DirLock(self._report_dir)
        if not resumed:
            remove_files(self._report_dir, _KEPT)
        remove_files(self._report_dir, _STALE)
        if not resumed:
            write_identity(self._report_dir, self._identity)
        self._journal = Journal(self._report_dir / "records.jsonl", fresh=not resumed)
        self._probe = RunningProbe(str(self._device), self._device.backend_modules)

    def let_go(self) -> None:
        """In a forked child: close the journal, so that nothing a device does can write into it."""
        if self._journal is not None:
            self._journal.close()

    def _read_plan(self) -> Plan | None:
        """The plan that a worker wrote, or this process; None before that."""
        if self._plan is None and (self._report_dir / plan_file.NAME).exists():
            self._plan = read_plan(self._report_dir)
        return self._plan

    # Running, in the process that runs the test

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Open the cell's run for the check to fill in."""
        planned = item.stash.get(PLANNED, None)
        if planned is not None:
            item.stash[_RUN] = run.begin(planned.cell)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[None]:
        """Attach the cell's record to its test's report, with the outcome in pytest's terms."""
        report = yield
        if PLANNED in item.stash:
            report.sections = _without_noise(report.sections)
        ended = call.when == "call" or (call.when == "setup" and call.excinfo is not None)
        if ended and PLANNED in item.stash:
            cell_run = item.stash.get(_RUN, None) or run.CellRun(item.stash[PLANNED].cell)
            if call.excinfo is not None and not isinstance(call.excinfo.value, run.CellFailed):
                _conclude_from_exception(cell_run, call.excinfo.value)
            self._translate(report, item, cell_run)
            record = self.record(cell_run, call.duration, item.nodeid)
            setattr(report, RECORD, record.to_json())
        return report

    def _translate(
        self,
        report: pytest.TestReport,
        item: pytest.Item,
        cell_run: run.CellRun,
    ) -> None:
        """Give the report the outcome, and the reason in place of a traceback but for errors."""
        outcome = cell_run.outcome
        if outcome is Outcome.PASS:
            return
        if outcome.is_red:
            report.outcome = "failed"
            if outcome is not Outcome.ERROR or not report.longrepr:
                report.longrepr = f"{cell_run.cell.id} on {self._device}\n{cell_run.reason}"
        else:
            path, line, _ = item.location
            report.outcome = "skipped"
            report.longrepr = (path, line or 0, f"{outcome.word}: {cell_run.reason}")

    def record(self, cell_run: run.CellRun, duration: float, nodeid: str) -> Record:
        """The record of a cell that has ended."""
        cell, figures = cell_run.cell, cell_run.figures
        return Record(
            area=cell.area,
            check=cell.check,
            op=cell.op,
            variant=cell.variant,
            dtype=cell.dtype,
            device=str(self._device),
            outcome=cell_run.outcome,
            reason=cell_run.reason,
            path=cell_run.path,
            samples=cell_run.samples,
            max_abs_error=figures.abs,
            max_rel_error=figures.rel,
            max_ulp_error=figures.ulp,
            reference_error=figures.reference,
            duration_s=duration,
            signature=cell_run.signature,
            nodeid=nodeid,
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Iterator[None]:
        """Make text fit for pytest-xdist, which cannot send all that an exception may say."""
        return _sendable((yield))

    # Reporting, in the process that the user sees

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> Any:
        """A category of its own for each outcome that pytest has no word for."""
        values = getattr(report, RECORD, None)
        if values is None:
            return None
        outcome = Outcome(values["outcome"])
        if outcome in (Outcome.PASS, Outcome.FAIL):
            return None
        category = "failed" if outcome.is_red else str(outcome).replace("_", " ")
        return category, outcome.letter, (outcome.word, {"yellow": not outcome.is_red})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Journal the record that came with the report."""
        _make_printable(report)
        if not self._records or self._journal is None:
            return
        values = getattr(report, RECORD, None)
        if values is not None:
            self._append(Record.from_json(values))
        elif report.when == "???":  # how pytest-xdist reports the test that killed a worker
            plan = self._read_plan()
            cell = plan.cells.get(report.nodeid) if plan is not None else None
            if cell is not None:
                crashed = run.CellRun(cell)
                crashed.conclude(Outcome.CRASH, str(report.longrepr), "the process died")
                self._append(self.record(crashed, 0.0, report.nodeid))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any) -> None:
        """Note that a worker got as far as to run tests."""
        self._collected.add(node.gateway.id)
        self._stillborn = 0

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """End the run when workers die one after another before they collect: so will the next.

        No cell is to blame then, and pytest-xdist would start workers for ever.
        """
        if error is None or node.gateway.id in self._collected:
            return
        self._stillborn += 1
        if self._stillborn >= _STILLBORN:
            last = str(error).strip().rpartition("\n")[2]
            pytest.exit(
                f"{_STILLBORN} workers in a row died before they had collected a test: {last}. "
                "Run without -n to see why",
                returncode=pytest.ExitCode.INTERNAL_ERROR,
            )

    def _append(self, record: Record) -> None:
        try:
            self._journal.append(record)
        except JournalError as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.INTERNAL_ERROR)
        if self._progress is None:
            plan = self._read_plan()
            planned = {cell.id for cell in plan.cells.values()} if plan is not None else ()
            self._progress = Progress(len(planned - self._planning.schedule.done))
        line = self._progress.add(record.outcome)
        if line is not None:
            terminal = self._config.pluginmanager.get_plugin("terminalreporter")
            if terminal is not None:
                terminal.ensure_newline()
                terminal.write_line(line)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the reports; a plan that was not fulfilled fails the run."""
        if not self._records or self._journal is None:
            return
        self._journal.close()
        plan = self._read_plan()
        try:
            records = read_journal(self._report_dir / "records.jsonl").records
        except JournalError as error:
            self._probe.end()
            self._trouble = f"No report is written: {error}. Something else wrote into it"
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
            return
        if plan is None and not records:
            self._probe.end()
            return
        environment = collect_environment(
            str(self._device), self._device.backend_modules, self._options.given(), self._probe
        )
        interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        cells = plan.cells.values() if plan is not None else ()
        self._report = build_report(records, cells, environment, interrupted)
        try:
            write_reports(self._report_dir, self._report)
        except ReportDirError as error:
            self._trouble = str(error)
        # A run may have no test left to run: all are done, or those of the plan are elsewhere.
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            holds = self._report["complete"] and not is_red(self._report) and not self._trouble
            session.exitstatus = pytest.ExitCode.OK if holds else pytest.ExitCode.TESTS_FAILED

    def pytest_unconfigure(self) -> None:
        """Let other runs have the report directory."""
        if self._lock is not None:
            self._lock.release()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the report's summary below pytest's own sections."""
        if self._report is not None:
            color = terminalreporter.hasmarkup
            terminalreporter.section("conformance")
            terminalreporter.write_line(terminal_summary(self._report, self._report_dir, color))
        if self._trouble:
            terminalreporter.write_line(self._trouble, red=True)


def _make_printable(report: pytest.TestReport) -> None:
    """Keep what a device printed from doing anything to the terminal."""
    report.sections = [(name, printable(text)) for name, text in report.sections]
    if isinstance(report.longrepr, tuple):
        path, line, reason = report.longrepr
        report.longrepr = (path, line, printable(reason))
    elif report.longrepr is not None:
        text = report.longreprtext
        if printable(text) != text:
            report.longrepr = printable(text)


def _sendable(value: Any) -> Any:
    if isinstance(value, str):
        return as_unicode(value)
    if isinstance(value, dict):
        return {key: _sendable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_sendable, value))
    return value


_NOISE = "Unsupported memory profiling device"
"""What the profiler that traces calls prints for each allocation on a device it does not know."""


def _without_noise(sections: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What a test printed, without the noise and what is empty without it."""
    kept = []
    for name, text in sections:
        if _NOISE in text:
            text = "".join(line for line in text.splitlines(keepends=True) if _NOISE not in line)
        if text:
            kept.append((name, text))
    return kept


def _conclude_from_exception(cell_run: run.CellRun, error: BaseException) -> None:
    """An exception that no check turned into a verdict: a skip by OpInfo, or our own fault."""
    cell_run.outcome = None
    if isinstance(error, (unittest.SkipTest, pytest.skip.Exception)):
        cell_run.conclude(Outcome.NOT_APPLICABLE, str(error) or "skipped")
    elif not isinstance(error, (Exception, pytest.fail.Exception)):
        text = f"raised {error!r}, which ends a process"
        cell_run.conclude(Outcome.CRASH, text, type(error).__name__)
    else:
        text = errors.describe_exception(error)
        cell_run.conclude(Outcome.ERROR, text, errors.signature(error))
