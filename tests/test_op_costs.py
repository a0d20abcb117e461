"""The table of what operators cost: how it is made, and that the shipped one is of this OpInfo."""

from __future__ import annotations

from torch.testing._internal.common_methods_invocations import op_db

from conformance.harness.op_costs import OP_COSTS
from conformance.report.op_costs import render, table

DTYPES = ("float32", "float16", "int64")


def report(costs, checks=("correctness",), unit=0.01):
    """Seconds of a run in which most operators cost ``unit``, and a few a multiple of it."""
    multiples = dict.fromkeys((f"op{i}" for i in range(50)), 1.0) | costs
    return {
        f"opinfo/{check}/{op}//{dtype}": unit * multiples.get(f"{op}/{dtype}", multiples.get(op))
        for check in checks
        for op in multiples
        if "/" not in op
        for dtype in DTYPES
    }


def test_only_what_is_far_above_the_median_is_listed():
    assert table([report({"dear": 40.0, "large": 6.0})]) == {"dear": 40.0}


def test_costs_are_relative():
    assert table([report({"dear": 40.0}, unit=7.0)]) == {"dear": 40.0}


def test_checks_of_different_length_count_alike():
    seconds = report({"dear": 40.0}) | report({"dear": 80.0}, ("gradients",), unit=0.5)
    assert table([seconds]) == {"dear": 60.0}


def test_a_giant_is_listed_by_dtype_where_one_is_far_from_the_others():
    found = table([report({"giant": 300.0, "giant/float16": 900.0})])
    assert found == {"giant": 300.0, "giant/float16": 900.0}


def test_a_disturbed_run_does_not_count_where_another_was_quiet():
    disturbed = report({"op7": 500.0})
    assert table([disturbed, report({})]) == {}


def test_the_source_holds_the_table():
    names = {}
    exec(render({"dear": 40.0, "nn.functional.giant/float16": 1900.0}), names)
    assert names["OP_COSTS"] == {"dear": 40.0, "nn.functional.giant/float16": 1900.0}


def test_the_shipped_table_is_small_and_names_operators_that_there_are():
    known = {op.full_name for op in op_db}
    assert {name.partition("/")[0] for name in OP_COSTS} <= known
    assert 0 < len(OP_COSTS) <= 100
    assert all(cost > 1 for cost in OP_COSTS.values())
