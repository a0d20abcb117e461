"""Stacks of a run are laid to the step that they belong to."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "bench"))

import split

_TEST = (
    "pytest_runtestloop (_pytest/main.py:396);"
    "test_correctness (conformance/opinfo/test_correctness.py:40)"
)


@pytest.mark.parametrize(
    ("frames", "step"),
    [
        ([], "rest of the check"),
        (["reference golden", "sin x"], "reference on the CPU"),
        (["reference golden", "_golden golden"], "reference in higher precision"),
        (["compare compare", "to_cpu compare", "drain device"], "results to the CPU"),
        (["compare compare", "_close compare"], "comparison and error figures"),
        (["call oncall", "call samples"], "operator on the device"),
        (["call oncall", "_carry oncall", "carry transfer"], "arguments to the device"),
        (["sample_inputs samples", "sample_inputs_add x"], "samples"),
        (["call oncall", "_find_and_load <frozen importlib._bootstrap>"], "imports"),
    ],
)
def test_step_of_a_stack_within_a_test(frames, step):
    stack = [_TEST]
    for frame in frames:
        function, _, file = frame.partition(" ")
        path = file if "<" in file else f"conformance/harness/{file}.py"
        stack.append(f"{function} ({path}:1)")
    assert split.step_of(";".join(stack)) == step


def test_sums_and_shares():
    lines = [f"{_TEST} 30", "main (x.py:1);perform_collect (_pytest/main.py:700) 10", "main (x) 60"]
    counts = split.split(lines)
    assert counts == {"rest of the check": 30, "collection": 10, "start, end and reports": 60}
    assert split.table(counts, rate=10).splitlines() == [
        "     6.0 s   60.0%  start, end and reports",
        "     3.0 s   30.0%  rest of the check",
        "     1.0 s   10.0%  collection",
        "    10.0 s  100.0%  all",
    ]
