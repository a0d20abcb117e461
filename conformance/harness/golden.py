"""The right answer: what CPU returns, at the same dtype and at higher precision.

The golden is the same call with every floating-point tensor, dtype argument and the default dtype
at float64 (complex128 for complex): upcasting is exact, so it is the answer to the same question.
CPU is exact for integers and bools already, and at float64 there is nothing higher: there CPU at
the same dtype is the reference. An operator that refuses the higher precision has no golden.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from conformance.harness import random
from conformance.harness.samples import call, parcel
from conformance.harness.transfer import Carrier
from conformance.harness.tree import tensors

_CPU = torch.device("cpu")
_HIGHER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


@dataclass
class Reference:
    """What CPU did with one sample."""

    outputs: Any = None
    bases: list[torch.Tensor] = field(default_factory=list)
    """The arguments' storages after the call (see Carrier.bases)."""
    drew: bool = False
    """Whether the call drew random numbers: its values are one outcome of many."""
    golden: Any = None
    """The outputs at higher precision, or None."""


def reference(op: OpInfo, sample: SampleInput, dtype: torch.dtype) -> Reference:
    """Run the sample on the CPU at ``dtype`` and, where it means anything, at higher precision.

    Raises what the operator raises on the CPU at ``dtype``.
    """
    carrier = Carrier(_CPU)
    args = carrier.carry(parcel(sample))
    with random.watch_draws() as watch:
        outputs = call(op, args)
    result = Reference(outputs, carrier.bases, watch.drew)
    if not result.drew:
        result.golden = _golden(op, sample, dtype, outputs)
    return result


def _golden(op: OpInfo, sample: SampleInput, dtype: torch.dtype, outputs: Any) -> Any:
    if dtype in (torch.float64, torch.complex128) or not _any_inexact(outputs):
        return None
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        with random.keep_cpu_state():
            return call(op, Carrier(_CPU, _HIGHER).carry(parcel(sample)))
    except Exception:
        return None
    finally:
        torch.set_default_dtype(default)


def _any_inexact(outputs: Any) -> bool:
    return any(t.dtype.is_floating_point or t.dtype.is_complex for t in tensors(outputs))
