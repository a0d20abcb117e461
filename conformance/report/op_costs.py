"""Make the table of what operators cost, by which shards are balanced without recorded durations.

``python -m conformance.report.op_costs REPORT...`` rewrites ``conformance/harness/op_costs.py``.
The more reports, the less noise: the shortest duration of each cell counts. Only operators far
above the median are listed, since the others even out.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from conformance.harness import op_costs
from conformance.harness.cells import Cell
from conformance.report.durations import DurationsError, recorded_durations
from conformance.report.write import ReportDirError, replace_files

_LISTED = 16.0
"""Medians from which on an operator is listed."""
_GIANT = 100.0
"""Medians from which on a single dtype is listed, where it is far from its operator."""
_FAR = 1.5

_HEADER = '''\
"""What operators cost that cost far more than most, in units of a median cell.

Keys are operators with their variants, and ``operator/dtype`` for giants that differ from dtype to
dtype. An operator that is not listed costs 1.
Written by ``python -m conformance.report.op_costs REPORT...``.
"""

OP_COSTS: dict[str, float] = {
'''


def table(reports: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Costs by operator, from seconds by cell id in each of the reports."""
    shortest: dict[Cell, float] = {}
    for seconds in reports:
        for cell_id, duration in seconds.items():
            cell = Cell.from_id(cell_id)
            shortest[cell] = min(duration, shortest.get(cell, duration))
    by_check: dict[tuple[str, str], list[float]] = {}
    for cell, duration in shortest.items():
        by_check.setdefault((cell.area, cell.check), []).append(duration)
    medians = {check: statistics.median(found) or 1.0 for check, found in by_check.items()}

    by_op: dict[str, dict[str, list[float]]] = {}
    for cell, duration in shortest.items():
        if cell.op:
            cost = duration / medians[cell.area, cell.check]
            by_op.setdefault(cell.full_op, {}).setdefault(cell.dtype, []).append(cost)
    costs: dict[str, float] = {}
    for op, dtypes in sorted(by_op.items()):
        cost = statistics.median(c for found in dtypes.values() for c in found)
        if cost >= _LISTED:
            costs[op] = _round(cost)
        usual = max(cost, 1.0)
        for dtype, found in sorted(dtypes.items()):
            alone = statistics.median(found)
            if max(alone, usual) >= _GIANT and not usual / _FAR < alone < usual * _FAR:
                costs[f"{op}/{dtype}"] = _round(alone)
    return costs


def _round(cost: float) -> float:
    return float(f"{cost:.2g}")


def render(costs: Mapping[str, float]) -> str:
    """The source of ``op_costs.py``."""
    lines = "".join(f'    "{name}": {cost:g},\n' for name, cost in costs.items())
    return f"{_HEADER}{lines}}}\n"


def main() -> int:
    """The command line; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m conformance.report.op_costs",
        description="Rewrite conformance/harness/op_costs.py from the durations in reports. Exit "
        "code: 0 written, 2 a report cannot be read or the file not be written.",
    )
    parser.add_argument("reports", metavar="REPORT", nargs="+", help="report directories or files")
    reports = parser.parse_args().reports
    target = Path(op_costs.__file__)
    try:
        costs = table([recorded_durations(report).ended for report in reports])
        replace_files(target.parent, {target.name: render(costs).encode("ascii")})
    except (DurationsError, ReportDirError) as error:
        print(f"not written: {error}", file=sys.stderr)
        return 2
    print(f"{target}: {len(costs)} entries")
    return 0


if __name__ == "__main__":
    sys.exit(main())
