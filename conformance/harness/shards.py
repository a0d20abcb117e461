"""Which cells belong together, what they cost, and how they are dealt to shards and workers.

The unit is a group: all cells of an (op, variant, dtype), whatever their area and check, since they
share samples and goldens. Groups are dealt greedily, the most expensive first, each to whoever has
least so far. The result depends on the cells and the recorded durations alone, so that every
machine deals alike.
"""

from __future__ import annotations

import heapq
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from conformance.harness.cells import Cell
from conformance.harness.op_costs import OP_COSTS

_Group = tuple[str, ...]


class ShardError(ValueError):
    """The text of ``--shard`` is not I/N. The message says what is."""


class Shard(NamedTuple):
    """One of ``count`` parts of the plan; ``index`` starts at 1."""

    index: int = 1
    count: int = 1

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """The shard that ``I/N`` names. Raises ShardError."""
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise ShardError(
                f"--shard: {text!r} is not I/N, the number of the part and the number of parts, "
                "with I from 1 to N, such as 1/4"
            )
        return cls(int(match[1]), int(match[2]))


def group_of(cell: Cell) -> _Group:
    """What the cell shares samples and goldens with; a cell without op is a group of its own."""
    if cell.op:
        return cell.op, cell.variant, cell.dtype
    return cell.area, cell.check, cell.op, cell.variant, cell.dtype


def estimate(cells: Iterable[Cell], recorded: Mapping[str, float]) -> dict[Cell, float]:
    """What each cell costs: its recorded seconds, else what the op costs in ``OP_COSTS``.

    ``recorded`` has seconds by cell id. The table is relative; it is scaled by the median of what
    the recorded cells of the same check took, or all recorded cells where the check has none.
    Without any recorded cell the unit is arbitrary.
    """
    cells = list(cells)
    ratios: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        if cell.id in recorded:
            ratios.setdefault((cell.area, cell.check), []).append(
                recorded[cell.id] / relative_cost(cell)
            )
    scales = {check: statistics.median(found) for check, found in ratios.items()}
    every = [ratio for found in ratios.values() for ratio in found]
    otherwise = statistics.median(every) if every else 1.0
    return {
        cell: recorded[cell.id]
        if cell.id in recorded
        else relative_cost(cell) * scales.get((cell.area, cell.check), otherwise)
        for cell in cells
    }


def relative_cost(cell: Cell) -> float:
    """The cell's cost by the shipped table, in units of a median cell."""
    name = cell.full_op
    return OP_COSTS.get(f"{name}/{cell.dtype}") or OP_COSTS.get(name) or 1.0


def split(cells: Iterable[Cell], count: int, recorded: Mapping[str, float]) -> list[list[Cell]]:
    """The cells in ``count`` parts of about the same cost; groups stay whole.

    A part may be empty where there are fewer groups than parts.
    """
    parts: list[list[Cell]] = [[] for _ in range(count)]
    loads = [(0.0, index) for index in range(count)]
    for group, cost in _dearest_first(cells, recorded):
        load, index = heapq.heappop(loads)
        parts[index] += group
        heapq.heappush(loads, (load + cost, index))
    return parts


def order(cells: Iterable[Cell], workers: int, recorded: Mapping[str, float]) -> list[Cell]:
    """The cells in the order in which to run them, groups together and the expensive ones first.

    pytest-xdist's ``worksteal`` starts by giving each worker an equal number of consecutive tests,
    and moves tests from the end of one worker's list to another that has none left. So
    each of these stretches gets its share of the expensive groups, at its beginning. Where the
    last groups do not fit a stretch they are cut in two.
    """
    cells = list(cells)
    rooms = [(len(cells) + index) // workers for index in range(workers)]
    stretches: list[list[Cell]] = [[] for _ in rooms]
    loads = [0.0] * workers
    for group, cost in _dearest_first(cells, recorded):
        fitting = [i for i in range(workers) if rooms[i] - len(stretches[i]) >= len(group)]
        if fitting:
            chosen = min(fitting, key=lambda i: (loads[i], i))
            stretches[chosen] += group
            loads[chosen] += cost
            continue
        for index in range(workers):
            room = rooms[index] - len(stretches[index])
            stretches[index] += group[:room]
            del group[:room]
    return [cell for stretch in stretches for cell in stretch]


def _dearest_first(
    cells: Iterable[Cell], recorded: Mapping[str, float]
) -> Sequence[tuple[list[Cell], float]]:
    """Groups with their costs, the most expensive first, and by name where costs are equal."""
    groups: dict[_Group, list[Cell]] = {}
    costs = estimate(cells, recorded)
    for cell in sorted(costs):
        groups.setdefault(group_of(cell), []).append(cell)
    priced = [(group, math.fsum(map(costs.__getitem__, group))) for group in groups.values()]
    return sorted(priced, key=lambda pair: (-pair[1], pair[0]))
