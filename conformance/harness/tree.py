"""Walk the values that operators take and return: tensors inside tuples, lists and dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch


def map_leaves(value: Any, fn: Callable[[Any], Any]) -> Any:
    """A copy of ``value`` with ``fn`` applied to each leaf.

    Tuples, named tuples, lists and dicts keep their kind; what ``torch.return_types`` holds comes
    back as a plain tuple. Anything else, a slice included, is a leaf.
    """
    kind = type(value)
    if kind is torch.Tensor:
        return fn(value)
    if isinstance(value, torch.Size):
        return fn(value)
    if isinstance(value, tuple):
        items = [map_leaves(item, fn) for item in value]
        return kind(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [map_leaves(item, fn) for item in value]
    if isinstance(value, dict):
        return {key: map_leaves(item, fn) for key, item in value.items()}
    return fn(value)


def leaves(value: Any) -> Iterator[Any]:
    """Each leaf of ``value``, depth first, in the order in which :func:`map_leaves` meets them."""
    if isinstance(value, torch.Size):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    else:
        yield value


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Each tensor in ``value``."""
    return (leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor))
