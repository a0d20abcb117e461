"""Is what the device returned right?

Values follow a two-sided rule. A floating-point value is right when it is within OpInfo's tolerance
of CPU at the same dtype or of the golden (CPU at higher precision), or when its error against the
golden is at most :data:`SLACK` times the largest error that CPU itself makes at that dtype. The
second side keeps ill-conditioned results at low precision from failing a backend that rounds
differently; it is in force only while CPU's own error is itself plausible (``measure.PLAUSIBLE``),
so an operator whose meaning depends on the dtype cannot make the rule void. Integers and bools are
exact.

Metadata is compared too: kind, shape, dtype, device with index, and strides where eager CPU and
Meta agree on them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from conformance.harness import tolerance as tolerances
from conformance.harness.figures import Figures
from conformance.harness.measure import is_plausible, measure, relative_errors
from conformance.harness.tolerance import Tolerance
from conformance.harness.tree import leaves

SLACK = 4.0
"""How many times CPU's own error a device may be off."""


@dataclass
class Problem:
    """One thing that is wrong. ``kind`` groups problems of the same sort in reports."""

    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


@dataclass
class Comparison:
    """The result of comparing outputs."""

    problems: list[Problem] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)


def compare(
    actual: Any,
    expected: Any,
    *,
    device: torch.device,
    tolerance: Tolerance,
    golden: Any = None,
    meta: Callable[[], Any] | None = None,
    values: bool = True,
) -> Comparison:
    """Compare what the device returned with what CPU returned.

    ``actual`` and ``expected`` are outputs of one call: tensors, Python values, None, or nestings
    of them. ``golden`` is the same call at higher precision, or None. ``meta`` computes the same
    call on Meta tensors; it is called only when strides differ, to learn whether torch insists on
    them.
    ``values=False`` compares metadata alone.
    Reading ``actual`` back may raise what the device's queued work raised.
    """
    result = Comparison()
    got, want = _flat(actual), _flat(expected)
    if len(got) != len(want) or not _same_container(actual, expected):
        result.problems.append(
            Problem("wrong structure", f"got {_outline(actual)}, expected {_outline(expected)}")
        )
        return result
    high = _matching(golden, want)
    where = "output"
    for index, (a, e, g) in enumerate(zip(got, want, high, strict=True)):
        if len(want) > 1:
            where = f"output {index}"
        if isinstance(e, torch.Tensor):
            if _same_metadata(result, where, a, e, device):
                got_cpu = to_cpu(a)  # also raises what is pending, whether or not values count
                if values:
                    _compare_dense(result, where, got_cpu, e, g, tolerance)
            if isinstance(a, torch.Tensor) and meta is not None:
                _compare_strides(result, where, index, a, e, meta)
        elif values or type(a) is not type(e):
            _compare_value(result, where, a, e, tolerance)
    return result


def bit_equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two CPU tensors of one shape and dtype hold the same values, NaNs included."""
    if a.dtype.is_complex:  # torch.equal has no complex32
        a, b = (torch.view_as_real(t.resolve_conj().resolve_neg()) for t in (a, b))
    if torch.equal(a, b):
        return True
    bits = _BITS.get(a.element_size())
    if not a.dtype.is_floating_point or bits is None:
        return False
    return torch.equal(a.resolve_neg().view(bits), b.resolve_neg().view(bits))


_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def to_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's values on the CPU; waits for the device, and raises its pending errors."""
    return (tensor.detach() if tensor.requires_grad else tensor).cpu()


def _flat(value: Any) -> list[Any]:
    return [value] if isinstance(value, torch.Tensor) else list(leaves(value))


def _same_container(a: Any, b: Any) -> bool:
    """Whether both are sequences, both mappings, or both leaves. Kinds of sequence may differ."""
    return _container(a) == _container(b)


def _container(value: Any) -> str:
    if isinstance(value, torch.Size):
        return "leaf"
    if isinstance(value, (tuple, list)):
        return "sequence"
    return "mapping" if isinstance(value, dict) else "leaf"


def _outline(value: Any) -> str:
    if _container(value) == "leaf":
        if isinstance(value, torch.Tensor):
            return f"a tensor of shape {list(value.shape)}"
        return repr(value)
    return f"{type(value).__name__} of {len(value)}"


def _matching(golden: Any, want: list[Any]) -> list[Any]:
    """The golden's leaves, None wherever it has no tensor of the expected shape."""
    high = _flat(golden) if golden is not None else []
    if len(high) != len(want):
        return [None] * len(want)
    return [
        g
        if isinstance(g, torch.Tensor) and isinstance(e, torch.Tensor) and g.shape == e.shape
        else None
        for g, e in zip(high, want, strict=True)
    ]


