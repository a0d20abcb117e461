"""Indices of equal values: where several are right, torch promises none in particular.

``argmax`` of two equal maxima, an unstable ``sort``, ``max_pool`` over a plateau: another index
than the CPU's is as right when it names an equal element. Which dimension an index is along is
found out from the CPU's result, by looking the indexed elements up and finding the CPU's values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput

from conformance.harness.compare import bit_equal
from conformance.harness.tree import tensors

_ARG_REDUCTIONS = {"argmax": torch.amax, "argmin": torch.amin}
_PERMUTING = frozenset(("sort", "argsort", "topk"))
_WITH_VALUES = frozenset(
    ("sort", "topk", "kthvalue", "mode", "median", "nanmedian", "max", "min", "cummax", "cummin")
)


def choose_among_equals(op_name: str) -> bool:
    """Whether the op returns indices among which ties leave a choice."""
    return (
        op_name in _WITH_VALUES
        or op_name in _ARG_REDUCTIONS
        or op_name == "argsort"
        or _pooled_dims(op_name) > 0
    )


def equally_right(op_name: str, sample: SampleInput, actual: Any, expected: Any) -> bool:
    """Whether ``actual``, on the CPU, differs from ``expected`` in the choice among equals only."""
    if sample.kwargs.get("stable"):
        return False
    mine, theirs = list(tensors(actual)), list(tensors(expected))
    if [t.shape for t in mine] != [t.shape for t in theirs]:
        return False
    alone = op_name in _ARG_REDUCTIONS or op_name == "argsort"
    if len(mine) != (1 if alone else 2):
        return False
    # The index comes last; what comes before it are values, which leave no choice.
    if not all(map(bit_equal, mine[:-1], theirs[:-1])) or mine[-1].is_floating_point():
        return False
    values = theirs[0] if len(theirs) > 1 else None
    for source, index, other, dim in _alignments(op_name, sample.input, theirs[-1], mine[-1]):
        if not _in_range(index, source, dim):
            continue
        found = source.gather(dim, index)
        if not _confirms(op_name, source, found, values, dim):
            continue
        if not _in_range(other, source, dim):
            return False
        distinct = op_name not in _PERMUTING or _all_distinct(other, dim)
        return distinct and bit_equal(source.gather(dim, other), found)
    return False


def _pooled_dims(op_name: str) -> int:
    """How many spatial dimensions a max pooling has; 0 for other operators."""
    if "max_pool" not in op_name:
        return 0
    return next((n for n in (1, 2, 3) if f"max_pool{n}d" in op_name), 0)


def _alignments(
    op_name: str, source: torch.Tensor, index: torch.Tensor, other: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]]:
    """Every way in which the indices can be along a dimension of the source."""
    pooled = _pooled_dims(op_name)
    if pooled:
        yield source.flatten(-pooled), index.flatten(-pooled), other.flatten(-pooled), -1
        return
    for dim in range(source.dim()):
        i, o = index, other
        if index.dim() == source.dim() - 1:
            i, o = index.unsqueeze(dim), other.unsqueeze(dim)
        if i.dim() == source.dim() and all(
            a == b for d, (a, b) in enumerate(zip(i.shape, source.shape, strict=True)) if d != dim
        ):
            yield source, i, o, dim
    yield source.reshape(-1), index.reshape(-1), other.reshape(-1), 0


def _confirms(
    op_name: str,
    source: torch.Tensor,
    found: torch.Tensor,
    values: torch.Tensor | None,
    dim: int,
) -> bool:
    """Whether the CPU's indices along ``dim`` are what the op means by an index."""
    if values is not None:
        return bit_equal(found.reshape(-1), values.reshape(-1))
    if op_name in _ARG_REDUCTIONS:
        return bit_equal(found, _ARG_REDUCTIONS[op_name](source, dim, keepdim=True))
    return any(bit_equal(found, source.sort(dim, descending=d).values) for d in (False, True))


def _in_range(index: torch.Tensor, source: torch.Tensor, dim: int) -> bool:
    return bool(((index >= 0) & (index < source.size(dim))).all())


def _all_distinct(index: torch.Tensor, dim: int) -> bool:
    ordered = index.sort(dim).values
    return bool((ordered.diff(dim=dim) != 0).all())
