"""OpInfo's sample inputs: made once on the CPU, seeded once, shared by every check of the op.

They are made on the CPU and carried over (see transfer), never on the device: half the generators
need operators that a young backend lacks, and the reference wants the same values anyway. The
generator function is called directly, since ``OpInfo.sample_inputs`` reseeds before every sample
and walks the stack, which together cost more than the operators.
"""

from __future__ import annotations

import itertools
import random as python_random
import zlib
from collections import OrderedDict
from typing import Any

import numpy
import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from conformance.harness.errors import shorten
from conformance.harness.transfer import Parcel
from conformance.harness.tree import map_leaves

_KEPT = 4
"""How many (op, dtype) lists of samples a process keeps; checks of an op run one after another."""

_Arguments = tuple[Any, tuple, dict[str, Any]]

_cache: OrderedDict[tuple[str, torch.dtype, bool], list[SampleInput]] = OrderedDict()


def seed_for(name: str) -> int:
    """A seed that depends on the name alone, so that a cell's inputs never depend on its order."""
    return zlib.crc32(name.encode())


def seed_generators(seed: int) -> None:
    """Seed everything that OpInfo's generators draw from. The device is not touched."""
    torch.default_generator.manual_seed(seed)
    numpy.random.seed(seed % 2**32)
    python_random.seed(seed)


def sample_inputs(
    op: OpInfo, dtype: torch.dtype, *, requires_grad: bool = False
) -> list[SampleInput]:
    """The op's samples on the CPU. They are shared: carry them, never hand them to an operator.

    Raises what the op's generator raises.
    """
    key = (op.full_name, dtype, requires_grad)
    samples = _cache.get(key)
    if samples is None:
        seed_generators(seed_for(f"{op.full_name}/{dtype}"))
        samples = list(op.sample_inputs_func(op, "cpu", dtype, requires_grad))
        _cache[key] = samples
        while len(_cache) > _KEPT:
            _cache.popitem(last=False)
    else:
        _cache.move_to_end(key)
    return samples


def arguments(sample: SampleInput) -> _Arguments:
    """The sample's input, args and kwargs as one value."""
    return sample.input, tuple(sample.args), sample.kwargs


_last: tuple[SampleInput | None, Parcel] = None, Parcel(())


def parcel(sample: SampleInput) -> Parcel:
    """The arguments, taken apart to be carried. A sample is carried several times on end."""
    global _last
    if _last[0] is not sample:
        _last = sample, Parcel(arguments(sample))
    return _last[1]


# Operators that document an argument as a tensor on the CPU whatever the device, by its position
# in args. Only these are tensors: the other forms of the argument are sequences and numbers.
_CPU_ARGUMENTS = {"tensor_split": 0}


def keep_cpu_arguments(op: OpInfo, sample: SampleInput, carried: _Arguments) -> _Arguments:
    """What was carried, with an argument that must stay on the CPU as it was in the sample."""
    position = _CPU_ARGUMENTS.get(op.name)
    if position is None or len(sample.args) <= position:
        return carried
    args = list(carried[1])
    args[position] = sample.args[position]
    return carried[0], tuple(args), carried[2]


def call(op: Any, args: _Arguments) -> Any:
    """Call ``op`` with what :func:`arguments` gave, carried or not."""
    return op(args[0], *args[1], **args[2])


def describe(sample: SampleInput) -> str:
    """The arguments in a line: shapes, dtypes and layouts of tensors, other values as they are."""
    parts = [_text(sample.input)]
    parts += [_text(arg) for arg in sample.args]
    parts += [f"{name}={_text(value)}" for name, value in sample.kwargs.items()]
    return shorten(f"({', '.join(parts)})", 400)


def _text(value: Any) -> str:
    return shorten(repr(map_leaves(value, _leaf_text)), 160)


class _Text(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _leaf_text(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    text = f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}"
    if leaf.layout is not torch.strided:
        return _Text(f"{text} {str(leaf.layout).removeprefix('torch.')}")
    if not leaf.is_contiguous():
        text += f" strides {list(leaf.stride())}"
    if leaf.storage_offset():
        text += f" offset {leaf.storage_offset()}"
    flags = itertools.compress(("conj", "neg"), (leaf.is_conj(), leaf.is_neg()))
    return _Text(" ".join((text, *flags)))
