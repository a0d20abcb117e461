"""Operators that draw random numbers, judged by what can be known of them.

Whether a call draws is not read off a list: the CPU's generator is compared before and after the
reference call. A call that drew is judged by its metadata, by its distribution against the CPU's,
and by the reproducibility of a seed where the device can be seeded. ``empty`` and its kin are
judged by metadata alone.

The distribution test draws :data:`DRAWS` times on both sides and compares, for each of a few
quantiles of the CPU's pooled values, the share of values at or below it, with Welch's t over draws;
elements may depend on one another, draws may not. The limit of :data:`LIMIT` standard errors has a
false-alarm rate of about 2e-9 for each quantile. An element that stays the same in every draw while
the CPU's varies in nearly all is wrong as well.

OpInfo seeds its random operators through ``wrapper_set_seed``, which saves and restores the
*device's* generator state even around a CPU reference, and so fails on a backend without one.
Importing this module puts a version in its place that leaves the device alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch.testing._internal import common_methods_invocations, common_modules

from conformance.harness import compare
from conformance.harness import tolerance as tolerances

DRAWS = 24
"""Draws on each side of the distribution test."""
JUDGED_SAMPLES = 6
"""Samples of a cell whose distribution is tested; the others are judged by metadata."""
LIMIT = 7.5
"""Standard errors by which the shares may differ."""
ALLOWANCE = 0.01
"""A difference of shares that is never judged: rounding moves values across a quantile."""
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_OPINFO_SEED = 42


def is_uninitialised(op_name: str) -> bool:
    """Whether the op's values mean nothing: it returns memory as it finds it."""
    return op_name.rsplit(".", 1)[-1] in _UNINITIALISED


_UNINITIALISED = frozenset(
    ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")
)


@dataclass
class DrawWatch:
    """Says whether a call drew from the CPU's default generator."""

    drew: bool = False


_watch: DrawWatch | None = None
_seed_device: Callable[[int], Any] | None = None
_wrapper_seed = _OPINFO_SEED


@contextmanager
def keep_cpu_state() -> Iterator[None]:
    """Restore the state of the CPU's default generator at the end."""
    state = torch.default_generator.get_state()
    try:
        yield
    finally:
        torch.default_generator.set_state(state)


class watch_draws:
    """Context: watch the CPU's default generator and restore its state at the end."""

    def __enter__(self) -> DrawWatch:
        global _watch
        self._outer, _watch = _watch, DrawWatch()
        self._state = torch.default_generator.get_state()
        return _watch

    def __exit__(self, *_exc_info: object) -> None:
        global _watch
        watch, _watch = _watch, self._outer
        if not torch.equal(self._state, torch.default_generator.get_state()):
            watch.drew = True
            torch.default_generator.set_state(self._state)


@contextmanager
def seeded(seed: int, seed_device: Callable[[int], Any] | None = None) -> Iterator[None]:
    """Run with the CPU's generator, and the device's by ``seed_device``, at ``seed``.

    Operators that OpInfo wraps in a seed of its own get ``seed`` instead.
    """
    global _seed_device, _wrapper_seed
    outer = _seed_device, _wrapper_seed
    _seed_device, _wrapper_seed = seed_device, seed
    try:
        with keep_cpu_state():
            torch.default_generator.manual_seed(seed)
            if seed_device is not None:
                seed_device(seed)
            yield
    finally:
        _seed_device, _wrapper_seed = outer


