"""Shards and order: groups whole, balanced, the same everywhere, expensive groups first."""

from __future__ import annotations

import itertools
import random

import pytest

from conformance.harness.cells import Cell
from conformance.harness.shards import (
    Shard,
    ShardError,
    estimate,
    group_of,
    order,
    relative_cost,
    split,
)

CHECKS = ("correctness", "layouts", "out")


def plan(ops=40, dtypes=("float32", "int64"), checks=CHECKS):
    return [
        Cell("opinfo", check, f"op{i}", "", dtype)
        for check in checks
        for i in range(ops)
        for dtype in dtypes
    ]


def durations(cells, giant=30.0):
    """Seconds like those of a real run: most cells alike, a few a hundred times as long."""
    rng = random.Random(5)
    seconds = {}
    for cell in cells:
        seconds[cell.id] = rng.uniform(0.005, 0.02)
        if cell.op in ("op3", "op17"):
            seconds[cell.id] = giant * rng.uniform(0.5, 1.0)
    return seconds


@pytest.mark.parametrize(
    "text", ["0/4", "5/4", "x", "1", "1/0", "-1/4", "1/4/2", "", "1.5/2", "\u0661/\u0662"]
)
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(ShardError, match=r"is not I/N, .* such as 1/4"):
        Shard.parse(text)


def test_shards_are_counted_from_one():
    assert Shard.parse("4/4") == (4, 4)
    assert str(Shard.parse("2/13")) == "2/13"


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_shards_are_disjoint_and_together_the_plan(count):
    cells = plan()
    parts = split(cells, count, durations(cells))
    assert len(parts) == count
    assert sorted(cell for part in parts for cell in part) == sorted(cells)


def test_a_group_is_never_divided():
    cells = plan()
    parts = split(cells, 5, durations(cells))
    holders = [{group_of(cell) for cell in part} for part in parts]
    assert sum(map(len, holders)) == len({group_of(cell) for cell in cells})


def test_the_order_of_collection_does_not_matter():
    cells = plan()
    seconds = durations(cells)
    shuffled = random.Random(1).sample(cells, len(cells))
    assert split(shuffled, 4, seconds) == split(cells, 4, seconds)
    assert order(shuffled, 2, seconds) == order(cells, 2, seconds)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_recorded_durations_balance(count):
    cells = plan(ops=200)
    seconds = durations(cells, giant=0.5)
    loads = [sum(seconds[cell.id] for cell in part) for part in split(cells, count, seconds)]
    assert max(loads) <= 1.1 * sum(loads) / count


def test_more_shards_than_groups_leave_some_empty():
    parts = split(plan(ops=1, dtypes=("float32",)), 3, {})
    assert sorted(map(len, parts)) == [0, 0, 3]


def test_cells_without_an_operator_share_nothing():
    one, other = (Cell("streams", check, "", "", "") for check in ("query", "order"))
    assert group_of(one) != group_of(other)
    assert sorted(map(len, split([one, other], 2, {}))) == [1, 1]


def test_the_table_tells_what_is_expensive_without_any_record(monkeypatch):
    monkeypatch.setattr("conformance.harness.shards.OP_COSTS", {"op0": 30.0})
    parts = split(plan(ops=31, dtypes=("float32",), checks=CHECKS[:1]), 2, {})
    assert sorted(map(len, parts)) == [1, 30]


def test_a_dtype_of_its_own_cost_is_told_from_its_operator(monkeypatch):
    monkeypatch.setattr("conformance.harness.shards.OP_COSTS", {"op1": 20.0, "op1/float16": 90.0})
    costs = [relative_cost(Cell("a", "c", "op1", "", dtype)) for dtype in ("float16", "float32")]
    assert costs == [90.0, 20.0]


def test_cells_without_a_record_are_estimated_from_those_of_their_check(monkeypatch):
    monkeypatch.setattr("conformance.harness.shards.OP_COSTS", {"op1": 20.0})
    cells = plan(ops=3, dtypes=("float32",), checks=("correctness", "layouts"))
    recorded = {
        "opinfo/correctness/op0//float32": 0.25,
        "opinfo/layouts/op0//float32": 2.0,
        "opinfo/layouts/op1//float32": 7.0,
    }
    costs = {cell.id: cost for cell, cost in estimate(cells, recorded).items()}
    assert costs["opinfo/layouts/op1//float32"] == 7.0
    assert costs["opinfo/correctness/op1//float32"] == 20 * 0.25
    assert costs["opinfo/correctness/op2//float32"] == 0.25
    assert costs["opinfo/layouts/op2//float32"] == pytest.approx((2.0 + 7.0 / 20) / 2)
    # a check that no record is of goes by all records
    new = Cell("opinfo", "gradients", "op2", "", "float32")
    assert estimate([*cells, new], recorded)[new] == 0.35


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_order_keeps_groups_together(workers):
    cells = plan()
    ordered = order(cells, workers, durations(cells))
    assert sorted(ordered) == sorted(cells)
    changes = sum(group_of(a) != group_of(b) for a, b in itertools.pairwise(ordered))
    groups = len({group_of(cell) for cell in cells})
    assert groups - 1 <= changes <= groups - 1 + workers  # cut where the workers' stretches meet


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_each_worker_starts_with_its_share_of_the_expensive_groups(workers):
    cells = plan()
    seconds = durations(cells)
    ordered = order(cells, workers, seconds)
    giants = {cell for cell in cells if cell.op in ("op3", "op17")}
    bounds = [len(cells) * i // workers for i in range(workers + 1)]
    share = len(giants) // workers
    for start in bounds[:-1]:
        assert set(ordered[start : start + share]) <= giants


def test_nothing_to_order():
    assert order([], 2, {}) == []
