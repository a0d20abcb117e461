"""From records and the plan to the report: counts, shares, extremes, and what is missing.

Every planned cell is counted once. A cell without record is listed as missing and is in no
outcome's count; a cell with several records counts as the worst of them.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from conformance.harness.cells import Cell
from conformance.harness.outcomes import Outcome
from conformance.report.records import PATHS, Record, encode_number

SCHEMA = 1
"""Version of report.json; raised when a key changes its meaning or goes away."""

SEVERITY = (
    Outcome.CRASH,
    Outcome.TIMEOUT,
    Outcome.ERROR,
    Outcome.FAIL,
    Outcome.INCONCLUSIVE,
    Outcome.UNSUPPORTED,
    Outcome.NOT_APPLICABLE,
    Outcome.PASS,
)
"""All outcomes, the worst first: where one must stand for several, it is the first of these."""

RED = tuple(outcome.value for outcome in SEVERITY if outcome.is_red)
"""The outcomes that count as failed, the worst first."""

_EXTREMES = ("max_abs_error", "max_rel_error", "max_ulp_error")
_SLOWEST = 10


def build_report(
    records: Iterable[Record],
    plan: Iterable[Cell],
    environment: Mapping[str, Any],
    interrupted: bool = False,
) -> dict[str, Any]:
    """The report as JSON values, in the layout that ``docs/report.md`` describes.

    ``complete`` is true only when the run was not interrupted and every planned cell has exactly
    one record and every record a planned cell.
    """
    planned = sorted(set(plan))
    by_cell: dict[Cell, list[Record]] = {}
    for record in records:
        by_cell.setdefault(record.cell, []).append(record)
    kept = {cell: min(found, key=_severity) for cell, found in sorted(by_cell.items())}

    wanted = set(planned)
    missing = [cell for cell in planned if cell not in by_cell]
    unplanned = [cell for cell in kept if cell not in wanted]
    doubled = {cell: by_cell[cell] for cell in kept if len(by_cell[cell]) > 1}
    return {
        "schema": SCHEMA,
        "interrupted": interrupted,
        "complete": not (interrupted or missing or unplanned or doubled),
        "environment": dict(environment),
        "plan": _count_plan(planned),
        "summary": _summarise(list(kept.values())),
        "missing": [cell.id for cell in missing],
        "unplanned": [cell.id for cell in unplanned],
        "doubled": {
            cell.id: [record.outcome.value for record in found] for cell, found in doubled.items()
        },
        "cells": [record.to_json() for record in kept.values()],
    }


def _severity(record: Record) -> int:
    return SEVERITY.index(record.outcome)


def _count_plan(planned: Sequence[Cell]) -> dict[str, Any]:
    areas: dict[str, Counter[str]] = {}
    for cell in planned:
        areas.setdefault(cell.area, Counter())[cell.check] += 1
    return {
        "cells": len(planned),
        "areas": {
            area: {"cells": checks.total(), "checks": dict(checks)}
            for area, checks in areas.items()
        },
    }


def _summarise(records: Sequence[Record]) -> dict[str, Any]:
    return {
        "outcomes": _count_outcomes(records),
        "areas": _grouped(records, lambda record: record.area),
        "checks": _grouped(records, lambda record: f"{record.area}/{record.check}"),
        "dtypes": _grouped(records, lambda record: record.dtype),
        "paths": _paths(records),
        "samples": sum(record.samples or 0 for record in records),
        "durations": _durations(records),
        "largest_errors": {
            "pass": _largest([r for r in records if r.outcome is Outcome.PASS]),
            "fail": _largest([r for r in records if r.outcome is Outcome.FAIL]),
        },
        "reruns": _reruns(records),
        "devices": _grouped(records, lambda record: record.device),
        "signatures": _signatures(records),
    }


def _count_outcomes(records: Iterable[Record]) -> dict[str, int]:
    counts = Counter(record.outcome for record in records)
    return {outcome.value: counts[outcome] for outcome in Outcome}


def _grouped(records: Iterable[Record], key: Callable[[Record], str]) -> dict[str, dict[str, int]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return {name: _count_outcomes(found) for name, found in sorted(groups.items())}


def _paths(records: Iterable[Record]) -> dict[str, dict[str, float]]:
    """Cells by path, and the share among the cells of which the path is known."""
    counts = Counter(record.path for record in records if record.path)
    total = counts.total()
    return {
        path: {"cells": counts[path], "share": round(counts[path] / total, 6) if total else 0.0}
        for path in PATHS
    }


def _durations(records: Iterable[Record]) -> dict[str, Any]:
    timed = [(r.duration_s, r.cell.id) for r in records if r.duration_s is not None]
    timed.sort(key=lambda pair: (-pair[0], pair[1]))
    seconds = [duration for duration, _ in timed]
    return {
        "total_s": round(math.fsum(seconds), 3),
        "median_s": round(statistics.median(seconds), 6) if seconds else 0.0,
        "slowest": [{"cell": cell, "duration_s": duration} for duration, cell in timed[:_SLOWEST]],
    }


def _largest(records: Sequence[Record]) -> dict[str, Any]:
    """The largest figure of each kind and its cell; a NaN is larger than anything."""
    found = {}
    for name in _EXTREMES:
        known = [record for record in records if getattr(record, name) is not None]
        if known:
            top = max(known, key=lambda record: _rank(getattr(record, name)))
            found[name] = {"value": encode_number(getattr(top, name)), "cell": top.cell.id}
    return found


def _rank(value: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(value) else (False, value)


def _signatures(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Whatever did not pass, by outcome and signature, the most frequent first."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.outcome is not Outcome.PASS:
            groups.setdefault(
                (record.outcome.value, describe(record.signature, record.reason)), []
            ).append(record)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        {
            "outcome": outcome,
            "signature": signature,
            "count": len(found),
            "example": found[0].cell.id,
            **({"reason": found[0].reason} if found[0].reason else {}),
        }
        for (outcome, signature), found in ordered
    ]


def is_red(report: Mapping[str, Any]) -> bool:
    """Whether some cell counts as failed."""
    outcomes = report["summary"]["outcomes"]
    return any(outcomes[outcome] for outcome in RED)


def _reruns(records: Iterable[Record]) -> dict[str, Any]:
    """Cells that were run twice: after an end of their own, and after another's."""
    confirmed = 0
    flaky: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    for record in records:
        if record.flaky and record.rerun is not None:
            flaky[record.cell.id] = [record.outcome.value, record.rerun.value]
        confirmed += record.flaky is False
        if record.rerun_after is not None:
            after.setdefault(record.rerun_after, []).append(record.cell.id)
    return {"confirmed": confirmed, "flaky": flaky, "after": dict(sorted(after.items()))}


def describe(signature: str | None, reason: str | None) -> str:
    """What cells that did not pass are grouped by: the signature, else the reason."""
    return signature or reason or "(no reason recorded)"


def incompleteness(report: Mapping[str, Any]) -> list[str]:
    """What keeps records and plan from agreeing, a sentence each; empty when they do."""
    sentences = []
    if report["interrupted"]:
        sentences.append("The run was interrupted: this report is partial.")
    for key, one, many in (
        ("missing", "planned cell has no record", "planned cells have no record"),
        ("unplanned", "record belongs to no planned cell", "records belong to no planned cell"),
        ("doubled", "cell has several records", "cells have several records"),
    ):
        cells = list(report[key])
        if cells:
            sentences.append(f"{len(cells)} {one if len(cells) == 1 else many}, e.g. {cells[0]}.")
    return sentences
