"""The cells that a check has, and the tests that run them.

The plan comes from what OpInfo claims for the CPU, the one device on which every reference runs;
what a backend supports never changes it. A test class marks its method with :class:`opinfo_cells`
and is instantiated by :func:`instantiate`, which is torch's ``instantiate_device_type_tests`` for
the device under test.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.testing._internal import common_device_type as upstream
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import _TestParametrizer
from torch.testing._internal.opinfo.core import OpInfo

from conformance.harness import device as devices
from conformance.harness import profiles, run
from conformance.harness.cells import Cell
from conformance.harness.outcomes import Outcome
from conformance.harness.selection import Selection


class Planned(NamedTuple):
    """A cell, with the reason why it is not applicable, if it is not."""

    cell: Cell
    not_applicable: str | None


class OpDtype(NamedTuple):
    """An op at a dtype that the plan names. ``dtype`` is None where the op is not applicable."""

    op: OpInfo
    dtype: torch.dtype | None
    not_applicable: str | None


_selection = Selection()
_profile = "full"
_offered: list[Cell] = []


def select(selection: Selection, profile: str = "full") -> None:
    """Plan only the selected cells of the profile from now on."""
    global _selection, _profile
    _selection, _profile = selection, profile


def _is_selected(cell: Cell) -> bool:
    return profiles.includes(_profile, cell) and _selection.wants(cell)


def offered() -> list[Cell]:
    """Every cell that a class instantiated in this process has, selected or not."""
    return _offered


def op_dtypes(device_type: str) -> Iterator[OpDtype]:
    """Every op and variant of OpInfo with each dtype it claims for the CPU, in OpInfo's order.

    An op that cannot be judged at any dtype is listed once, without dtype, with the reason.
    """
    for op in op_db:
        reason = _not_applicable(op, device_type)
        if reason is not None:
            yield OpDtype(op, None, reason)
        else:
            for dtype in sorted(op.supported_dtypes("cpu"), key=str):
                yield OpDtype(op, dtype, None)


def _not_applicable(op: OpInfo, device_type: str) -> str | None:
    if upstream.onlyCUDA in op.decorators:
        return "OpInfo marks the op as CUDA only: there is no reference on the CPU"
    if not op.supported_dtypes("cpu"):
        return "OpInfo claims no dtype for the CPU: there is no reference"
    if upstream.onlyCPU in op.decorators and device_type != "cpu":
        return "OpInfo marks the op as CPU only"
    return None


def dtype_name(dtype: torch.dtype | None) -> str:
    """The dtype's name as cells have it; empty for None."""
    return "" if dtype is None else str(dtype).removeprefix("torch.")


class opinfo_cells(_TestParametrizer):
    """Decorator: one test of the method for each cell (area, check, op, dtype).

    The method takes ``device``, ``dtype`` and ``op``. Tests carry ``planned``, their
    :class:`Planned`.
    """

    def __init__(self, area: str, check: str) -> None:
        self.area, self.check = area, check

    def _parametrize_test(
        self, test: Callable[..., None], generic_cls: type, device_cls: type
    ) -> Iterator[tuple[Any, str, dict[str, Any], Callable[[Any], list[Any]]]]:
        for op, dtype, reason in op_dtypes(device_cls.device_type):
            cell = Cell(self.area, self.check, op.name, op.variant_test_name, dtype_name(dtype))
            _offered.append(cell)
            if _is_selected(cell):
                mark = functools.partial(_mark, Planned(cell, reason))
                yield test, op.formatted_name, {"op": op, "dtype": dtype}, lambda _, m=mark: [m]


def _mark(planned: Planned, test: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(test)
    def marked(*args: Any, **kwargs: Any) -> None:
        if planned.not_applicable is not None:
            run.current().conclude(Outcome.NOT_APPLICABLE, planned.not_applicable)
        else:
            test(*args, **kwargs)

    marked.planned = planned
    return marked


def instantiate(test_class: type, scope: dict[str, Any]) -> None:
    """Put the class, instantiated for the device under test, into ``scope``."""
    device = devices.current()
    base = devices.device_test_base(device)
    upstream.instantiate_device_type_tests(
        test_class,
        scope,
        only_for=[base.device_type],
        allow_mps=device.type == "mps",
        allow_xpu=device.type == "xpu",
    )
