"""Which of the cells that exist are wanted: ``--area``, ``--check``, ``--op`` and ``--dtype``."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass, field

from conformance.harness.cells import Cell

FIELDS = ("area", "check", "op", "dtype")


class SelectionError(Exception):
    """A name in the selection matches nothing."""


def _split(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _names(cell: Cell, field_name: str) -> tuple[str, ...]:
    """The names under which a pattern finds the cell; an op's with and without its variant."""
    if field_name == "op":
        return (cell.op, cell.full_op) if cell.variant else (cell.op,)
    return (getattr(cell, field_name),)


@dataclass
class Selection:
    """Patterns per field; a field without patterns wants everything.

    A pattern is an exact name or a glob, case-sensitive.
    """

    patterns: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def from_options(cls, **options: str | None) -> Selection:
        """From the comma-separated text of each option; None selects everything.

        Raises SelectionError for a text without a name, such as an unset variable makes it.
        """
        split = {name: _split(text) for name, text in options.items()}
        for name, text in options.items():
            if text is not None and not split[name]:
                raise SelectionError(f"--{name}={text} names nothing; leave it out for everything")
        return cls({name: patterns for name, patterns in split.items() if patterns})

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def wants(self, cell: Cell) -> bool:
        """Whether the cell matches a pattern of every field that has patterns."""
        return all(
            any(fnmatch.fnmatchcase(n, p) for n in _names(cell, name) for p in patterns)
            for name, patterns in self.patterns.items()
        )

    def check(self, cells: Iterable[Cell]) -> None:
        """Raise SelectionError unless every pattern, and all of them together, match some cell."""
        cells = list(cells)
        for name, patterns in self.patterns.items():
            known = {n for cell in cells for n in _names(cell, name)}
            for pattern in patterns:
                if pattern not in known and not fnmatch.filter(known, pattern):
                    raise SelectionError(_no_match(name, pattern, known))
        if self.patterns and not any(map(self.wants, cells)):
            text = " ".join(f"--{n}={','.join(p)}" for n, p in self.patterns.items())
            raise SelectionError(f"no cell matches {text} together, though each matches some")


def _no_match(name: str, pattern: str, known: set[str]) -> str:
    near = difflib.get_close_matches(pattern, sorted(known), n=3, cutoff=0.5)
    if not near:
        near = sorted(n for n in known if pattern.lower() in n.lower())[:3]
    if near:
        hint = f"; nearest: {', '.join(near)}"
    elif len(known) <= 30:
        hint = f"; there are: {', '.join(sorted(known))}"
    else:
        hint = ""
    return f"--{name}: {pattern!r} matches nothing{hint}"
