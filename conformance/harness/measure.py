"""Errors of values: how large they are, absolutely, relatively and in units in the last place.

:func:`measure` is for the common case: everything finite, and right beyond doubt. The rule of
``compare`` has many sides, and nearly every result needs none of them: it holds no NaN and no
infinity, and is within the tolerance of CPU at the same dtype. Its figures follow from a few
operations on arrays, done piece by piece so that a large result stays in a core's cache. Whatever
is not so plain is left to ``compare``, which gives the same figures where both apply.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy
import torch

from conformance.harness import tolerance as tolerances
from conformance.harness.figures import Figures
from conformance.harness.tolerance import Tolerance

PLAUSIBLE = 256.0
"""CPU's own error must be within this many tolerances for the golden's side to count..."""
PLAUSIBLE_SHARE = 0.1
"""... and within this share of the golden's largest magnitude."""

_PIECE = 1 << 15
"""Elements that are measured at a time."""


def measure(
    got: torch.Tensor | None,
    expected: torch.Tensor,
    golden: torch.Tensor | None,
    limit: Tolerance,
) -> Figures | None:
    """The figures of a right value, or None where the case is not the common one.

    Takes dense CPU tensors of one shape, floating-point or complex, with at least one element.
    ``got`` is None where it is bit-equal to ``expected``; then there must be a golden.
    """
    is_complex = expected.is_complex()
    wide = torch.complex128 if is_complex else torch.float64
    if golden is not None and golden.dtype is not wide:
        return None
    values = _Values(got, expected, golden, numpy.complex128 if is_complex else numpy.float64)
    starts = range(0, expected.numel(), _PIECE)
    size = worst = own = 0.0
    with numpy.errstate(all="ignore"):
        for start in starts:
            errors = values.errors(start, limit)
            if errors is None:
                return None
            size, worst = max(size, errors.size), max(worst, _greatest(errors.device))
            own = max(own, errors.largest_own)
        if golden is not None and not is_plausible(own, size, limit):
            return None
        figures = Figures(worst, 0.0, 0.0, None if golden is None else own)
        for start in starts if worst else ():
            errors = errors if len(starts) == 1 else values.errors(start, limit)
            rel, ulp = relative_errors(errors.device, errors.magnitude, size, expected.dtype)
            figures.rel, figures.ulp = max(figures.rel, rel), max(figures.ulp, ulp)
    return figures


class _Errors(NamedTuple):
    """Distances of some values to what is right."""

    magnitude: numpy.ndarray
    size: float
    """The largest magnitude."""
    device: numpy.ndarray
    largest_own: float
    """CPU's largest error."""


class _Values:
    """The values of three tensors, of which the first and the last may be missing."""

    def __init__(
        self,
        got: torch.Tensor | None,
        expected: torch.Tensor,
        golden: torch.Tensor | None,
        wide: type[numpy.generic],
    ) -> None:
        self._got = None if got is None else _flat(got)
        self._expected = _flat(expected)
        self._golden = None if golden is None else _flat(golden)
        self._wide = wide

    def errors(self, start: int, limit: Tolerance) -> _Errors | None:
        """The errors of the piece from ``start``; None if not finite or not within tolerance."""
        piece, wide = slice(start, start + _PIECE), self._wide
        e = self._expected[piece].astype(wide, copy=False)
        right = e if self._golden is None else self._golden[piece]
        magnitude = numpy.abs(right)
        own = None if right is e else numpy.abs(e - right)
        # The maximum of absolute values is NaN or infinite if any of them is.
        size, largest_own = _greatest(magnitude), 0.0 if own is None else _greatest(own)
        if not math.isfinite(size + largest_own):
            return None
        if self._got is None:
            return _Errors(magnitude, size, own, largest_own)
        got = self._got[piece].astype(wide, copy=False)
        distance = numpy.abs(got - e)
        if not (distance <= limit.atol + limit.rtol * numpy.abs(e)).all():
            return None
        error = distance if right is e else numpy.abs(got - right)
        return _Errors(magnitude, size, error, largest_own)


def _flat(tensor: torch.Tensor) -> numpy.ndarray:
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    if tensor.dtype not in _NUMPY:
        tensor = tensor.to(torch.complex64 if tensor.is_complex() else torch.float32)
    return tensor.numpy().reshape(-1)


_NUMPY = frozenset((torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128))
"""The dtypes that numpy has, too. Those that it lacks are exact in one of them."""


def _greatest(values: numpy.ndarray) -> float:
    return float(numpy.maximum.reduce(values))


def is_plausible(own: float, size: float, limit: Tolerance) -> bool:
    """Whether CPU's own error can be rounding, and the golden the answer to the same question.

    ``own`` is CPU's largest error, ``size`` the golden's largest magnitude.
    """
    tolerated = limit.atol + limit.rtol * size
    return own <= min(PLAUSIBLE * tolerated, limit.atol + PLAUSIBLE_SHARE * size)


def relative_errors(
    error: numpy.ndarray, magnitude: numpy.ndarray, size: float, dtype: torch.dtype
) -> tuple[float, float]:
    """The largest error relative to the right value, and the largest in units in the last place.

    ``size`` is the largest magnitude of the whole result. Below the absolute tolerance, or next to
    a large value of the same result, a tiny value is as good as zero: what is relative to it says
    nothing.
    """
    floor = max(tolerances.default(dtype).atol, _precision(dtype)[0] * size)
    magnitude = numpy.maximum(magnitude, floor)
    return _greatest(error / magnitude), _greatest(error / spacing(magnitude, dtype))


def spacing(size: numpy.ndarray, dtype: torch.dtype) -> numpy.ndarray:
    """The distance between neighbouring numbers of ``dtype`` at each magnitude: one ULP there."""
    eps, tiny = _precision(dtype)
    _, exponent = numpy.frexp(size)
    return numpy.maximum(numpy.ldexp(eps, exponent - 1), tiny * eps)


@functools.cache
def _precision(dtype: torch.dtype) -> tuple[float, float]:
    info = torch.finfo(dtype)
    return info.eps, info.tiny
