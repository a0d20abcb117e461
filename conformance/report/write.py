"""Writing and reading report directories. Files change whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from conformance.report.build import SCHEMA
from conformance.report.junit import render_junit
from conformance.report.matrix import render_matrix
from conformance.report.text import parse_json


class ReportDirError(Exception):
    """A report directory that cannot be used; the message says which, why and what to do."""


class ReportReadError(Exception):
    """A report.json that cannot be read; the message says which, why and what to do."""


def check_writable(report_dir: str | os.PathLike[str]) -> None:
    """Make the directory and try to write in it, before a run is spent on it.

    Raises :class:`ReportDirError` when that fails.
    """
    directory = Path(report_dir)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, prefix=".probe-") as probe:
            probe.write(b"x")
            probe.flush()
    except OSError as error:
        raise ReportDirError(
            f"the report directory {directory} cannot be written: {_explain(error)}. "
            "Give another with --report-dir"
        ) from error


def write_reports(report_dir: str | os.PathLike[str], report: Mapping[str, Any]) -> list[Path]:
    """Write report.json, junit.xml and matrix.md; gives their paths.

    Either all three are replaced or, when there is no room, none. Raises :class:`ReportDirError`.
    """
    return replace_files(report_dir, render_reports(report))


def render_reports(report: Mapping[str, Any]) -> dict[str, bytes]:
    """The files that show a report, by name."""
    return {
        "report.json": render_json(report),
        "junit.xml": render_junit(report),
        "matrix.md": render_matrix(report).encode("utf-8", "backslashreplace"),
    }


def replace_files(report_dir: str | os.PathLike[str], contents: Mapping[str, bytes]) -> list[Path]:
    """Write named files into a directory, all of them before the first old one is replaced.

    Raises :class:`ReportDirError` when they cannot be written; the old files are then as before.
    """
    directory = Path(report_dir)
    staged: list[tuple[str, Path]] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in contents.items():
            fd, temporary = tempfile.mkstemp(dir=directory, prefix=f".{name}-")
            staged.append((temporary, directory / name))
            with open(fd, "wb") as file:
                file.write(data)
            os.chmod(temporary, 0o644)
        for _, target in staged:
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, f"{target.name} is a directory")
        for temporary, target in staged:
            os.replace(temporary, target)
    except OSError as error:
        raise ReportDirError(
            f"cannot write the reports into {directory}: {_explain(error)}. Earlier reports there "
            "are unchanged and the journal is kept; free some space or give another --report-dir"
        ) from error
    finally:
        for temporary, _ in staged:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    return [target for _, target in staged]


def remove_files(report_dir: str | os.PathLike[str], names: Iterable[str]) -> None:
    """Remove the files of those names that are there, in that order. Raises ReportDirError.

    What a process left of them that was killed while it wrote goes with them.
    """
    for name in names:
        try:
            for path in (Path(report_dir, name), *Path(report_dir).glob(f".{name}-*")):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise ReportDirError(
                f"cannot remove {Path(report_dir, name)}, which an earlier run left: "
                f"{_explain(error)}. Give another --report-dir"
            ) from error


def _explain(error: OSError) -> str:
    return error.strerror or str(error)


def render_json(report: Mapping[str, Any]) -> bytes:
    """report.json: compact, with one cell a line so that text tools can work on it."""
    return "".join(_json_pieces(report)).encode("ascii")


def _json_pieces(report: Mapping[str, Any]) -> Iterator[str]:
    def dump(value: object) -> str:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)

    yield "{\n"
    for key, value in report.items():
        if key != "cells":
            yield f"{dump(key)}:{dump(value)},\n"
    yield '"cells":[\n'
    yield ",\n".join(map(dump, report["cells"]))
    yield "\n]}\n"


def read_report(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a report.json.

    Raises :class:`ReportReadError` when it is not there, not whole, or of another schema.
    """
    try:
        report = parse_json(Path(path).read_bytes())
    except OSError as error:
        raise ReportReadError(f"cannot read {path}: {_explain(error)}") from error
    except ValueError as error:
        raise ReportReadError(f"{path} is not a whole JSON file ({error}); run again") from error
    schema = report.get("schema") if isinstance(report, dict) else None
    if schema != SCHEMA:
        raise ReportReadError(
            f"{path} has schema {schema!r}, this version reads {SCHEMA}; "
            "use the version of the suite that wrote it"
        )
    return report
