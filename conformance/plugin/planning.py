"""The cells of the run: found among the tests, dealt to shards, put in order, resumed.

All that decides which tests run is read once, by the process that the user started, and handed to
the workers of pytest-xdist: they must agree on the tests and their order, whatever happens to
the files meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from conformance.harness import shards
from conformance.harness.cells import Cell
from conformance.harness.selection import Selection, SelectionError
from conformance.harness.shards import Shard
from conformance.report import Durations, Plan

PLANNED = pytest.StashKey[Any]()
"""Of an item: its ``harness.plan.Planned``."""
DURATIONS = pytest.StashKey[Durations]()
"""Of the config: the durations that ``--durations-from`` gives, empty without it."""


def planned_of(item: pytest.Item) -> Any:
    """The ``harness.plan.Planned`` of a test that runs a cell, None for other tests."""
    return item.stash.get(PLANNED, None)


@dataclass(frozen=True)
class Schedule:
    """What decides which of the selected cells this run runs, and in which order."""

    shard: Shard = Shard()  # noqa: RUF009
    durations: Durations = Durations()  # noqa: RUF009
    resumed: bool = False
    done: frozenset[str] = frozenset()
    """Ids of the cells that the journal holds already."""

    def to_workerinput(self) -> dict[str, Any]:
        """The schedule as pytest-xdist can send it."""
        return {
            "shard": str(self.shard),
            "seconds": dict(self.durations.seconds),
            "ended": dict(self.durations.ended),
            "resumed": self.resumed,
            "done": list(self.done),
        }

    @classmethod
    def from_workerinput(cls, values: dict[str, Any]) -> Schedule:
        """What :meth:`to_workerinput` gave."""
        return cls(
            Shard.parse(values["shard"]),
            Durations(values["seconds"], values["ended"]),
            values["resumed"],
            frozenset(values["done"]),
        )


class Planning:
    """The hooks that turn collected tests into the plan and into what is left to run of it."""

    def __init__(self, config: pytest.Config, schedule: Schedule, selection: Selection) -> None:
        self._config, self.schedule, self._selection = config, schedule, selection
        self.plan: Plan | None = None
        """What is planned; None before the tests are collected and where none is a cell's."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Hand the schedule to a worker."""
        node.workerinput["conformance"] = self.schedule.to_workerinput()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        """Find the cell of each test; after every other plugin, leave what is to run, in order."""
        for item in items:
            owner = getattr(item.parent, "obj", None)
            test = getattr(owner, getattr(item, "originalname", item.name), None)
            planned = getattr(test, "planned", None)
            if planned is not None:
                item.stash[PLANNED] = planned
        self._check_selection()
        yield
        cells = {item.stash[PLANNED].cell: item for item in items if PLANNED in item.stash}
        if cells:
            self._keep(items, self._schedule(cells))

    def _check_selection(self) -> None:
        if not self._selection or hasattr(self._config, "workerinput"):
            return
        from conformance.harness import plan

        try:
            self._selection.check(plan.offered())
        except SelectionError as error:
            raise pytest.UsageError(str(error)) from error

    def _schedule(self, items: dict[Cell, pytest.Item]) -> list[pytest.Item]:
        """Make the plan; gives the items to run in their order."""
        schedule = self.schedule
        seconds = schedule.durations.seconds
        mine = set(items)
        parts = [mine]
        if schedule.shard.count > 1:
            parts = [set(part) for part in shards.split(items, schedule.shard.count, seconds)]
            mine = parts[schedule.shard.index - 1]
        self.plan = Plan(
            [{item.nodeid: c for c, item in items.items() if c in part} for part in parts],
            schedule.shard,
        )
        left = [cell for cell in items if cell in mine and cell.id not in schedule.done]
        workers = getattr(self._config, "workerinput", {}).get("workercount", 1)
        return [items[cell] for cell in shards.order(left, workers, seconds)]

    def _keep(self, items: list[pytest.Item], kept: list[pytest.Item]) -> None:
        """Leave the items that are kept, and after them those that are no cells."""
        chosen = set(kept)
        dropped = [item for item in items if PLANNED in item.stash and item not in chosen]
        items[:] = kept + [item for item in items if PLANNED not in item.stash]
        if dropped:
            self._config.hook.pytest_deselected(items=dropped)
