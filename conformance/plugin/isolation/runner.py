"""pytest's hooks of a run with isolation: cells go to a child, the rest runs as ever."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from conformance.harness import run
from conformance.harness.isolation.child import ChildEnded
from conformance.harness.isolation.ending import describe_returncode, stacks_of
from conformance.harness.isolation.watchdog import Limits, NoAnswer, await_answer
from conformance.harness.outcomes import Outcome
from conformance.plugin.isolation.children import Children, StartFailed
from conformance.plugin.isolation.serve import UNUSABLE, Request
from conformance.plugin.isolation.streaks import Held, Streak
from conformance.plugin.planning import planned_of
from conformance.plugin.recorder import RECORD, Recorder

_TEARDOWN_S = 10.0
_SLACK = 10.0
"""A cell may take this many times the duration that was recorded for it."""
_BROKE = "broke the device"


@dataclass
class Ended:
    """A cell that got no reports, since its process ended or had to be ended."""

    outcome: Outcome
    text: str
    signature: str
    stacks: str = ""
    note: str = ""
    """What the cell was doing."""
    sections: tuple[tuple[str, str], ...] = ()
    duration_s: float = 0.0
    ran: bool = True


@dataclass
class Limiter:
    """What a cell may use: ``seconds`` unless its recorded duration asks for more."""

    seconds: float
    memory_bytes: float
    recorded: Mapping[str, float]

    def of(self, cell_id: str) -> Limits:
        """The limits of a cell."""
        seconds = max(self.seconds, _SLACK * self.recorded.get(cell_id, 0.0))
        return Limits(seconds, self.memory_bytes)


class Isolation:
    """Runs each cell in a child process."""

    def __init__(
        self,
        session: pytest.Session,
        recorder: Recorder,
        mode: str,
        limiter: Limiter,
        fatal: list[re.Pattern[str]],
    ) -> None:
        self._recorder, self._limiter, self._fatal = recorder, limiter, fatal
        self._children = Children(
            session, mode, self._check_controller, recorder.let_go, limiter.seconds
        )
        self._streak = Streak(self._is_broken, self._run_again, self._blame)
        self._capture = session.config.pluginmanager.getplugin("capturemanager")
        self._is_worker = hasattr(session.config, "workerinput")
        self._parent = os.getppid()

    # pytest's hooks

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run a cell's test in the child; leave other tests to pytest."""
        if planned_of(item) is None:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        if not self._streak.is_on and self._children.is_outgrown(self._limiter.memory_bytes):
            self._children.drop()
        reports = self._reports(item, nextitem)
        ended = Held(item, reports, ended_process=not self._children.has_one)
        for held in self._streak.add(ended, is_last=nextitem is None):
            with contextlib.nullcontext() if held.item is item else _as_current(held.item):
                self._log(held)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Report what was still held back, and end the child."""
        try:
            for held in self._streak.release():
                with _as_current(held.item):
                    self._log(held)
        finally:
            self._children.stop(_TEARDOWN_S)

    def _log(self, held: Held) -> None:
        item = held.item
        for report in held.reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _check_controller(self) -> None:
        """Stop where the process is gone that would take the reports."""
        if self._is_worker and os.getppid() != self._parent:
            self._children.drop()
            os._exit(1)

    # Running a cell

    def _reports(self, item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
        first = self._attempt(item, nextitem)
        if not isinstance(first, Ended):
            if _outcome_of(first) is Outcome.CRASH:  # by an exception: the process goes on
                self._confirm(item, first)
            return first
        again = self._attempt(item, None, in_detail=True) if first.ran else first
        if isinstance(again, Ended):
            rerun = again.outcome
            first.note, first.stacks = again.note or first.note, again.stacks or first.stacks
        else:
            rerun = _outcome_of(again)
            self._children.drop()  # "alone" is meant both ways
        return self._reports_of_ended(item, first, rerun if first.ran else None)

    def _confirm(self, item: pytest.Item, reports: list[pytest.TestReport]) -> None:
        """Run a cell again, alone, and put what came of it into its record."""
        self._children.drop()
        again = self._attempt(item, None)
        self._children.drop()
        if isinstance(again, Ended) and not again.ran:
            return
        rerun = again.outcome if isinstance(again, Ended) else _outcome_of(again)
        report = next(r for r in reports if hasattr(r, RECORD))
        record = getattr(report, RECORD)
        flaky = rerun is not Outcome(record["outcome"])
        record.update(rerun=rerun.value, flaky=flaky)
        record["reason"] = f"{record['reason']}\n{_says(rerun, flaky=flaky)}"
        report.longrepr = f"{planned_of(item).cell.id}\n{record['reason']}"

    def _attempt(
        self, item: pytest.Item, nextitem: pytest.Item | None, *, in_detail: bool = False
    ) -> list[pytest.TestReport] | Ended:
        """Run the test once, in a fresh child where there is none."""
        try:
            child = self._children.get()
        except StartFailed as error:
            outcome = Outcome.TIMEOUT if error.is_timeout else Outcome.CRASH
            text = f"The cell was not run: {error.text}."
            return Ended(outcome, text, error.signature, error.stacks, ran=False)
        began = time.monotonic()
        limits = self._limiter.of(planned_of(item).cell.id)
        request = Request(item.nodeid, nextitem.nodeid if nextitem else None, in_detail)
        try:
            child.send(request)
            answer = await_answer(child, limits, self._check_controller)
        except ChildEnded as error:
            text, signature = describe_returncode(error.returncode)
            if error.hung_up:
                text, signature = "closed its pipe to the harness, or wrote into it", "hung up"
            elif error.returncode == UNUSABLE:
                text, signature = f"could not go on: {child.page.read()}", "unusable process"
                child.page.write("")
            ended = Ended(Outcome.CRASH, f"The process {text}.", signature)
        except NoAnswer as error:
            outcome = Outcome.TIMEOUT if error.is_timeout else Outcome.CRASH
            ended = Ended(outcome, f"The process {error.text}.", error.signature)
        except BaseException:
            self._children.drop()
            raise
        else:
            self._children.note_imports(answer.imported)
            return self._judge(item, answer.reports, answer.broken)
        ended.duration_s = time.monotonic() - began
        ended.note = child.page.read()
        ended.sections = self._captured()
        ended.stacks = stacks_of(
            child.stacks(), dict(ended.sections).get("stderr", ""), "runtestprotocol"
        )
        self._children.drop()
        return ended

    def _captured(self) -> tuple[tuple[str, str], ...]:
        """What the dead process had printed: pytest's capture files are shared with it."""
        if self._capture is None or not self._capture.is_globally_capturing():
            return ()
        out, err = self._capture.read_global_capture()
        return tuple((name, text) for name, text in (("stdout", out), ("stderr", err)) if text)

    def _judge(
        self, item: pytest.Item, serialized: list[dict[str, Any]], broken: str | None
    ) -> list[pytest.TestReport]:
        """The reports; where the device works no longer the child ends, and the cell says so."""
        hook, config = item.ihook, item.config
        reports = [
            hook.pytest_report_from_serializable(config=config, data=data) for data in serialized
        ]
        report = next((r for r in reports if hasattr(r, RECORD)), None)
        if report is None:
            return reports
        record = getattr(report, RECORD)
        reason = record.get("reason") or ""
        if broken is None and Outcome(record["outcome"]).is_red:
            found = next((p for p in self._fatal if p.search(reason)), None)
            broken = f"the error is a fatal one ({found.pattern!r})" if found else None
        if broken is not None:
            self._children.drop()
            _make_breaker(item, report, broken)
        return reports

    def _reports_of_ended(
        self, item: pytest.Item, ended: Ended, rerun: Outcome | None
    ) -> list[pytest.TestReport]:
        cell_run = run.CellRun(planned_of(item).cell)
        lines = [ended.text]
        if ended.note:
            lines.append(f"It was at: {ended.note}.")
        if rerun is not None:
            lines.append(_says(rerun, flaky=rerun is not ended.outcome))
        if ended.stacks:
            lines.append(ended.stacks)
        cell_run.conclude(ended.outcome, "\n".join(lines), ended.signature)
        record = self._recorder.record(cell_run, ended.duration_s, item.nodeid)
        if rerun is not None:
            record.rerun, record.flaky = rerun, rerun is not ended.outcome
        stop = time.time()
        common = {"nodeid": item.nodeid, "location": item.location, "keywords": {}}
        report = pytest.TestReport(
            **common,
            outcome="failed",
            longrepr=f"{cell_run.cell.id}\n{cell_run.reason}",
            when="call",
            sections=[(f"Captured {name} call", text) for name, text in ended.sections],
            duration=ended.duration_s,
            start=stop - ended.duration_s,
            stop=stop,
        )
        setattr(report, RECORD, record.to_json())
        over = pytest.TestReport(
            **common, outcome="passed", longrepr=None, when="teardown", start=stop, stop=stop
        )
        return [report, over]

    # What the streak asks

    def _is_broken(self, canary: pytest.Item) -> bool:
        """Whether a cell that passed before no longer does. A child that is broken is ended.

        One that is gone cannot be asked and is taken for broken.
        """
        if not self._children.has_one:
            return True
        again = self._attempt(canary, None)
        if not isinstance(again, Ended) and _outcome_of(again) is Outcome.PASS:
            return False
        self._children.drop()
        return True

    def _blame(self, suspect: Held, canary: pytest.Item) -> list[pytest.TestReport]:
        """The reports of a cell that passed before the device was found broken.

        It fails where the canary does after it in a fresh process too.
        """
        again = self._attempt(suspect.item, None)
        if isinstance(again, Ended):
            if not again.ran:
                return suspect.reports
            return self._reports_of_ended(suspect.item, again, Outcome.PASS)
        if _outcome_of(again) is not Outcome.PASS:
            return again
        if not self._is_broken(canary):
            return suspect.reports
        report = next(r for r in again if hasattr(r, RECORD))
        _make_breaker(suspect.item, report, "a cell that passed before it fails")
        return again

    def _run_again(self, held: Held, after: str) -> list[pytest.TestReport]:
        """The reports of a cell that ran on a broken device, from a child that is not."""
        reports = self._reports(held.item, None)
        if Held(held.item, reports).record("signature") == held.record("signature"):
            self._children.drop()  # it fails so by itself, and may have broken this process too
            return reports
        for report in reports:
            if hasattr(report, RECORD):
                getattr(report, RECORD)["rerun_after"] = after
        return reports