def _compare_value(
    result: Comparison, where: str, got: Any, want: Any, tolerance: Tolerance
) -> None:
    if isinstance(want, (float, complex)) and type(got) is type(want):
        a, e = torch.tensor(got), torch.tensor(want)
        if torch.allclose(a, e, rtol=tolerance.rtol, atol=tolerance.atol, equal_nan=True):
            return
    elif type(got) is type(want):
        try:
            if got == want or (isinstance(want, torch.device)):
                return
        except Exception:
            return  # values that cannot be compared, such as opaque objects
    result.problems.append(Problem("wrong value", f"{where}: got {got!r}, expected {want!r}"))


def _same_metadata(
    result: Comparison, where: str, actual: Any, expected: torch.Tensor, device: torch.device
) -> bool:
    """Compare everything but values and strides; returns whether values can be compared."""
    problems = result.problems
    if not isinstance(actual, torch.Tensor):
        problems.append(Problem("wrong structure", f"{where}: got {actual!r}, expected a tensor"))
        return False
    if actual.device != device:
        problems.append(Problem("wrong device", f"{where}: on {actual.device}, not on {device}"))
    comparable = True
    for kind in ("dtype", "shape", "layout"):
        got, want = getattr(actual, kind), getattr(expected, kind)
        if got != want:
            comparable = False
            if kind == "shape":
                got, want = list(got), list(want)
            problems.append(Problem(f"wrong {kind}", f"{where}: got {got}, expected {want}"))
    return comparable


def _compare_dense(
    result: Comparison,
    where: str,
    got: torch.Tensor,
    expected: torch.Tensor,
    golden: torch.Tensor | None,
    tolerance: Tolerance,
) -> None:
    if expected.layout is not torch.strided:
        got, expected = got.to_dense(), expected.to_dense()
        golden = None if golden is None else golden.to_dense()
    compare_values(result, where, got, expected, golden, tolerance)


def compare_values(
    result: Comparison,
    where: str,
    got: torch.Tensor,
    expected: torch.Tensor,
    golden: torch.Tensor | None,
    tolerance: Tolerance,
) -> None:
    """Judge the values of two CPU tensors of one shape and dtype, and measure their errors."""
    dtype = expected.dtype
    inexact = dtype.is_floating_point or dtype.is_complex
    same = bit_equal(got, expected)
    if same and (golden is None or not inexact):
        return
    if got.numel() == 0:
        return
    if not inexact:
        _compare_exact(result, where, got, expected, golden)
        return
    if golden is not None and not (golden.dtype.is_floating_point or golden.dtype.is_complex):
        golden = None
    limit = _limit(tolerance, dtype)
    plain = measure(None if same and golden is not None else got, expected, golden, limit)
    if plain is not None:
        result.figures.merge(plain)
        return
    e = _wide(expected)
    a = e if same else _wide(got)
    g = None if golden is None else _wide(golden)
    with numpy.errstate(all="ignore"):
        reference = None if g is None else _distance(e, g)
        plausible = reference is not None and is_plausible(
            _largest(reference), _largest(numpy.abs(g)), limit
        )
        if plausible:
            error = reference if same else _distance(a, g)
            result.figures.merge(_figures(error, g, dtype))
            result.figures.merge(Figures(reference=_largest(reference)))
        else:
            # Another right answer, as for singular vectors: the distance to it says nothing.
            result.figures.merge(_figures(_distance(a, e), e, dtype))
        if same:
            return
        wrong = ~_close(a, e, limit)
        if g is not None and wrong.any():
            wrong &= ~_close(a, g, limit)
            if wrong.any() and plausible and _no_farther(error, reference, g, wrong):
                return
    if wrong.any():
        result.problems.append(_value_problem(where, a, e, wrong, limit))


@functools.cache
def _limit(tolerance: Tolerance, dtype: torch.dtype) -> Tolerance:
    granted = tolerances.default(dtype)
    return Tolerance(max(tolerance.rtol, granted.rtol), max(tolerance.atol, granted.atol))


def _compare_exact(
    result: Comparison,
    where: str,
    got: torch.Tensor,
    expected: torch.Tensor,
    golden: torch.Tensor | None,
) -> None:
    wrong = got != expected
    if golden is not None and golden.dtype == got.dtype:
        # Where precision decides a comparison or an index, the higher one is right as well.
        wrong &= got != golden
    if not wrong.any():
        return
    if got.dtype != torch.bool:
        difference = (got.to(torch.float64) - expected.to(torch.float64)).abs()
        result.figures.merge(Figures(abs=float(difference.max())))
    a, e, w = got.resolve_neg().numpy(), expected.resolve_neg().numpy(), wrong.numpy()
    result.problems.append(_value_problem(where, a, e, w, None))


