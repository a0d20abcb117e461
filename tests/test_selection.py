"""Selecting cells by name."""

from __future__ import annotations

import pytest

from conformance.harness.cells import Cell
from conformance.harness.selection import Selection, SelectionError

CELLS = [
    Cell("opinfo", "correctness", "add", "", "float32"),
    Cell("opinfo", "correctness", "add", "", "int64"),
    Cell("opinfo", "correctness", "std", "", "float32"),
    Cell("opinfo", "correctness", "std", "unbiased", "float32"),
    Cell("opinfo", "layout", "nn.functional.relu", "", "bfloat16"),
]


def selected(**options):
    selection = Selection.from_options(**options)
    selection.check(CELLS)
    return [cell for cell in CELLS if selection.wants(cell)]


def test_nothing_given_selects_everything():
    assert selected(op=None, dtype=None) == CELLS


def test_names_and_globs_in_a_list():
    assert selected(op="add, nn.*") == [CELLS[0], CELLS[1], CELLS[4]]


def test_every_option_narrows():
    assert selected(op="add", dtype="int64") == [CELLS[1]]


def test_an_op_is_found_with_and_without_its_variant():
    assert selected(op="std") == [CELLS[2], CELLS[3]]
    assert selected(op="std.unbiased") == [CELLS[3]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"op": "ad"}, "--op: 'ad' matches nothing; nearest: add"),
        ({"dtype": "float"}, "--dtype: 'float' matches nothing; nearest: float32"),
        ({"check": "zzz"}, "--check: 'zzz' matches nothing; there are: correctness, layout"),
        ({"op": "relu"}, "nearest: nn.functional.relu"),
        ({"op": ""}, "--op= names nothing"),
        ({"dtype": " , "}, "names nothing; leave it out"),
        ({"op": "std", "dtype": "int64"}, "no cell matches --op=std --dtype=int64 together"),
    ],
)
def test_what_matches_nothing_is_an_error(options, message):
    with pytest.raises(SelectionError) as error:
        selected(**options)
    assert message in str(error.value)
