"""Records: what is known of a cell when it has ended, and the journal that keeps them.

The journal is a text file of JSON lines, ``records.jsonl``. A line is written by one ``write()``
on a descriptor opened with O_APPEND, so that several processes may share a journal and the death
of any of them loses nothing that was recorded before it.

JSON has no infinity and no NaN. Such figures are written as the strings "inf", "-inf" and "nan",
which every JSON parser accepts. The text is pure ASCII.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from conformance.harness.cells import Cell
from conformance.harness.outcomes import Outcome
from conformance.report.text import as_unicode, parse_json

PATHS = ("native", "composite", "fallback")
"""Ways in which a backend can serve an operator, the best first."""


class JournalError(Exception):
    """A journal that cannot be written or read; the message says which, where and what to do."""


@dataclass
class Record:
    """How one cell ended; the fields are the keys of ``records.jsonl``.

    A part of the cell's name that has no meaning is the empty string. Any other field that is not
    known is None, and left out of the JSON. ``docs/report.md`` says what each figure means.
    Figures may be anything that ``float`` takes, 0-dim tensors included; six significant digits
    are kept. Halves of surrogate pairs, which are no text and which pytest-xdist cannot send, are
    escaped.

    Raises ValueError for an outcome or a path that is not one of the known ones.
    """

    area: str
    check: str
    op: str
    variant: str
    dtype: str
    device: str
    outcome: Outcome
    reason: str | None = None
    path: str | None = None
    samples: int | None = None
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    max_ulp_error: float | None = None
    reference_error: float | None = None
    duration_s: float | None = None
    signature: str | None = None
    nodeid: str | None = None
    rerun: Outcome | None = None
    """Outcome of a second run in a fresh process, which a crash or a timeout gets."""
    flaky: bool | None = None
    """Whether ``rerun`` differs from ``outcome``; None where there was no second run."""
    rerun_after: str | None = None
    """Id of the cell that broke the device, where this one was run again for that reason."""

    def __post_init__(self) -> None:
        self.outcome = Outcome(self.outcome)
        if self.rerun is not None:
            self.rerun = Outcome(self.rerun)
        for name in ("reason", "signature"):
            text = getattr(self, name)
            if text is not None:
                setattr(self, name, as_unicode(text))
        if self.path is not None:
            self.path = str(self.path)  # An enum's member would not survive every serializer.
            if self.path not in PATHS:
                raise ValueError(f"{self.path!r} is not a valid path (one of {', '.join(PATHS)})")
        for name in _FIGURES:
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, float(f"{float(value):.6g}"))

    @property
    def cell(self) -> Cell:
        """The cell that this is the record of."""
        return Cell(self.area, self.check, self.op, self.variant, self.dtype)

    def to_json(self) -> dict[str, object]:
        """The record as JSON values, without what is not known."""
        out: dict[str, object] = {}
        for name in _NAMES:
            value = getattr(self, name)
            if value is None:
                continue
            if name in _FIGURES:
                value = encode_number(value)
            elif name in _OUTCOMES:
                value = value.value
            out[name] = value
        return out

    @classmethod
    def from_json(cls, values: object) -> Record:
        """The record that :meth:`to_json` gave.

        Raises ValueError when a key is unknown or missing, or a value has the wrong type.
        """
        if not isinstance(values, Mapping):
            raise ValueError("a record is a JSON object")
        unknown = sorted(set(values) - set(_NAMES))
        if unknown:
            raise ValueError(f"unknown key {unknown[0]!r} (written by a newer version?)")
        missing = [name for name in _REQUIRED if name not in values]
        if missing:
            raise ValueError(f"key {missing[0]!r} is missing")
        arguments = dict(values)
        for name, value in values.items():
            if name in _FIGURES:
                arguments[name] = decode_number(value, name)
            elif name == "samples":
                if not isinstance(value, int) or isinstance(value, bool):
                    raise ValueError(f"'samples' is not a whole number: {value!r}")
            elif name == "flaky":
                if not isinstance(value, bool):
                    raise ValueError(f"'flaky' is not true or false: {value!r}")
            elif not isinstance(value, str):
                raise ValueError(f"{name!r} is not a string: {value!r}")
        return cls(**arguments)


_NAMES = tuple(field.name for field in fields(Record))
_CELL_PARTS = ("area", "check", "op", "variant", "dtype")
_REQUIRED = (*_CELL_PARTS, "device", "outcome")
_FIGURES = frozenset(
    ("max_abs_error", "max_rel_error", "max_ulp_error", "reference_error", "duration_s")
)
_OUTCOMES = frozenset(("outcome", "rerun"))
_NOT_FINITE = ("inf", "-inf", "nan")


def cell_of(values: Mapping[str, Any]) -> Cell:
    """The cell of a record in its JSON form."""
    return Cell(*(values[part] for part in _CELL_PARTS))


def encode_number(value: float) -> float | str:
    """A float as a JSON value: itself when finite, else "inf", "-inf" or "nan"."""
    return value if math.isfinite(value) else str(value)


def decode_number(value: object, name: str = "number") -> float:
    """The inverse of :func:`encode_number`. Raises ValueError, which says ``name``, for others."""
    if isinstance(value, bool) or not (isinstance(value, int | float) or value in _NOT_FINITE):
        raise ValueError(f"{name!r} is not a number: {value!r}")
    return float(value)


class Journal:
    """An append-only file of records; a context manager.

    ``fresh=True`` starts an empty journal; otherwise what the file holds is kept, except a last
    line that was torn off by the death of its writer, which is cut away. Raises
    :class:`JournalError` when the file cannot be opened or a record cannot be written. After a
    failed write the journal takes no further records, so that no line is glued to a torn one.
    """

    def __init__(self, path: str | os.PathLike[str], *, fresh: bool = False) -> None:
        self.path = Path(path)
        self._failure: str | None = None
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if fresh else 0)
        try:
            self._fd = os.open(self.path, flags, 0o666)
            _cut_torn_line(self._fd)
        except OSError as error:
            raise JournalError(f"cannot open the journal {self.path}: {error.strerror}") from error

    def append(self, record: Record) -> None:
        """Write one record; it is with the operating system when this returns."""
        if self._failure is not None:
            raise JournalError(self._failure)
        data = _line(record)
        try:
            written = os.write(self._fd, data)
            if written < len(data):  # A disk that fills up takes a part of the line.
                written += os.write(self._fd, data[written:])
            if written < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._failure = (
                f"cannot write to the journal {self.path}: {error.strerror}. "
                "The records before this one are kept; free some space or choose another "
                "--report-dir, and run again"
            )
            raise JournalError(self._failure) from error

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _line(record: Record) -> bytes:
    text = json.dumps(record.to_json(), separators=(",", ":"), allow_nan=False)
    return f"{text}\n".encode("ascii")


def render_journal(records: Iterable[Record]) -> bytes:
    """The bytes of a journal that holds these records."""
    return b"".join(map(_line, records))


def _cut_torn_line(fd: int) -> None:
    """Cut an unfinished last line off, so that the next one does not continue it."""
    size = os.fstat(fd).st_size
    end = size
    while end > 0:
        start = max(0, end - 65536)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(fd, end)


class JournalContent(NamedTuple):
    """What :func:`read_journal` found."""

    records: list[Record]
    torn: str | None
    """The text of a last line without its line end, which counts as not written; None if whole."""


def read_journal(path: str | os.PathLike[str]) -> JournalContent:
    """Read all records, in the order in which they were written.

    Raises :class:`JournalError`, with file and line, for anything but whole records. A last line
    without its line end is given back as torn.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise JournalError(f"cannot read the journal {path}: {error.strerror}") from error
    *lines, torn = data.split(b"\n")
    records = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(Record.from_json(parse_json(line)))
        except ValueError as error:
            raise JournalError(f"{path}:{number}: not a record: {error}") from error
    return JournalContent(records, torn.decode("utf-8", "replace") if torn else None)
