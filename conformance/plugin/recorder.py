"""Records each cell as its test ends, and writes the reports when the run does.

Under pytest-xdist the workers attach a record to each test report and the controller, which gets
them all, journals them. The plan is what the collecting process collected; it is kept in the report
folder as ``plan.json``, from which the controller knows it too.
"""

from __future__ import annotations

import json
import os
import threading
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.harness import errors, run
from conformance.harness.cells import Cell
from conformance.harness.device import Device
from conformance.harness.outcomes import Outcome
from conformance.harness.selection import Selection, SelectionError
from conformance.plugin.options import Options
from conformance.report import (
    Journal,
    JournalError,
    Progress,
    Record,
    ReportDirError,
    build_report,
    collect_environment,
    read_journal,
    terminal_summary,
    write_reports,
)

_STILLBORN = 3
"""Workers in a row that may die before they have collected."""
_PLANNED = pytest.StashKey[Any]()
_RUN = pytest.StashKey[run.CellRun]()
_ATTRIBUTE = "conformance_record"
_STALE = ("records.jsonl", "report.json", "junit.xml", "matrix.md", "plan.json")


class Recorder:
    """The hooks of a run that contains conformance checks."""

    def __init__(
        self,
        config: pytest.Config,
        device: Device,
        report_dir: Path,
        options: Options,
        selection: Selection,
    ) -> None:
        self._config, self._device = config, device
        self._report_dir, self._options, self._selection = report_dir, options, selection
        self._worker_id: str | None = getattr(config, "workerinput", {}).get("workerid")
        self._records = self._worker_id is None and not config.option.collectonly
        self._journal: Journal | None = None
        self._progress: Progress | None = None
        self._report: dict[str, Any] | None = None
        self._trouble: str | None = None
        self._collected: set[str] = set()
        self._stillborn = 0
        self._environment: dict[str, Any] = {}
        self._environment_reader: threading.Thread | None = None

    # Planning

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Find the cell of each test, and check that the selection matched some."""
        for item in items:
            owner = getattr(item.parent, "obj", None)
            test = getattr(owner, getattr(item, "originalname", item.name), None)
            planned = getattr(test, "planned", None)
            if planned is not None:
                item.stash[_PLANNED] = planned
        if self._selection and self._worker_id is None:
            from conformance.harness import plan

            try:
                self._selection.check(plan.offered())
            except SelectionError as error:
                self._records = False  # pytest still calls pytest_collection_finish
                raise pytest.UsageError(str(error)) from error

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the plan: what is left after every selection, pytest's own included."""
        if not (self._records or self._worker_id == "gw0") or self._config.option.collectonly:
            return
        plan = {
            item.nodeid: item.stash[_PLANNED].cell
            for item in session.items
            if _PLANNED in item.stash
        }
        if plan:
            if self._records:
                self.begin()
                self._progress = Progress(len(plan))
            self._write_plan(plan)

    def begin(self) -> None:
        """Start the journal. What an earlier run left is removed, so that no two runs mix."""
        for name in _STALE:
            (self._report_dir / name).unlink(missing_ok=True)
        self._journal = Journal(self._report_dir / "records.jsonl", fresh=True)
        self._environment_reader = threading.Thread(target=self._read_environment, daemon=True)
        self._environment_reader.start()

    def _write_plan(self, plan: dict[str, Cell]) -> None:
        text = json.dumps({nodeid: cell.id for nodeid, cell in plan.items()}, indent=0)
        partial = self._report_dir / f"plan.json.{os.getpid()}"
        partial.write_text(text + "\n")
        partial.replace(self._report_dir / "plan.json")

    def _read_plan(self) -> dict[str, Cell]:
        """The plan that a worker wrote, or this process; empty before that."""
        try:
            text = (self._report_dir / "plan.json").read_text()
        except OSError:
            return {}
        return {nodeid: Cell.from_id(cell) for nodeid, cell in json.loads(text).items()}

    def _read_environment(self) -> None:
        self._environment = collect_environment(
            str(self._device), self._device.backend_modules, self._options.given()
        )

    # Running, in the process that runs the test

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Open the cell's run for the check to fill in."""
        planned = item.stash.get(_PLANNED, None)
        if planned is not None:
            item.stash[_RUN] = run.begin(planned.cell)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[None]:
        """Attach the cell's record to its test's report, with the outcome in pytest's terms."""
        report = yield
        ended = call.when == "call" or (call.when == "setup" and call.excinfo is not None)
        if ended and _PLANNED in item.stash:
            cell_run = item.stash.get(_RUN, None) or run.CellRun(item.stash[_PLANNED].cell)
            if call.excinfo is not None and not isinstance(call.excinfo.value, run.CellFailed):
                _conclude_from_exception(cell_run, call.excinfo.value)
            self._translate(report, item, cell_run)
            record = self._record(cell_run, call.duration, item.nodeid)
            setattr(report, _ATTRIBUTE, record.to_json())
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
            report.sections = [(name, _without_noise(text)) for name, text in report.sections]
            if outcome is not Outcome.ERROR or not report.longrepr:
                report.longrepr = f"{cell_run.cell.id} on {self._device}\n{cell_run.reason}"
        else:
            path, line, _ = item.location
            report.outcome = "skipped"
            report.longrepr = (path, line or 0, f"{outcome.word}: {cell_run.reason}")

    def _record(self, cell_run: run.CellRun, duration: float, nodeid: str) -> Record:
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

    # Reporting, in the process that the user sees

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> Any:
        """A category of its own for each outcome that pytest has no word for."""
        values = getattr(report, _ATTRIBUTE, None)
        if values is None:
            return None
        outcome = Outcome(values["outcome"])
        if outcome in (Outcome.PASS, Outcome.FAIL):
            return None
        category = "failed" if outcome.is_red else str(outcome).replace("_", " ")
        return category, outcome.letter, (outcome.word, {"yellow": not outcome.is_red})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Journal the record that came with the report."""
        if not self._records or self._journal is None:
            return
        values = getattr(report, _ATTRIBUTE, None)
        if values is not None:
            self._append(Record.from_json(values))
        elif report.when == "???":  # how pytest-xdist reports the test that killed a worker
            cell = self._read_plan().get(report.nodeid)
            if cell is not None:
                crashed = run.CellRun(cell)
                crashed.conclude(Outcome.CRASH, str(report.longrepr), "the process died")
                self._append(self._record(crashed, 0.0, report.nodeid))

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
            self._progress = Progress(len(self._read_plan()))
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
        records = read_journal(self._report_dir / "records.jsonl").records
        if not plan and not records:
            return
        if self._environment_reader is not None:
            self._environment_reader.join(timeout=60)
        interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        self._report = build_report(records, plan.values(), self._environment, interrupted)
        try:
            write_reports(self._report_dir, self._report)
        except ReportDirError as error:
            self._trouble = str(error)
        if exitstatus == pytest.ExitCode.OK and (self._trouble or not self._report["complete"]):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the report's summary below pytest's own sections."""
        if self._report is not None:
            color = terminalreporter.hasmarkup
            terminalreporter.section("conformance")
            terminalreporter.write_line(terminal_summary(self._report, self._report_dir, color))
        if self._trouble:
            terminalreporter.write_line(self._trouble, red=True)


_NOISE = "Unsupported memory profiling device"
"""What the profiler that traces calls prints for each allocation on a device it does not know."""


def _without_noise(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if _NOISE not in line)


def _conclude_from_exception(cell_run: run.CellRun, error: BaseException) -> None:
    """An exception that no check turned into a verdict: a skip by OpInfo, or our own fault."""
    cell_run.outcome = None
    if isinstance(error, (unittest.SkipTest, pytest.skip.Exception)):
        cell_run.conclude(Outcome.NOT_APPLICABLE, str(error) or "skipped")
    else:
        text = errors.describe_exception(error)
        cell_run.conclude(Outcome.ERROR, text, errors.signature(error))
