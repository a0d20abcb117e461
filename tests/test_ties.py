"""Indices among equal values."""

from __future__ import annotations

import torch
from torch.testing._internal.opinfo.core import SampleInput

from conformance.harness.ties import choose_among_equals, equally_right

TIED = torch.tensor([[3.0, 1.0, 3.0], [2.0, 2.0, 2.0]])


def judged(op, source, actual, expected, **kwargs):
    return equally_right(op, SampleInput(source, kwargs=kwargs), actual, expected)


def test_another_of_the_largest_is_right():
    expected = TIED.argmax(1)
    assert judged("argmax", TIED, torch.tensor([2, 1]), expected, dim=1)
    assert not judged("argmax", TIED, torch.tensor([1, 1]), expected, dim=1)
    assert not judged("argmax", TIED, torch.tensor([2, 7]), expected, dim=1)
    assert judged("argmax", TIED, torch.tensor(2), torch.tensor(0))


def test_values_leave_no_choice():
    values, indices = TIED.max(1)
    other = torch.tensor([2, 2])
    assert judged("max", TIED, (values, other), (values, indices), dim=1)
    assert not judged("max", TIED, (values + 1, other), (values, indices), dim=1)
    integers = torch.tensor([0, 1, 1])
    assert not judged("max", integers, torch.tensor(0), integers.max())


def test_a_sort_is_a_permutation():
    values, indices = TIED.sort(dim=1, stable=True)
    other = torch.tensor([[1, 2, 0], [2, 0, 1]])
    assert judged("sort", TIED, (values, other), (values, indices), dim=1)
    assert judged("argsort", TIED, other, indices, dim=1)
    assert not judged("argsort", TIED, torch.tensor([[1, 2, 2], [2, 0, 1]]), indices, dim=1)
    assert not judged("argsort", TIED, torch.tensor([[0, 1, 2], [2, 0, 1]]), indices, dim=1)


def test_a_stable_sort_leaves_no_choice():
    values, indices = TIED.sort(dim=1, stable=True)
    other = torch.tensor([[1, 2, 0], [2, 0, 1]])
    assert not judged("sort", TIED, (values, other), (values, indices), dim=1, stable=True)


def test_pooling_over_a_plateau():
    source = torch.ones(1, 4, 4)
    values, indices = torch.nn.functional.max_pool2d(source, 2, return_indices=True)
    name = "nn.functional.max_pool2d"
    assert judged(name, source, (values, indices + 1), (values, indices))
    source[0, 0, 1] = 0
    assert not judged(name, source, (values, indices + 1), (values, indices))
    assert not judged(name, source, values + 1, values)


def test_other_operators_have_no_ties():
    assert choose_among_equals("topk") and choose_among_equals("nn.functional.max_pool3d")
    assert not choose_among_equals("searchsorted") and not choose_among_equals("add")