def _says(rerun: Outcome, *, flaky: bool) -> str:
    if flaky:
        return f"Run again alone it ended otherwise: {rerun}."
    return "Run again alone it ended the same way."


def _make_breaker(item: pytest.Item, report: pytest.TestReport, why: str) -> None:
    """Have a cell's record and report say that it broke the device; it is red from now on."""
    record = getattr(report, RECORD)
    why = f"The device does not work after this cell: {why}"
    record["reason"] = f"{record.get('reason') or ''}\n{why}".strip()
    if not Outcome(record["outcome"]).is_red:
        record["outcome"], record["signature"] = Outcome.FAIL.value, _BROKE
    report.outcome = "failed"
    report.longrepr = f"{planned_of(item).cell.id}\n{record['reason']}"


@contextlib.contextmanager
def _as_current(item: pytest.Item) -> Iterator[None]:
    """Have pytest-xdist's worker take reports for this test's, though it has gone on to another."""
    plugins = item.config.pluginmanager.get_plugins()
    worker = next((p for p in plugins if type(p).__name__ == "WorkerInteractor"), None)
    if worker is None:
        yield
        return
    now = worker.item_index
    worker.item_index = item.session.items.index(item)
    try:
        yield
    finally:
        worker.item_index = now


def _outcome_of(reports: list[pytest.TestReport]) -> Outcome:
    record = next((getattr(r, RECORD) for r in reports if hasattr(r, RECORD)), None)
    return Outcome(record["outcome"]) if record else Outcome.ERROR
