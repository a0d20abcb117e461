"""A backend module that wrecks its process: the bundled backend with faults at chosen cells.

The environment variable CHAOS_PLAN names a JSON file: an object from cell id to the name of a fault
of :mod:`chaos_faults`. When a kernel of such a cell's operator is called for the first time in a
process, the fault strikes there. Without the variable nothing strikes.
"""

from __future__ import annotations

import json
import os
from typing import Any

import chaos_faults
import torch
import torch_accel  # noqa: F401

from conformance.harness import run
from conformance.harness.cells import Cell

PLAN = "CHAOS_PLAN"
OPERATORS = {
    **{
        name: name
        for name in (
            "sin", "cos", "tan", "exp", "sqrt", "neg", "reciprocal", "floor", "ceil", "sign",
            "sigmoid", "tanh", "erf", "log", "log2", "log10", "log1p", "expm1", "sinh", "cosh",
            "asin", "acos", "atan", "rsqrt", "trunc", "maximum", "minimum", "atan2", "hypot",
            "flip", "roll", "isnan", "sgn", "angle",
        )
    },
    **{name: f"{name}.Tensor" for name in ("add", "sub", "mul", "eq", "ne", "lt", "gt", "le", "ge",
                                           "fmod", "remainder")},
    "nn.functional.relu": "relu",
}  # fmt: skip
"""Operators at which faults strike, by OpInfo's name, with the overload that they reach."""
_EVERY_CELL = ("_copy_from", "empty.memory_format", "empty_strided")
"""Overloads that nearly every cell calls: a broken device shows at them too."""

_struck: set[str] = set()
_struck_last = ""
_used_by: int | None = None


def _plan() -> dict[str, str]:
    path = os.environ.get(PLAN)
    if path is None:
        return {}
    with open(path) as file:
        return json.load(file)


_planned = _plan()


def _use(*args: Any) -> None:
    global _used_by
    if _used_by != os.getpid():
        _used_by = os.getpid()
        chaos_faults.first_use()
    cell = _current_cell()
    if cell is not None and cell.id != _struck_last:
        chaos_faults.cell_is_over()
    elements = args[0].numel() if isinstance(args[0], torch.Tensor) else 0
    chaos_faults.check_device(elements)


def _current_cell() -> Cell | None:
    """None where the harness tries the device outside of any cell."""
    try:
        return run.current().cell
    except RuntimeError:
        return None


def _strike(operator: str) -> None:
    global _struck_last
    cell = _current_cell()
    fault = _planned.get(cell.id) if cell is not None else None
    if fault is not None and cell.op == operator and cell.id not in _struck:
        _struck.add(cell.id)
        _struck_last = cell.id
        chaos_faults.mark(fault)
        chaos_faults.FAULTS[fault].strike()


def _interpose(overload: str, operator: str | None) -> None:
    own = torch.library.get_kernel(f"aten::{overload}", "PrivateUse1")

    def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        _use(*args)
        if operator is not None:
            _strike(operator)
        return own.call_boxed(keyset, *args, **kwargs)

    _library.impl(overload, kernel, "PrivateUse1", with_keyset=True)


_library = torch.library.Library("aten", "IMPL")
for _name, _overload in OPERATORS.items():
    _interpose(_overload, _name)
for _overload in _EVERY_CELL:
    _interpose(_overload, None)
