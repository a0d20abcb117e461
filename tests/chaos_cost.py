"""What a crash costs: the same cells with and without a fault in each, in seconds per bad cell.

    python tests/chaos_cost.py --cells 200 --isolation fork
    python tests/chaos_cost.py --cells 10 --isolation spawn

A cell that crashes dies twice, since its crash is confirmed by a second run, and each death is
followed by a fresh process that initialises the device. Wall time is of use on an idle machine
only; CPU time is that of all processes together.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from chaos_faults import FAULTS
from chaos_runs import OPERATORS, Run, complaints, strike


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. Returns 1 when a record of the runs was wrong, else 0."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", type=int, default=200, help="cells that go wrong")
    parser.add_argument("--fault", choices=FAULTS, default="segfault")
    parser.add_argument("--isolation", choices=("fork", "spawn"), default="fork")
    parser.add_argument("--processes", type=int, default=0, help="pytest-xdist's -n")
    chosen = parser.parse_args(arguments)
    options = [f"--op={OPERATORS}", f"--isolation={chosen.isolation}", f"-n{chosen.processes}"]
    with tempfile.TemporaryDirectory() as folder:
        clean = Run(Path(folder, "clean"), {}, *options)
        before = _timed(clean)
        plan = strike(clean.records(), [chosen.fault], chosen.cells)
        struck = Run(Path(folder, "struck"), plan, *options)
        after = _timed(struck)
        wrong = complaints(clean.records(), struck)
    print(f"{'':24}{'wall s':>10}{'CPU s':>10}")
    rows = {"without faults": before, f"with {len(plan)} x {chosen.fault}": after}
    rows["added per bad cell"] = tuple(
        (b - a) / len(plan) for a, b in zip(before, after, strict=True)
    )
    for name, figures in rows.items():
        print(f"{name:24}" + "".join(f"{figure:10.3f}" for figure in figures))
    print("\n".join(wrong) if wrong else "every record right")
    return 1 if wrong else 0


def _timed(run: Run) -> tuple[float, float]:
    """Wall and CPU seconds of the run."""
    wall, cpu = time.monotonic(), _cpu()
    run.finish(timeout=7200)
    figures = time.monotonic() - wall, _cpu() - cpu
    for left in run.leftovers():
        print(f"left: {left}")
    return figures


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    raise SystemExit(main())
