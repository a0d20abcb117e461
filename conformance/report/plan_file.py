"""``plan.json``: every planned cell of a run, by shard, with pytest's name of its test.

All of the plan stands in the folder of each shard, so that what a missing shard should have run can
be named without it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.harness.cells import Cell
from conformance.harness.shards import Shard
from conformance.report.text import parse_json
from conformance.report.write import replace_files

NAME = "plan.json"


class PlanError(Exception):
    """A plan.json that cannot be read; the message says which and why."""


@dataclass(frozen=True)
class Plan:
    """Cells by nodeid for each shard, and which of the shards this is the plan of."""

    shards: Sequence[Mapping[str, Cell]]
    shard: Shard = Shard()  # noqa: RUF009

    @property
    def cells(self) -> Mapping[str, Cell]:
        """The cells of this shard, by nodeid."""
        return self.shards[self.shard.index - 1]


def write_plan(report_dir: str | os.PathLike[str], plan: Plan) -> None:
    """Write plan.json, whole or not at all. Raises ReportDirError."""
    replace_files(report_dir, {NAME: render_plan(plan)})


def render_plan(plan: Plan) -> bytes:
    """plan.json: one cell a line."""
    values = {
        "shard": plan.shard.index,
        "shards": [{nodeid: cell.id for nodeid, cell in cells.items()} for cells in plan.shards],
    }
    return (json.dumps(values, indent=0) + "\n").encode("ascii")


def read_plan(report_dir: str | os.PathLike[str]) -> Plan:
    """The plan in a report directory. Raises :class:`PlanError`."""
    path = Path(report_dir, NAME)
    try:
        values = parse_json(path.read_bytes())
        shards = [
            {nodeid: Cell.from_id(cell) for nodeid, cell in cells.items()}
            for cells in values["shards"]
        ]
        shard = Shard.parse(f"{values['shard']}/{len(shards)}")
    except OSError as error:
        raise PlanError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise PlanError(f"{path} is not a whole plan ({error}); run again") from error
    return Plan(shards, shard)
