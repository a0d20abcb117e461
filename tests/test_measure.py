"""Measuring in the common case is the general rule, in fewer steps."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.harness import compare, measure, tolerance
from conformance.harness.compare import Comparison

DTYPES = (
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex32,
    torch.complex64,
    torch.complex128,
)
VALUES = st.sampled_from((0.0, -0.0, 1.0, -1 / 3, 1e-8, 3e4, -1e-30, math.inf, math.nan, 7.0))


@st.composite
def cases(draw):
    """A dtype, and the same values as a golden, as CPU's with errors, and as a device's."""
    dtype = draw(st.sampled_from(DTYPES))
    count = draw(st.integers(1, 6))
    golden = torch.tensor(draw(st.lists(VALUES, min_size=count, max_size=count)))
    golden = golden.to(torch.complex128 if dtype.is_complex else torch.float64)
    if dtype.is_complex:
        golden = golden * (1 - 0.5j)
    sizes = st.sampled_from((0.0, 1e-9, 1e-4, 0.2, 60.0))
    own, device = (
        torch.tensor(draw(st.lists(sizes, min_size=count, max_size=count)), dtype=torch.float64)
        for _ in range(2)
    )
    expected = (golden * (1 + own)).to(dtype)
    got = expected if draw(st.booleans()) else (golden * (1 + device)).to(dtype)
    return dtype, got, expected, golden if draw(st.booleans()) else None


@given(cases())
@settings(max_examples=400, deadline=None)
def test_figures_and_verdict_are_those_of_the_general_rule(case):
    dtype, got, expected, golden = case
    limit = tolerance.default(dtype)
    results = []
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(2):
            results.append(Comparison())
            compare.compare_values(results[-1], "output", got, expected, golden, limit)
            patch.setattr(compare, "measure", lambda *_: None)
    assert results[0] == results[1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_a_large_result_is_measured_in_pieces(monkeypatch, dtype):
    golden = torch.linspace(-5, 9, 1000, dtype=torch.float64) ** 3
    golden = golden.to(torch.complex128) if dtype.is_complex else golden
    expected = golden.to(dtype).reshape(10, 100)
    got = (golden * (1 + 1e-7)).to(dtype).reshape(10, 100)
    limit = tolerance.default(dtype)
    whole = measure.measure(got, expected, golden.reshape(10, 100), limit)
    monkeypatch.setattr(measure, "_PIECE", 64)
    assert whole is not None and whole.abs > 0
    assert measure.measure(got, expected, golden.reshape(10, 100), limit) == whole
    got[9, 99] *= 2
    assert measure.measure(got, expected, golden.reshape(10, 100), limit) is None


def test_layout_does_not_matter():
    golden = torch.tensor([[1 / 3, 2 / 3], [4 / 3, 5 / 3]], dtype=torch.float64)
    expected = golden.float()
    limit = tolerance.default(torch.float32)
    dense = measure.measure(None, expected, golden, limit)
    strided = expected.t().contiguous().t()
    assert measure.measure(None, strided, golden, limit) == dense
    negative = torch._neg_view(-expected)
    assert measure.measure(None, negative.requires_grad_(), golden, limit) == dense
