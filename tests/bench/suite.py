"""The cost of this suite against upstream-style tests of the same properties, in one run.

    python tests/bench/suite.py [--every N] [--repeat N] [--check AREA/CHECK] [--device NAME]

Each side runs the same operators and dtypes by the same pytest, one after the other: the
upstream-style tests as they are, the same without their two known wastes, and the suite. Then the
suite on one worker process and on two, and its smoke profile. One table on the terminal, everything
in bench-suite.json, logs beside it. Exit code 0 when every run ran what it should, 1 when one did
not (which says nothing about speed), 2 for a wrong option.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from properties import PROPERTIES

BENCH = Path(__file__).resolve().parent
CHECKOUT = BENCH.parents[1]
_DID_RUN = ("pass", "fail", "unsupported", "crash", "timeout")
_WRONG = ("fail", "crash", "timeout")
_UPSTREAM, _PATCHED = "upstream-style", "upstream-style, patched"
_SMOKE = "suite, smoke profile"


@dataclass
class Run:
    """One run and what became of it. ``outcomes`` holds whether a test judged wrong, by name."""

    name: str
    cost: dict[str, Any]
    start_s: float
    selected: list[str]
    outcomes: dict[str, bool] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """For the table and the JSON: seconds, bytes, counts."""
        return {
            "name": self.name,
            **self.cost,
            "start_cpu_s": self.start_s,
            "ran": len(self.outcomes),
            "judged_wrong": sum(self.outcomes.values()),
            "problems": self.problems,
        }


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options. Ends the process with code 2 when one is wrong."""
    parser = argparse.ArgumentParser(
        description="CPU time of the suite against upstream-style tests of the same cells.",
    )
    known = ["/".join(key) for key in PROPERTIES]
    parser.add_argument(
        "--check", action="append", choices=known, help="a property (repeatable; default: all)"
    )
    parser.add_argument(
        "--every", type=_positive, default=1, metavar="N", help="one in N op x dtypes"
    )
    parser.add_argument(
        "--repeat", type=_positive, default=1, metavar="N", help="rounds; the least of each counts"
    )
    parser.add_argument(
        "--processes", type=int, default=0, metavar="N", help="-n of both sides (default: 0)"
    )
    parser.add_argument("--device", default="accel", metavar="NAME[:INDEX]")
    parser.add_argument("--backend-module", action="append", default=[], metavar="MODULE")
    parser.add_argument(
        "--timeout", type=float, default=3600.0, metavar="S", help="seconds that one run may take"
    )
    parser.add_argument("--out", type=Path, default=CHECKOUT / "build" / "bench-suite")
    options = parser.parse_args(arguments)
    options.check = options.check or known
    return options


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def upstream_command(check: str, options: argparse.Namespace, patched: bool) -> list[str]:
    """Pytest's arguments for the upstream-style tests, with what upstream's pytest.ini sets."""
    command = ["-c", os.devnull, f"--rootdir={BENCH}", "-p", "no:cacheprovider"]
    command += ["-p", "no:warnings", "--capture=sys", "--tb=native"]
    command += [f"--bench-device={options.device}", f"--bench-property={check}"]
    command += [f"--bench-backend-module={module}" for module in options.backend_module]
    command += ["--bench-patched"] if patched else []
    return [*command, f"-n{options.processes}", str(BENCH / "upstream_style.py")]


def suite_command(options: argparse.Namespace, out: Path, processes: int, *more: str) -> list[str]:
    """The arguments of pytest for this suite."""
    command = [f"--device={options.device}", f"--report-dir={out / 'report'}", f"-n{processes}"]
    command += [f"--backend-module={module}" for module in options.backend_module]
    return [*command, *more]


def run(name: str, arguments: list[str], out: Path, options: argparse.Namespace, every: int) -> Run:
    """Run pytest, measured, and read what it left in ``out``."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    pytest = Path(sys.executable).with_name("pytest")
    command = [sys.executable, str(pytest), "-p", "bench_plugin", "-q", f"--bench-out={out}"]
    command += [f"--bench-every={every}", *arguments]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(CHECKOUT), str(BENCH))),
        "OMP_NUM_THREADS": "1",
    }
    measured = [sys.executable, str(BENCH / "measure.py"), str(out / "cost.json")]
    measured += [str(out / "log"), str(options.timeout), *command]
    subprocess.run(measured, cwd=CHECKOUT, env=environment, check=True)
    cost = json.loads((out / "cost.json").read_text())
    start = sum(float(path.read_text()) for path in out.glob("start-*"))
    result = Run(name, cost, start, _read(out / "selected.json", []))
    if (out / "report").exists():
        result.outcomes = suite_outcomes(_read(out / "report" / "report.json", {"cells": []}))
    else:
        result.outcomes = upstream_outcomes(_read(out / "results.json", {}))
    result.problems = problems(result, out / "log")
    return result


def _read(path: Path, otherwise: Any) -> Any:
    return json.loads(path.read_text()) if path.exists() else otherwise


def suite_outcomes(report: dict[str, Any]) -> dict[str, bool]:
    """Whether a test judged wrong, by name, of the cells in a report that the device ran."""
    return {
        cell["nodeid"].rsplit("::", 1)[-1]: cell["outcome"] in _WRONG
        for cell in report["cells"]
        if cell["outcome"] in _DID_RUN
    }


def upstream_outcomes(results: dict[str, str]) -> dict[str, bool]:
    """The same of pytest's outcomes by name: a skipped test did not run."""
    return {name: outcome == "failed" for name, outcome in results.items() if outcome != "skipped"}