def _wrapper_set_seed(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    generator = torch.default_generator
    outer = generator.get_state()
    generator.manual_seed(_wrapper_seed)
    if _seed_device is not None:
        _seed_device(_wrapper_seed)
    before = generator.get_state()
    try:
        return op(*args, **kwargs)
    finally:
        if _watch is not None and not torch.equal(before, generator.get_state()):
            _watch.drew = True
        generator.set_state(outer)


@contextmanager
def _freeze_cpu_rng_state(*_args: Any, **_kwargs: Any) -> Iterator[None]:
    with keep_cpu_state():
        yield


common_methods_invocations.wrapper_set_seed = _wrapper_set_seed
common_modules.freeze_rng_state = _freeze_cpu_rng_state


def device_seeder(device_module: Any) -> Callable[[int], Any] | None:
    """The function that seeds the device, or None when its module has none that works."""
    for name in ("manual_seed", "manual_seed_all"):
        function = getattr(device_module, name, None)
        if callable(function):
            try:
                function(_OPINFO_SEED)
            except Exception:
                continue
            return function
    return None


def judge_draws(
    on_device: Callable[[int], list[torch.Tensor]],
    on_cpu: Callable[[int], list[torch.Tensor]],
    *,
    seedable: bool,
) -> list[str]:
    """What is wrong with the device's draws; empty when nothing is.

    Both functions run the call with a seed and return its tensors on the CPU; they must agree in
    number and shapes, which the caller has checked.
    """
    seeds = range(1, DRAWS + 1)
    problems = []
    if seedable:
        first, again = on_device(_OPINFO_SEED), on_device(_OPINFO_SEED)
        if not all(_same(a, b) for a, b in zip(first, again, strict=True)):
            problems.append("two calls with the same seed differ")
    device_draws = [on_device(seed) for seed in seeds]
    cpu_draws = [on_cpu(seed) for seed in seeds]
    for index, (device, cpu) in enumerate(
        zip(zip(*device_draws, strict=True), zip(*cpu_draws, strict=True), strict=True)
    ):
        limit = tolerances.default(cpu[0].dtype)
        for problem in _compare_draws(_stack(device), _stack(cpu), limit):
            problems.append(f"output {index}: {problem}")
    return problems


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and compare.bit_equal(a, b)


def _stack(draws: tuple[torch.Tensor, ...]) -> numpy.ndarray:
    """One row a draw. Complex values become two columns each."""
    rows = []
    for draw in draws:
        if draw.is_complex():
            draw = torch.view_as_real(draw.to(torch.complex128).resolve_conj())
        rows.append(draw.to(torch.float64).reshape(-1).numpy())
    return numpy.stack(rows)


def _compare_draws(
    device: numpy.ndarray, cpu: numpy.ndarray, limit: tolerances.Tolerance
) -> Iterator[str]:
    if cpu.shape[1] == 0:
        return
    if numpy.isnan(device).any() and not numpy.isnan(cpu).any():
        yield "draws NaN"
        return
    spread = numpy.ptp(cpu, axis=0) > limit.atol + limit.rtol * numpy.abs(cpu).max(axis=0)
    varying = spread & (_distinct_in_rows(cpu) > 0.8 * DRAWS)
    stuck = varying & (_distinct_in_rows(device) == 1)
    if stuck.any():
        yield f"{int(stuck.sum())} of {stuck.size} elements are the same in {DRAWS} draws"
        return
    for quantile, value in zip(
        _QUANTILES, numpy.nanquantile(cpu, _QUANTILES, method="inverted_cdf"), strict=True
    ):
        # Results that hardly vary differ in rounding alone: values that close count as either.
        margin = limit.atol + limit.rtol * abs(value)
        theirs = (cpu <= value).mean(axis=1)
        most, least = device <= value + margin, device <= value - margin
        for mine, sign in ((most.mean(axis=1), -1), (least.mean(axis=1), 1)):
            excess = sign * (mine.mean() - theirs.mean())
            error = numpy.sqrt((mine.var(ddof=1) + theirs.var(ddof=1)) / DRAWS)
            if excess > ALLOWANCE and excess > LIMIT * error:
                yield (
                    f"{mine.mean():.3f} of the values are at most {value:g} (CPU's {quantile:g} "
                    f"quantile), on the CPU {theirs.mean():.3f}"
                )
                return


def _distinct_in_rows(draws: numpy.ndarray) -> numpy.ndarray:
    """For each column, how many different values it takes."""
    ordered = numpy.sort(draws, axis=0)
    return 1 + (ordered[1:] != ordered[:-1]).sum(axis=0)
