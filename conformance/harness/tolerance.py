"""How far a right value may be from the reference, as OpInfo declares it."""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
from torch.testing._comparison import default_tolerances
from torch.testing._internal.common_device_type import precisionOverride, toleranceOverride
from torch.testing._internal.opinfo.core import OpInfo


class Tolerance(NamedTuple):
    """A value is close when ``|value - reference| <= atol + rtol * |reference|``."""

    rtol: float
    atol: float


_EXACT = Tolerance(0.0, 0.0)

# Operators for which torch itself picks less precise intermediates off the CPU: that side of the
# comparison is not the backend's doing. linear_cross_entropy keeps its logits (up to 16 in OpInfo's
# samples) in the input dtype off the CPU, see _AUTO_DEFAULTS in
# torch/nn/modules/linear_cross_entropy_options.py; granted is one ULP of a logit.
_PRECISION_BY_DEVICE = {
    "nn.functional.linear_cross_entropy": {
        torch.float16: Tolerance(0.0, 2.0**-7),
        torch.bfloat16: Tolerance(0.0, 2.0**-4),
    },
}

# Tests of upstream's TestCommon that compare two right computations of one op.
_COMPARING_TESTS = ("test_compare_cpu", "test_noncontiguous_samples", "test_variant_consistency")


@functools.cache
def default(dtype: torch.dtype) -> Tolerance:
    """torch.testing's tolerance for the dtype; exact where it has none."""
    if not (dtype.is_floating_point or dtype.is_complex):
        return _EXACT
    try:
        return Tolerance(*default_tolerances(dtype))
    except (KeyError, TypeError, ValueError):
        return _EXACT


def for_op(op: OpInfo, dtype: torch.dtype, device_type: str) -> Tolerance:
    """The widest of torch.testing's default and what OpInfo grants the op at that dtype.

    Overrides count that apply to tests comparing two computations, for this device or for CUDA,
    the accelerator that OpInfo is written against.
    """
    rtol, atol = default(dtype)
    if device_type != "cpu":
        known = _PRECISION_BY_DEVICE.get(op.name, {}).get(dtype, _EXACT)
        rtol, atol = max(rtol, known.rtol), max(atol, known.atol)
    for device in {device_type, "cuda"}:
        for test in _COMPARING_TESTS:
            for decorator in op.get_decorators("TestCommon", test, device, dtype, {}):
                if isinstance(decorator, toleranceOverride) and dtype in decorator.d:
                    granted = decorator.d[dtype]
                    rtol, atol = max(rtol, granted.rtol), max(atol, granted.atol)
                elif isinstance(decorator, precisionOverride) and dtype in decorator.d:
                    atol = max(atol, decorator.d[dtype])
    return Tolerance(rtol, atol)
