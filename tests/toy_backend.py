"""A backend with next to nothing: a few operators in Python on NumPy arrays.

It has no strides, no storage, no generator, no streams, and in its module only the functions that
say it is there. Importing it registers the device ``toy``.
"""

from __future__ import annotations

import numpy
import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

_DTYPES = {torch.float32: numpy.float32, torch.int64: numpy.int64, torch.bool: numpy.bool_}


class Module:
    """``torch.toy``."""

    @staticmethod
    def is_available() -> bool:
        return True

    @staticmethod
    def device_count() -> int:
        return 1


class ToyTensor(torch.Tensor):
    """A tensor on ``toy``; ``array`` holds its values."""


def _wrap(array, dtype):
    if dtype not in _DTYPES:
        raise RuntimeError(f"toy: dtype {dtype} is not supported")
    array = numpy.asarray(array, dtype=_DTYPES[dtype])
    tensor = torch._C._acc.create_empty_tensor(array.shape, dtype)
    tensor.__class__ = ToyTensor
    tensor.array = array
    return tensor


def _array(tensor):
    return tensor.array if tensor.device.type == "toy" else tensor.numpy()


def _empty(size, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    return _wrap(numpy.full(size, 7.0), dtype or torch.float32)


def _empty_strided(size, stride, dtype=None, layout=None, device=None, pin_memory=None):
    return _empty(size, dtype)


def _copy_from(source, target, non_blocking=False):
    if target.device.type == "toy":
        target.array[...] = _array(source)
    else:
        target.copy_(torch.from_numpy(numpy.array(source.array)))
    return target


def _detach(a):
    return _wrap(a.array, a.dtype)


def _add(a, b, alpha=1):
    return _wrap(_array(a) + _array(b) * alpha, torch.result_type(a, b))


def _sub(a, b, alpha=1):
    """Wrong on purpose: the operands are swapped."""
    return _wrap(_array(b) - _array(a), torch.result_type(a, b))


def _neg(a):
    """Computed on the CPU and copied back."""
    return torch.neg(a.cpu()).to("toy")


_setup_privateuseone_for_python_backend("toy", backend_module=Module())
_library = torch.library.Library("aten", "IMPL")
for _name, _function in {
    "empty.memory_format": _empty,
    "empty_strided": _empty_strided,
    "_copy_from": _copy_from,
    "detach": _detach,
    "add.Tensor": _add,
    "sub.Tensor": _sub,
    "neg": _neg,
}.items():
    _library.impl(_name, _function, "PrivateUse1")