def _wide(tensor: torch.Tensor) -> numpy.ndarray:
    wide = torch.complex128 if tensor.dtype.is_complex else torch.float64
    return numpy.atleast_1d(tensor.detach().to(wide).resolve_conj().resolve_neg().numpy())


def _distance(a: numpy.ndarray, b: numpy.ndarray) -> numpy.ndarray:
    """|a - b|, 0 where both are NaN or the same infinity, infinite where one alone is."""
    distance = numpy.abs(a - b)
    unordered = ~numpy.isfinite(distance)
    if unordered.any():
        distance[unordered] = numpy.where(_alike(a[unordered], b[unordered]), 0.0, numpy.inf)
    return distance


def _alike(a: numpy.ndarray, b: numpy.ndarray) -> numpy.ndarray:
    if numpy.iscomplexobj(a) or numpy.iscomplexobj(b):
        # A complex number is NaN or infinite as soon as one part is; signs of parts are not judged.
        both_nan = numpy.isnan(a) & numpy.isnan(b)
        return both_nan | (numpy.isinf(a) & numpy.isinf(b))
    return (numpy.isnan(a) & numpy.isnan(b)) | (a == b)


def _close(a: numpy.ndarray, b: numpy.ndarray, limit: Tolerance) -> numpy.ndarray:
    distance = _distance(a, b)
    allowed = limit.atol + limit.rtol * numpy.abs(b)
    return (distance == 0) | (numpy.isfinite(distance) & (distance <= allowed))


def _no_farther(
    error: numpy.ndarray, reference: numpy.ndarray, golden: numpy.ndarray, wrong: numpy.ndarray
) -> bool:
    """Whether the elements in doubt are within SLACK of CPU's own largest errors."""
    size = numpy.maximum(numpy.abs(golden), numpy.finfo(numpy.float64).tiny)
    return bool(
        error[wrong].max() <= SLACK * _largest(reference)
        and (error[wrong] / size[wrong]).max() <= SLACK * _largest(reference / size)
    )


def _largest(values: numpy.ndarray) -> float:
    finite = values[numpy.isfinite(values)] if values.ndim else values
    return float(finite.max(initial=0.0)) if finite.size else 0.0


def _figures(error: numpy.ndarray, right: numpy.ndarray, dtype: torch.dtype) -> Figures:
    size = numpy.abs(right)
    ok = numpy.isfinite(error) & numpy.isfinite(size)
    error, size = error[ok], size[ok]
    if not error.size:
        return Figures()
    worst = float(error.max())
    if worst == 0.0:
        return Figures(0.0, 0.0, 0.0)
    return Figures(worst, *relative_errors(error, size, float(size.max()), dtype))


def _value_problem(
    where: str,
    got: numpy.ndarray,
    want: numpy.ndarray,
    wrong: numpy.ndarray,
    limit: Tolerance | None,
) -> Problem:
    got, want, wrong = numpy.atleast_1d(got), numpy.atleast_1d(want), numpy.atleast_1d(wrong)
    where_wrong = numpy.argwhere(wrong)
    first = tuple(int(i) for i in where_wrong[0])
    allowed = f", tolerance {limit.atol:g} + {limit.rtol:g}*|expected|" if limit else ""
    return Problem(
        "wrong value",
        f"{where}: {len(where_wrong)} of {wrong.size} elements differ; first at "
        f"{list(first)}: got {got[first]}, expected {want[first]}{allowed}",
    )


def _compare_strides(
    result: Comparison,
    where: str,
    index: int,
    actual: torch.Tensor,
    expected: torch.Tensor,
    meta: Callable[[], Any],
) -> None:
    """Strides count where eager CPU and Meta agree on them, but not for dims of size 0 or 1."""
    if expected.layout is not torch.strided or actual.layout is not torch.strided:
        return
    if actual.shape != expected.shape or same_strides(actual, expected):
        return
    try:
        promised = list(leaves(meta()))[index]
    except Exception:
        return  # no Meta for this call: torch promises nothing
    if isinstance(promised, torch.Tensor) and same_strides(promised, expected):
        result.problems.append(
            Problem(
                "wrong strides",
                f"{where}: got {list(actual.stride())}, expected {list(expected.stride())}",
            )
        )


def same_strides(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one shape have the same strides wherever strides mean anything."""
    if a.stride() == b.stride():
        return True
    if a.shape != b.shape or a.numel() == 0:
        return a.shape == b.shape
    return all(s <= 1 or x == y for s, x, y in zip(a.shape, a.stride(), b.stride(), strict=True))
