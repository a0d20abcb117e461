"""Runs with faults at random cells: start them, see what they leave, compare their records.

Environment variables: CHAOS_SEED=N strikes other cells; CHAOS_LONG=1 adds the tests that are left
out to keep `make test` short, and repeats the big run with other seeds and more processes.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from chaos_faults import FATAL_ERROR, FAULTS, STATE
from commands import command, environment

from conformance.harness.cells import Cell
from conformance.report import read_journal

SEED = int(os.environ.get("CHAOS_SEED", "20"))
"""Which cells are struck. The same seed strikes the same ones."""
LONG = bool(os.environ.get("CHAOS_LONG"))

OPERATORS = (
    "sin,cos,tan,exp,sqrt,neg,reciprocal,floor,ceil,sign,sigmoid,tanh,erf,log,log2,log10,log1p,"
    "expm1,sinh,cosh,asin,acos,atan,rsqrt,trunc,maximum,minimum,atan2,hypot,flip,roll,isnan,sgn,"
    "angle,add,sub,mul,eq,ne,lt,gt,le,ge,fmod,remainder,nn.functional.relu"
)
"""Those at which chaos_backend strikes: some 500 cells."""
_MARK = "CHAOS_MARK"
_VARYING = ("duration_s", "rerun_after")
_AT_ONCE = 10.0
"""Seconds within which what a run started must be gone."""

Records = Mapping[str, Mapping[str, Any]]


class Run:
    """One run of the suite on the bundled backend in ``folder``, marked so that it can be traced.

    ``plan`` maps cell ids to faults; None runs the backend itself, without interposition.
    """

    def __init__(
        self, folder: Path, plan: Mapping[str, str] | None, *options: str, **variables: str
    ) -> None:
        self.folder, self.plan, self.options = folder, plan or {}, options
        self.mark = uuid.uuid4().hex
        # Short, since torch makes a socket below it, whose path may have 107 characters.
        self.temporary = Path(tempfile.mkdtemp(prefix="chaos-"))
        weakref.finalize(self, shutil.rmtree, self.temporary, ignore_errors=True)
        self.report_dir = folder / "report"
        self._state = folder / "state"
        for path in (folder, self._state):
            path.mkdir(parents=True, exist_ok=True)
        self._modules = ["--backend-module=chaos_backend"] if plan is not None else []
        self.replan(self.plan)
        self._environment = environment(
            **{_MARK: self.mark, STATE: str(self._state), "TMPDIR": str(self.temporary)},
            TORCHINDUCTOR_CACHE_DIR=str(folder / "inductor"),
            CHAOS_PLAN=str(folder / "plan.json"),
            **variables,
        )
        self._shared_before = _shared_memory()
        self.process: subprocess.Popen[bytes] | None = None
        """The pytest process, or the controller of several."""

    def replan(self, plan: Mapping[str, str]) -> None:
        """Let other faults strike from the next start on."""
        self.plan = plan
        (self.folder / "plan.json").write_text(json.dumps(plan))

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        """Start it, in a session of its own; what it prints goes to the file ``output``."""
        arguments = ["--device=accel", f"--report-dir={self.report_dir}", *self._modules]
        # A healthy child holds up to 1.3 GiB, whatever it runs.
        arguments += ["--cell-memory=1.7", f"--fatal-pattern={FATAL_ERROR}"]
        with (self.folder / "output").open("wb") as output:
            self.process = subprocess.Popen(
                command("run", *arguments, *self.options, *more),
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        return self.process

    def finish(self, *more: str, timeout: float = 300.0) -> int:
        """Run it to its end and return the exit code."""
        process = self.start(*more)
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"no end after {timeout} s:\n{self.output()[-3000:]}") from None
        finally:
            self.clean_up()

    def wait_until_struck(self, fault: str, timeout: float = 120.0) -> None:
        """Wait until the fault strikes somewhere."""
        deadline = time.monotonic() + timeout
        while not (self._state / f"struck.{fault}").exists():
            assert time.monotonic() < deadline, self.output()[-3000:]
            assert self.process.poll() is None, self.output()[-3000:]
            time.sleep(0.05)

    def lines(self) -> list[str]:
        """The journal's whole lines so far."""
        try:
            return (self.report_dir / "records.jsonl").read_text().splitlines()
        except FileNotFoundError:
            return []

    def output(self) -> str:
        """What the run printed."""
        return (self.folder / "output").read_bytes().decode("utf-8", "replace")

    def records(self) -> Records:
        """The journal by cell id. Fails when it is torn or holds a cell twice."""
        journal = read_journal(self.report_dir / "records.jsonl")
        assert journal.torn is None
        twice = [cell for cell, n in Counter(r.cell.id for r in journal.records).items() if n > 1]
        assert twice == []
        return {record.cell.id: record.to_json() for record in journal.records}

    def report(self) -> Mapping[str, Any]:
        """The report.json."""
        return json.loads((self.report_dir / "report.json").read_text())

    def processes(self) -> list[int]:
        """Processes that the run started, directly or not, and that still run."""
        wanted = f"{_MARK}={self.mark}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if wanted in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
            except OSError:
                continue  # it has just ended
        return found

    def leftovers(self) -> list[str]:
        """Processes, temporary files and shared memory that are still there after a while."""
        deadline = time.monotonic() + _AT_ONCE
        shared = _shared_memory() - self._shared_before
        while True:
            shared &= _shared_memory()
            found = [f"process {pid}: {_command_line(pid)}" for pid in self.processes()]
            found += [
                f"temporary file {path}"
                for path in self.temporary.iterdir()
                if not path.name.startswith("pytest-of-")  # pytest keeps its own on purpose
            ]
            found += [f"shared memory {name}" for name in shared]
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.1)

    def clean_up(self) -> None:
        """Kill the run itself, if it is still there; what it left stays for leftovers()."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def kill_leftovers(self) -> None:
        """Kill every process that the run started."""
        while pids := self.processes():
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.1)


def _shared_memory() -> set[str]:
    return set(os.listdir("/dev/shm"))


def _command_line(pid: int) -> str:
    try:
        status = Path(f"/proc/{pid}/stat").read_text().split()
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return "gone"
    return f"state {status[2]}, parent {status[3]}: {words.decode(errors='replace')[:120]}"


def clean_records(factory: pytest.TempPathFactory) -> Records:
    """Records of the bundled backend itself, by cell id, from one run for all test processes."""
    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with (folder / "clean.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run = Run(folder / "clean", None, f"--op={OPERATORS}", "-n2")
        if not (run.report_dir / "report.json").exists():
            assert run.finish() == pytest.ExitCode.OK, run.output()[-3000:]
            assert run.leftovers() == []
    return run.records()


def strike(
    cells: Iterable[str], faults: Sequence[str], count: int, seed: int = SEED
) -> dict[str, str]:
    """``count`` random cells, each with one of the faults, every fault used about as often."""
    chosen = random.Random(seed).sample(sorted(cells), count)
    return {cell: faults[index % len(faults)] for index, cell in enumerate(chosen)}


def complaints(clean: Records, run: Run) -> list[str]:
    """What the run's records say wrongly, beside those of a run without faults."""
    found = run.records()
    wrong = [f"{cell}: no record" for cell in sorted(set(clean) - set(found))]
    wrong += [f"{cell}: not planned" for cell in sorted(set(found) - set(clean))]
    breakers = {cell for cell, fault in run.plan.items() if FAULTS[fault].breaks_device}
    for cell in sorted(set(found) & set(clean)):
        record = found[cell]
        fault = run.plan.get(cell)
        if fault is None or FAULTS[fault].outcomes == ("pass",):
            wrong += _differences(cell, fault, clean[cell], record)
        else:
            wrong += [f"{cell}: {fault}: {text}" for text in _misjudged(fault, record)]
        after = record.get("rerun_after")
        if after is not None and after not in breakers:
            wrong.append(f"{cell}: rerun after {after}, which broke nothing")
    return wrong


