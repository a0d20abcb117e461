"""Join the reports of shards into the report of the whole.

Every shard's folder holds the whole plan, so what is missing is named although nothing of it is
there. Shards of different builds, options or cuts are refused: no report may speak of two things.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.harness.cells import Cell
from conformance.harness.shards import Shard
from conformance.report import identity as identities
from conformance.report import plan_file
from conformance.report.build import build_report, is_red
from conformance.report.plan_file import Plan, PlanError, read_plan
from conformance.report.records import JournalError, Record, read_journal, render_journal
from conformance.report.summary import terminal_summary
from conformance.report.write import (
    ReportDirError,
    ReportReadError,
    read_report,
    render_reports,
    replace_files,
)

_NAMED = 20
_OF_THE_SHARD = ("shard", "durations")
"""Options that say how the plan was cut, which the whole does not have."""


class MergeError(Exception):
    """Reports that cannot be joined; the message says why."""


@dataclass
class Part:
    """What the folder of one shard holds."""

    folder: Path
    identity: Mapping[str, Any]
    plan: Plan
    records: list[Record]
    environment: Mapping[str, Any]


@dataclass
class Merged:
    """The whole, and what keeps it from being whole."""

    report: dict[str, Any]
    plan: Plan
    identity: Mapping[str, Any]
    records: list[Record]
    problems: list[str] = field(default_factory=list)
    """A sentence each; empty where every shard is there once and every cell has one record."""


def read_part(folder: str | os.PathLike[str]) -> Part:
    """Read the folder of a shard. Raises :class:`MergeError`."""
    folder = Path(folder)
    try:
        identity = identities.read_identity(folder)
        plan = read_plan(folder)
        records = read_journal(folder / "records.jsonl").records
        environment = _environment(folder, identity)
    except (identities.IdentityError, PlanError, JournalError, ReportReadError) as error:
        raise MergeError(str(error)) from error
    return Part(folder, identity, plan, records, environment)


def _environment(folder: Path, identity: Mapping[str, Any]) -> Mapping[str, Any]:
    """From report.json, which a run that was killed has not written: then what run.json knows."""
    if (folder / "report.json").exists():
        environment = read_report(folder / "report.json").get("environment")
        if not isinstance(environment, dict):
            raise MergeError(f"{folder / 'report.json'} has no environment; run that shard again")
        return environment
    build = identity["build"]
    return {
        "torch": build["torch"],
        "device": {"name": identity["options"]["device"]},
        "harness": build["harness"],
        "python": build["python"],
        "options": identity["options"],
    }


def merge(parts: Sequence[Part]) -> Merged:
    """Join the parts. Raises :class:`MergeError` where they are not parts of one whole."""
    _check_alike(parts)
    first = parts[0]
    count = first.plan.shard.count
    holders: dict[int, list[Part]] = {index: [] for index in range(1, count + 1)}
    for part in parts:
        holders[part.plan.shard.index].append(part)

    ordered = [part for index in holders for part in holders[index]]
    plan = Plan([{nodeid: cell for cells in first.plan.shards for nodeid, cell in cells.items()}])
    records = [record for part in ordered for record in part.records]
    report = build_report(records, plan.cells.values(), _joined_environment(ordered))
    whole = {
        "build": first.identity["build"],
        "options": _without_shard(first.identity["options"]),
    }
    return Merged(report, plan, whole, records, _problems(report, first.plan, holders))


def _check_alike(parts: Sequence[Part]) -> None:
    first = parts[0]
    for part in parts[1:]:
        if part.plan.shard.count != first.plan.shard.count:
            raise MergeError(
                f"{first.folder} is one of {first.plan.shard.count} shards, {part.folder} one of "
                f"{part.plan.shard.count}: they are not parts of one run"
            )
        found = identities.differences(
            first.identity,
            part.identity,
            (f"in {first.folder}", f"in {part.folder}"),
            ignore=("options.shard",),
        )
        if found:
            raise MergeError(
                "the shards are of different builds or options: "
                f"{identities.describe_differences(found)}"
            )
        if list(map(_cells, part.plan.shards)) != list(map(_cells, first.plan.shards)):
            raise MergeError(
                f"{first.folder} and {part.folder} were not cut from the same plan: their "
                "plan.json differ"
            )


def _cells(plan: Mapping[str, Cell]) -> set[Cell]:
    return set(plan.values())


def _joined_environment(parts: Sequence[Part]) -> dict[str, Any]:
    """The first part's, without what concerns the shard alone, and with all machines."""
    joined = dict(parts[0].environment)
    joined["options"] = _without_shard(joined.get("options", {}))
    machines = [part.environment["machine"] for part in parts if "machine" in part.environment]
    distinct = [machine for i, machine in enumerate(machines) if machine not in machines[:i]]
    if len(distinct) > 1:
        joined["machine"] = distinct
    return joined