def problems(result: Run, log: Path) -> list[str]:
    """Why the run does not count; empty when it does."""
    found = []
    returncode = result.cost["returncode"]
    if returncode is None:
        found.append(f"took too long (--timeout), see {log}")
    elif returncode not in (0, 1):
        found.append(f"pytest ended with {returncode}, see {log}")
    if result.cost["left_running"]:
        found.append(f"left {result.cost['left_running']} processes running")
    if not result.selected:
        found.append(f"selected no test, see {log}")
    found += difference("did not run", set(result.selected) - set(result.outcomes))
    return found


def difference(what: str, names: set[str]) -> list[str]:
    """One line about the names; none when there are none."""
    shown = ", ".join(sorted(names)[:3]) + (", ..." if len(names) > 3 else "")
    return [f"{len(names)} {what}: {shown}"] if names else []


def least(rounds: Sequence[Sequence[Run]]) -> list[Run]:
    """Of each run its least CPU and wall time: what other work on the machine adds is no cost."""
    found = []
    for same in zip(*rounds, strict=True):
        best = min(same, key=lambda result: result.cost["cpu_s"])
        best.cost["wall_s"] = min(result.cost["wall_s"] for result in same)
        best.problems = list(dict.fromkeys(p for result in same for p in result.problems))
        found.append(best)
    return found


def compare(check: str, options: argparse.Namespace) -> list[Run]:
    """Both sides on one property, and the suite on one and on two workers."""
    area, name = check.split("/")
    folder = options.out / f"{area}-{name}"
    narrowed = (f"--area={area}", f"--check={name}")

    def upstream(name: str, patched: bool) -> Run:
        command = upstream_command(check, options, patched)
        return run(name, command, folder / f"upstream-{patched:d}", options, options.every)

    def suite(processes: int) -> Run:
        out = folder / f"suite-{processes}"
        command = suite_command(options, out, processes, *narrowed)
        return run(f"suite, -n {processes}", command, out, options, options.every)

    runs = [upstream(_UPSTREAM, False), upstream(_PATCHED, True)]
    runs += [suite(processes) for processes in dict.fromkeys((options.processes, 1, 2))]
    for other in runs[1:]:
        odd = set(runs[0].selected) ^ set(other.selected)
        other.problems += difference(f"not on both sides ({_UPSTREAM} and this)", odd)
    return runs


def ratios(runs: Sequence[Run], processes: int) -> dict[str, float]:
    """CPU of upstream's style over the suite's, and what a second worker saves in wall time."""
    cost = {result.name: result.cost for result in runs}
    suite = cost[f"suite, -n {processes}"]["cpu_s"]
    return {
        "cpu_ratio": cost[_UPSTREAM]["cpu_s"] / suite,
        "cpu_ratio_patched": cost[_PATCHED]["cpu_s"] / suite,
        "speedup_of_2_workers": cost["suite, -n 1"]["wall_s"] / cost["suite, -n 2"]["wall_s"],
    }


def table(runs: Sequence[Run]) -> list[str]:
    """One line for each run, and its problems."""
    lines = [
        f"{'':<26}{'CPU s':>8}{'start s':>9}{'wall s':>8}{'peak MiB':>10}{'ran':>7}{'wrong':>7}"
    ]
    for result in runs:
        row = result.summary()
        lines.append(
            f"{row['name']:<26}{row['cpu_s']:>8.1f}{row['start_cpu_s']:>9.1f}{row['wall_s']:>8.1f}"
            f"{row['peak_bytes'] / 2**20:>10.0f}{row['ran']:>7}{row['judged_wrong']:>7}"
        )
        lines += [f"  {problem}" for problem in result.problems]
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything; return the exit code."""
    options = parse(arguments)
    report: dict[str, Any] = {
        "torch": importlib.metadata.version("torch"),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "options": {**vars(options), "out": str(options.out)},
        "properties": {},
    }
    sound = True
    for check in options.check:
        runs = least([compare(check, options) for _ in range(options.repeat)])
        found = ratios(runs, options.processes)
        report["properties"][check] = {"runs": [r.summary() for r in runs], **found}
        sound &= not any(result.problems for result in runs)
        print(f"\n{check}, one in {options.every} of its op x dtypes", *table(runs), sep="\n")
        print(
            f"CPU of upstream-style over suite, -n {options.processes}: {found['cpu_ratio']:.2f}, "
            f"patched {found['cpu_ratio_patched']:.2f}; "
            f"2 workers over one: {found['speedup_of_2_workers']:.2f} times as fast"
        )
    out = options.out / "smoke"
    workers = os.cpu_count() or 1
    smoke = run(
        f"{_SMOKE}, -n {workers}",
        suite_command(options, out, workers, "--profile=smoke"), out, options, 1,
    )  # fmt: skip
    report["smoke"] = smoke.summary()
    report["load_after"] = os.getloadavg()[0]
    print("", *table([smoke]), sep="\n")
    path = options.out / "bench-suite.json"
    path.write_text(json.dumps(report, indent=2) + "\n")
    print(f"\nstart: CPU before the first test; peak: the biggest process. All figures: {path}")
    return 0 if sound and not smoke.problems else 1


if __name__ == "__main__":
    sys.exit(main())