def _differences(
    cell: str, fault: str | None, right: Mapping[str, Any], record: Mapping[str, Any]
) -> list[str]:
    keys = sorted((right.keys() | record.keys()) - set(_VARYING))
    found = {key: record.get(key) for key in keys if record.get(key) != right.get(key)}
    return [f"{cell}: {fault or 'no fault'}: not as without faults: {found}"] if found else []


def _misjudged(name: str, record: Mapping[str, Any]) -> list[str]:
    fault, reason = FAULTS[name], record.get("reason", "")
    wrong = []
    if record["outcome"] not in fault.outcomes:
        wrong.append(f"outcome {record['outcome']}, not {' or '.join(fault.outcomes)}")
    if record["outcome"] != "pass":
        wrong += [f"no {p!r} in the reason" for p in fault.reason if not re.search(p, reason)]
        if fault.stack and not re.search(rf"chaos_faults\.py.* in {name}\b", reason):
            wrong.append("no stack with the function in the reason")
    if fault.rerun is not None:
        if record.get("rerun") != fault.rerun:
            wrong.append(f"rerun {record.get('rerun')}, not {fault.rerun}")
        if record.get("flaky") is not (fault.rerun != record["outcome"]):
            wrong.append(f"flaky {record.get('flaky')}")
    if wrong:
        wrong.append(f"the reason was: {reason[:1500]}")
    return wrong


def cells_of(records: Records, *operators: str) -> list[str]:
    """The ids of cells of these operators, or of all."""
    return [cell for cell in records if not operators or Cell.from_id(cell).op in operators]