def _without_shard(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in _OF_THE_SHARD}


def _problems(
    report: Mapping[str, Any], plan: Plan, holders: Mapping[int, Sequence[Part]]
) -> list[str]:
    sentences = []
    for index, found in holders.items():
        shard = Shard(index, len(holders))
        if not found:
            sentences.append(
                f"shard {shard} is missing, with {len(plan.shards[index - 1])} planned cells"
            )
        elif len(found) > 1:
            folders = ", ".join(str(part.folder) for part in found)
            sentences.append(f"shard {shard} is given {len(found)} times: {folders}")
    for key, what in (
        ("missing", "cells without a record"),
        ("doubled", "cells with several records"),
        ("unplanned", "cells that were run but are not planned"),
    ):
        cells = list(report[key])
        if cells:
            names = "".join(f"\n  {cell}" for cell in cells[:_NAMED])
            more = f"\n  and {len(cells) - _NAMED} more, in report.json"
            sentences.append(f"{what} ({len(cells)}):{names}{more if len(cells) > _NAMED else ''}")
    return sentences


def write_merged(report_dir: str | os.PathLike[str], merged: Merged) -> None:
    """Write the files that a run leaves: all of them or none. Raises ReportDirError."""
    replace_files(
        report_dir,
        {
            identities.NAME: identities.render_identity(merged.identity),
            plan_file.NAME: plan_file.render_plan(merged.plan),
            "records.jsonl": render_journal(merged.records),
            **render_reports(merged.report),
        },
    )


_DESCRIPTION = """\
Joins the report directories that runs with --shard 1/N to N/N left into the report of the whole,
and writes the same files as a run. Missing shards, missing cells and cells that were run twice are
named. Shards of different builds, options or cuts are refused. What is missing can be run
afterwards: run with the same options but for --shard, with --resume and --report-dir=OUT.
"""
_EXIT_CODES = """\
exit codes:
  0  complete, and nothing failed
  1  written, but a cell failed, is missing or was run twice
  2  could not be judged: mixed builds or options, an unreadable DIR, or OUT cannot be written;
     nothing is written
"""


def main(arguments: Sequence[str]) -> int:
    """``conformance merge``; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="conformance merge",
        description=_DESCRIPTION,
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("dirs", metavar="DIR", nargs="+", help="report directories of the shards")
    parser.add_argument(
        "--report-dir", metavar="OUT", required=True, help="where the joined report goes"
    )
    chosen = parser.parse_args(arguments)
    try:
        _check_apart(chosen.dirs, chosen.report_dir)
        merged = merge([read_part(folder) for folder in chosen.dirs])
        write_merged(chosen.report_dir, merged)
    except (MergeError, ReportDirError) as error:
        print(f"not merged: {error}", file=sys.stderr)
        return 2
    print(terminal_summary(merged.report, chosen.report_dir, sys.stdout.isatty()))
    for problem in merged.problems:
        print(problem)
    return 1 if merged.problems or is_red(merged.report) else 0


def _check_apart(folders: Iterable[str], out: str) -> None:
    if not out.strip():
        raise MergeError("--report-dir= names no directory")
    for folder in folders:
        if Path(folder).resolve() == Path(out).resolve():
            raise MergeError(f"--report-dir {out} is one of the shards: give another folder")
