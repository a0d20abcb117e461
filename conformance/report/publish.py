"""Publish a report: a copy to be kept under version control.

``python -m conformance.report.publish REPORT_DIR TARGET_DIR`` writes report.json.gz,
records.jsonl.gz, matrix.md and environment.json. Absolute paths in messages are cut to their tail,
records are sorted by cell, and equal contents give equal bytes. Exit code 0 when published, 1 when
the report is not complete, 2 when it could not be read or written.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.report.build import incompleteness
from conformance.report.matrix import render_matrix
from conformance.report.records import JournalError, read_journal
from conformance.report.write import (
    ReportDirError,
    ReportReadError,
    read_report,
    render_json,
    replace_files,
)

MAX_BYTES = 5_000_000
"""Most that one published report may take: it stays in the repository's history for ever."""

# An absolute path, or one that climbs by "..", of two names or more; not a part of a URL.
_PATH = re.compile(r"(?<![\w:/.~-])(?:\.\.)?(?:/[\w.+@~-]+){2,}")
_PACKAGES = re.compile(r".*/(?:site|dist)-packages/")


class PublishError(Exception):
    """A report that must not be published; the message says why."""


def publish(
    report_dir: str | os.PathLike[str], target_dir: str | os.PathLike[str]
) -> dict[str, int]:
    """Publish a report directory; gives the names of the files written and their sizes in bytes.

    Raises :class:`PublishError` for a report that is not complete, not of the journal beside it or
    too large, and what reading and writing raise.
    """
    report = read_report(Path(report_dir) / "report.json")
    problems = incompleteness(report)
    if problems:
        raise PublishError(f"{report_dir} is not complete: {' '.join(problems)}")
    records, _ = read_journal(Path(report_dir) / "records.jsonl")
    cells = [record.to_json() for record in sorted(records, key=lambda record: record.cell)]
    if cells != report["cells"]:
        raise PublishError(
            f"report.json and records.jsonl in {report_dir} are not of the same run; run again"
        )

    public = hide_paths(report)
    lines = [json.dumps(values, separators=(",", ":")) for values in public["cells"]]
    files = {
        "report.json.gz": _compress(render_json(public)),
        "records.jsonl.gz": _compress("".join(f"{line}\n" for line in lines).encode("ascii")),
        "matrix.md": render_matrix(public).encode("utf-8", "backslashreplace"),
        "environment.json": (json.dumps(public["environment"], indent=2) + "\n").encode("ascii"),
    }
    sizes = {name: len(data) for name, data in files.items()}
    if sum(sizes.values()) > MAX_BYTES:
        raise PublishError(
            f"the published files would take {sum(sizes.values()):,} bytes, more than the "
            f"{MAX_BYTES:,} that are allowed; narrow the run (--area, --check, --op, --dtype)"
        )
    replace_files(target_dir, files)
    return sizes


def hide_paths(value: Any) -> Any:
    """A copy of JSON values without this machine's paths: only their last part is left.

    Of a path into an installed package what follows site-packages is left.
    """
    if isinstance(value, str):
        return _PATH.sub(_tail, value)
    if isinstance(value, Mapping):
        return {key: hide_paths(item) for key, item in value.items()}
    if isinstance(value, list):
        return [hide_paths(item) for item in value]
    return value


def _tail(match: re.Match[str]) -> str:
    path = match[0]
    package = _PACKAGES.match(path)
    return path[package.end() :] if package else path.rpartition("/")[2]


def _compress(data: bytes) -> bytes:
    """gzip without name and time, so that equal contents give equal bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as file:
        file.write(data)
    return buffer.getvalue()


def main() -> int:
    """The command line; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m conformance.report.publish",
        description="Copy a report to where it is published, compressed and without "
        "private paths. Exit code: 0 published, 1 not complete, 2 cannot be read or written.",
    )
    parser.add_argument("report_dir", metavar="REPORT_DIR", help="where a run left its reports")
    parser.add_argument("target_dir", metavar="TARGET_DIR", help="where to publish them")
    arguments = parser.parse_args()
    try:
        sizes = publish(arguments.report_dir, arguments.target_dir)
    except PublishError as error:
        print(f"not published: {error}", file=sys.stderr)
        return 1
    except (JournalError, ReportDirError, ReportReadError) as error:
        print(f"not published: {error}", file=sys.stderr)
        return 2
    print(f"published in {arguments.target_dir}:")
    for name, size in sizes.items():
        print(f"  {name:<18}{size:>10,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
