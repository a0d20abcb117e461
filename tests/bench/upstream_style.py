"""The suite's work done the way PyTorch's own test files do it, to be compared with in time.

One pytest item for each operator, dtype and property, by ``@ops`` and
``instantiate_device_type_tests`` on torch's ``TestCase``. Samples are made on the device, the
reference is the same call on the CPU with the arguments moved there, ``assertEqual`` judges, and
nothing is shared between items.

torch's test modules are imported before the harness, which has a cheaper way to import them.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

import bench_plugin
import torch
from properties import PROPERTIES
from torch.testing._internal import common_utils
from torch.testing._internal.common_device_type import (
    OpDTypes,
    instantiate_device_type_tests,
    onlyCUDA,
    ops,
)
from torch.testing._internal.common_utils import TestCase
from torch.testing._internal.opinfo import core
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_flatten

from conformance.harness import device as devices
from conformance.harness import plan

_RANDOM = frozenset((
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "uniform",
    "nn.functional.alpha_dropout", "nn.functional.dropout", "nn.functional.dropout2d",
    "nn.functional.dropout3d", "nn.functional.feature_alpha_dropout",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",
    "nn.functional.multi_head_attention_forward", "nn.functional.rrelu",
    "nn.functional.scaled_dot_product_attention", "pca_lowrank", "svd_lowrank",
))  # fmt: skip
_UNINITIALISED = frozenset((
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
))  # fmt: skip
_METADATA_ONLY = _RANDOM | _UNINITIALISED
"""Operators whose values differ from call to call: they are run, and their metadata compared."""


def _planned_ops() -> list[OpInfo]:
    """The suite's operators, claiming for the device what they claim for the CPU."""
    kind = devices.current().type
    planned = {id(p.op): p.op for p in plan.op_dtypes(kind) if p.not_applicable is None}
    for op in planned.values():
        op.dtypesIf[kind] = op.dtypes
        op.decorators = [decorator for decorator in op.decorators if not _skips(decorator)]
    return list(planned.values())


def _skips(decorator: Any) -> bool:
    """Whether it skips the op whatever the test: as slow, or as none for this device."""
    for inner in getattr(decorator, "decorators", [decorator]):
        if inner is onlyCUDA:
            return True
        marks = vars(inner(lambda self: None)) if callable(inner) else {}
        if marks.get("slow_test") or marks.get("__unittest_skip__"):
            return True
    return False


_OPS = _planned_ops()


class Correctness(TestCase):
    """Forward results equal the CPU's."""

    @ops(_OPS, dtypes=OpDTypes.supported)
    def test_correctness(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        """All samples of the op at the dtype."""
        for sample in _samples(op, device, dtype):
            on_cpu = _moved(sample, "cpu")
            actual = op(sample.input, *sample.args, **sample.kwargs)
            expected = op(on_cpu.input, *on_cpu.args, **on_cpu.kwargs)
            if op.name in _METADATA_ONLY:
                self.assertEqual(_metadata(actual), _metadata(expected))
            else:
                actual = sample.output_process_fn_grad(actual)
                expected = on_cpu.output_process_fn_grad(expected)
                self.assertEqual(actual, expected, exact_device=False)


def _samples(op: OpInfo, device: str, dtype: torch.dtype) -> Iterator[SampleInput]:
    """The op's samples on the device; those that cannot be made there are made on the CPU."""
    made = 0
    try:
        for sample in op.sample_inputs(device, dtype):
            made += 1
            yield sample
    except Exception:
        for sample in itertools.islice(op.sample_inputs("cpu", dtype), made, None):
            yield _moved(sample, device)


def _moved(sample: SampleInput, device: str) -> SampleInput:
    moved = sample.transform(lambda leaf: _leaf_moved(leaf, device))
    if "device" in moved.kwargs:
        moved.kwargs = {**moved.kwargs, "device": device}
    return moved


def _leaf_moved(leaf: Any, device: str) -> Any:
    return leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf


def _metadata(outputs: Any) -> list[Any]:
    leaves, _ = tree_flatten(outputs)
    return [(x.shape, x.dtype) if isinstance(x, torch.Tensor) else type(x) for x in leaves]


class _UnseededIter(common_utils.TrackedInputIter):
    """Samples without a seed of their own: ``TestCase.setUp`` seeds once for each item."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "set_seed": False})


def _patch_out_the_wastes() -> None:
    """Neither ``torch.manual_seed`` for each sample nor ``inspect.stack`` for each item."""
    core.TrackedInputIter = _UnseededIter
    common_utils.extract_test_fn = lambda: None


def _instantiate() -> None:
    if "conformance.harness.random" in sys.modules:
        raise RuntimeError("the harness's cheaper seeding of random ops reached upstream's side")
    device = devices.current()
    base = devices.device_test_base(device)
    if bench_plugin.settings.patched:
        _patch_out_the_wastes()
    for key, name in PROPERTIES.items():
        if key not in bench_plugin.settings.properties:
            del globals()[name]
            continue
        instantiate_device_type_tests(
            globals()[name],
            globals(),
            only_for=[base.device_type],
            allow_mps=device.type == "mps",
            allow_xpu=device.type == "xpu",
        )


_instantiate()
