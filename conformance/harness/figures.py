"""Largest errors of a cell."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Figures:
    """Largest errors seen; None where nothing was measured.

    The error of a value is its distance to the golden where there is one that CPU at the same dtype
    comes plausibly near, else to CPU at the same dtype. ``reference`` is the largest absolute error
    of CPU at the same dtype to the golden.
    """

    abs: float | None = None
    rel: float | None = None
    ulp: float | None = None
    reference: float | None = None

    def merge(self, other: Figures) -> None:
        """Keep the larger of each figure."""
        for name in ("abs", "rel", "ulp", "reference"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if theirs is not None and (mine is None or theirs > mine):
                setattr(self, name, theirs)
