"""Calls on the device under test: which of them the backend declares to have run on the CPU."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from conformance.harness.oncall import OnDevice


class Op:
    """An op that runs on the CPU, by its backend's account, where its input has zero elements."""

    name = "neg"

    def __init__(self, counts):
        self.counts, self.calls = counts, 0

    def __call__(self, tensor):
        self.calls += 1
        if tensor.numel() == 0:
            self.counts["aten::neg"] = self.counts.get("aten::neg", 0) + 1
        return tensor.neg()


@pytest.fixture
def counts():
    return {}


@pytest.fixture
def on_device(counts):
    module = SimpleNamespace(fallback_calls=lambda: counts)
    return OnDevice(
        SimpleNamespace(
            type="cuda", torch_device=torch.device("cpu"), module=module, drain=lambda: None
        )
    )


SOME, NONE = SampleInput(torch.ones(2)), SampleInput(torch.ones(0))


@pytest.mark.parametrize(("samples", "falls_back"), [([SOME, NONE], True), ([SOME, SOME], False)])
def test_a_declared_fallback_is_found_among_the_calls(counts, on_device, samples, falls_back):
    op = Op(counts)
    for sample in samples:
        on_device.call(op, sample)
    assert on_device.declares_fallback(op, samples) is falls_back


def test_a_fallback_outside_of_the_calls_is_not_the_operators(counts, on_device):
    op = Op(counts)
    on_device.call(op, SOME)
    counts["aten::copy_"] = 1  # what reading the result may do
    assert not on_device.declares_fallback(op, [SOME])


def test_calls_are_repeated_only_where_the_account_has_grown(counts, on_device):
    op = Op(counts)
    on_device.call(op, SOME)
    assert not on_device.declares_fallback(op, [SOME]) and op.calls == 1
