"""A cell: the unit that is planned, run, recorded and reported."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Cell:
    """One property of one operator at one dtype.

    ``op`` and ``variant`` are OpInfo's ``name`` and ``variant_test_name`` ("linalg.norm" and
    "subgradients_at_zero"); ``dtype`` is torch's name without the prefix ("float32"). A part that
    has no meaning for a check is the empty string.
    """

    area: str
    check: str
    op: str
    variant: str
    dtype: str

    @property
    def id(self) -> str:
        """The cell's name in reports and options, e.g. ``opinfo/correctness/add//float32``."""
        return "/".join((self.area, self.check, self.op, self.variant, self.dtype))

    @property
    def full_op(self) -> str:
        """Op and variant as OpInfo's ``full_name`` joins them, e.g. ``std.unbiased``."""
        return f"{self.op}.{self.variant}" if self.variant else self.op

    @classmethod
    def from_id(cls, cell_id: str) -> Cell:
        """The cell that :attr:`id` names. Raises ValueError when the text has not five parts."""
        parts = cell_id.split("/")
        if len(parts) != 5:
            raise ValueError(f"not a cell id (area/check/op/variant/dtype): {cell_id!r}")
        return cls(*parts)
