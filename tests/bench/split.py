"""Where the time of a run goes: samples its Python stacks with py-spy and sums them by step.

    python tests/bench/split.py [--out FILE] [PYTEST-OPTION ...]

Runs ``pytest -n 0 --isolation=none`` with the options given, 100 samples a second, and prints a
table. Needs py-spy (https://github.com/benfred/py-spy, on the PATH or in the environment), which is
no dependency of the suite. Only the thread that runs Python is seen: what the device does meanwhile
costs nothing here, nor does waiting for it. Exit code: 0, or that of py-spy without stacks.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

RATE = 100
"""Samples per second."""
_FRAME = re.compile(r"(?P<function>.+) \((?P<file>[^()]*?)(?::\d+)?\)")
_STEPS = (
    ("imports", r"_find_and_load", r"importlib"),
    ("reference in higher precision", r"_golden", r"harness/golden\.py"),
    ("reference on the CPU", r"reference", r"harness/golden\.py"),
    ("samples", r"sample_inputs", r"harness/samples\.py"),
    ("arguments to the device", r"_carry|(Carrier\.)?carry", r"harness/(oncall|transfer)\.py"),
    ("operator on the device", r"(OnDevice\.)?call", r"harness/oncall\.py"),
    ("results to the CPU", r"to_cpu", r"harness/compare\.py"),
    ("comparison and error figures", r".*", r"harness/(compare|measure|ties|figures)\.py"),
)
_AROUND = (
    ("rest of the check", r".*", r"conformance/(harness|opinfo)/\w+\.py"),
    ("collection", r"(Session\.)?perform_collect", r"_pytest/main\.py"),
    ("pytest and recording, per test", r"pytest_runtestloop", r"_pytest/main\.py"),
)
"""Step, function and file. A stack belongs to the step of its innermost frame that has one, of
``_STEPS`` if there is any."""
_OTHER = "start, end and reports"


def step_of(stack: str) -> str:
    """The step that a stack belongs to: frames "function (file:line)", outermost first, by ";"."""
    frames = [found for frame in stack.split(";") if (found := _FRAME.fullmatch(frame))]
    for steps in (_STEPS, _AROUND):
        for frame in reversed(frames):
            for step, function, file in steps:
                if re.fullmatch(function, frame["function"]) and re.search(file, frame["file"]):
                    return step
    return _OTHER


def split(lines: Iterable[str]) -> Counter[str]:
    """Samples per step, of lines "stack count" (py-spy's raw format)."""
    counts: Counter[str] = Counter()
    for line in lines:
        stack, _, count = line.rstrip("\n").rpartition(" ")
        counts[step_of(stack)] += int(count)
    return counts


def table(counts: Counter[str], rate: int = RATE) -> str:
    """Seconds and share of each step, the most first."""
    total = sum(counts.values()) or 1
    rows = [(step, n / rate, n / total) for step, n in counts.most_common()]
    rows.append(("all", total / rate, 1.0))
    return "\n".join(f"{seconds:8.1f} s  {share:6.1%}  {step}" for step, seconds, share in rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it. Returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, help="keep the stacks in this file")
    options, more = parser.parse_known_args(arguments)
    py_spy = shutil.which("py-spy") or shutil.which("py-spy", path=Path(sys.executable).parent)
    if py_spy is None:
        parser.error("py-spy is not there: pip install py-spy")
    with tempfile.TemporaryDirectory() as folder:
        out = options.out or Path(folder, "stacks")
        run = [sys.executable, "-m", "pytest", "-n0", "--isolation=none", "-q"]
        run += [f"--report-dir={Path(folder, 'report')}", *more]
        command = [py_spy, "record", "--format=raw", f"--rate={RATE}", f"--output={out}"]
        ended = subprocess.run([*command, "--", *run], check=False)
        if not out.exists():
            return ended.returncode or 1
        print(table(split(out.read_text().splitlines())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
