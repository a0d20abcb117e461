"""Durations that an earlier run recorded: what balances shards and sets time limits."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from conformance.harness.outcomes import Outcome
from conformance.report.records import cell_of, decode_number
from conformance.report.text import parse_json

_FILES = ("records.jsonl", "report.json", "records.jsonl.gz", "report.json.gz")
"""Where durations stand in a report directory; the first that is there is read."""
_CUT_SHORT = (Outcome.CRASH.value, Outcome.TIMEOUT.value)


class DurationsError(Exception):
    """Recorded durations that cannot be read; the message says which, why and what to do."""


class Durations(NamedTuple):
    """Seconds by cell id; empty where no earlier run is known."""

    seconds: Mapping[str, float] = {}
    """Of every cell that has a duration: what running it takes."""
    ended: Mapping[str, float] = {}
    """Of the cells that came to their own end: neither a crash nor cut short by a time limit."""

    @property
    def sha256(self) -> str:
        """Equal for equal durations, wherever they were read from."""
        return hashlib.sha256(json.dumps(sorted(self.seconds.items())).encode()).hexdigest()


def recorded_durations(path: str | os.PathLike[str]) -> Durations:
    """The durations in a report directory, a ``report.json`` or a ``records.jsonl``.

    The files may be compressed, named ``.gz``. The longest counts of several records of a cell.
    Raises :class:`DurationsError`.
    """
    file = _find(Path(path))
    seconds: dict[str, float] = {}
    ended: dict[str, float] = {}
    try:
        for values in _cells(file):
            if "duration_s" not in values:
                continue
            duration = decode_number(values["duration_s"], "duration_s")
            if not (math.isfinite(duration) and duration >= 0):
                raise ValueError(f"'duration_s' is not a time: {duration}")
            cell = cell_of(values).id
            seconds[cell] = max(duration, seconds.get(cell, 0.0))
            if values["outcome"] not in _CUT_SHORT:
                ended[cell] = max(duration, ended.get(cell, 0.0))
    except OSError as error:
        raise DurationsError(f"cannot read {file}: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, EOFError, zlib.error) as error:
        raise DurationsError(
            f"{file} holds no records to read durations from ({type(error).__name__}: {error}); "
            "give a report directory, its report.json or its records.jsonl, or such a file .gz"
        ) from error
    if not seconds:
        raise DurationsError(f"{file} holds no durations: give the report of a run")
    return Durations(seconds, ended)


def _find(path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in _FILES:
        if (path / name).is_file():
            return path / name
    raise DurationsError(f"{path} is no report directory: it has none of {', '.join(_FILES)}")


def _cells(file: Path) -> Iterator[Mapping[str, Any]]:
    data = file.read_bytes()
    name = file.name
    if name.endswith(".gz"):
        data, name = gzip.decompress(data), name.removesuffix(".gz")
    if name.endswith(".jsonl"):
        *lines, _ = data.split(b"\n")  # what follows the last line end is torn, or nothing
        yield from map(parse_json, lines)
    else:
        yield from parse_json(data)["cells"]
