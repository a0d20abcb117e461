"""The summary that ends a run, for the terminal: plain text of at most some 40 lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from conformance.harness.outcomes import Outcome
from conformance.report.build import RED, incompleteness
from conformance.report.records import decode_number
from conformance.report.text import shorten

_SIGNATURES = 10
_RERUNS = 5
_WIDTH = 100
_SUBJECT_WIDTH = 300
_COLOURS = {"red": 31, "green": 32, "yellow": 33}
_WORDS = {Outcome.PASS.value: "passed", Outcome.FAIL.value: "failed"}
_ERRORS = {"max_abs_error": "absolute", "max_rel_error": "relative", "max_ulp_error": "ULP"}

_Paint = Callable[[str, str], str]


def terminal_summary(
    report: Mapping[str, Any],
    report_dir: str | os.PathLike[str] | None = None,
    color: bool = False,
) -> str:
    """Counts, shares of the paths, largest errors, frequent failures, where the reports are."""

    def paint(text: str, colour: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if color else text

    lines = [
        f"{subject(report)}: {report['plan']['cells']} planned cells, "
        f"{len(report['cells'])} recorded, {report['summary']['samples']} samples"
    ]
    lines += _outcomes(report["summary"], paint)
    lines += _paths(report["summary"])
    lines += _largest(report["summary"])
    lines += _failures(report["summary"], paint)
    lines += _reruns(report["summary"]["reruns"], paint)
    lines += [paint(text, "red") for text in incompleteness(report)]
    if report_dir is not None:
        lines.append(f"reports in {Path(report_dir)}: matrix.md, report.json, junit.xml")
    return "\n".join(lines)


def subject(report: Mapping[str, Any]) -> str:
    """Device, its backend and torch, e.g. ``accel (torch-accel 0.1.0) on torch 2.13.0``."""
    environment = report["environment"]
    text = environment.get("device", {}).get("name", "unknown device")
    backends = [
        " ".join(filter(None, (backend["distribution"] or backend["module"], backend["version"])))
        for backend in environment.get("backend", ())
    ]
    if backends:
        text += f" ({', '.join(backends)})"
    version = environment.get("torch", {}).get("version")
    return shorten(f"{text} on torch {version}" if version else text, _SUBJECT_WIDTH)


def _outcomes(summary: Mapping[str, Any], paint: _Paint) -> list[str]:
    lines = []
    for outcome, count in summary["outcomes"].items():
        if count or outcome in _WORDS:
            line = f"  {_WORDS.get(outcome, outcome.replace('_', ' ')):<16}{count:>7}"
            if count:
                line = paint(line, _colour(outcome))
            lines.append(line)
    return lines


def _colour(outcome: str) -> str:
    if outcome == Outcome.PASS.value:
        return "green"
    return "red" if outcome in RED else "yellow"


def _paths(summary: Mapping[str, Any]) -> list[str]:
    paths = summary["paths"]
    if not any(entry["cells"] for entry in paths.values()):
        return []
    shares = (
        f"{entry['share']:.1%} {path} ({entry['cells']} cells)" for path, entry in paths.items()
    )
    return ["path: " + ", ".join(shares)]


def _largest(summary: Mapping[str, Any]) -> list[str]:
    found = summary["largest_errors"]["pass"]
    if not found:
        return []
    lines = ["largest errors in passed cells:"]
    for name, word in _ERRORS.items():
        if name in found:
            value = decode_number(found[name]["value"])
            lines.append(f"  {word:<10}{value:<11.4g}{found[name]['cell']}")
    return lines


def _failures(summary: Mapping[str, Any], paint: _Paint) -> list[str]:
    found = [entry for entry in summary["signatures"] if entry["outcome"] in RED]
    if not found:
        return []
    title = "failures by signature:"
    if len(found) > _SIGNATURES:
        title = f"the {_SIGNATURES} most frequent of {len(found)} failure signatures:"
    lines = [title]
    for entry in found[:_SIGNATURES]:
        label = paint(f"{entry['count']:>6} {entry['outcome']}", "red")
        lines.append(f"{label}  {shorten(entry['signature'], _WIDTH - 16)}")
        lines.append(f"         e.g. {entry['example']}")
    return lines


def _reruns(reruns: Mapping[str, Any], paint: _Paint) -> list[str]:
    """Cells that were run twice, by name as far as there is room."""
    lines = []
    if reruns["confirmed"]:
        lines.append(f"run twice with the same outcome: {reruns['confirmed']}")
    flaky = reruns["flaky"]
    if flaky:
        lines.append(paint(f"flaky, run twice with different outcomes: {len(flaky)}", "yellow"))
        lines += [f"  {first}, then {second}: {cell}" for cell, (first, second) in _few(flaky)]
        lines += _more(flaky)
    after = reruns["after"]
    if after:
        count = sum(map(len, after.values()))
        lines.append(f"run again since the device was broken: {count}")
        lines += [f"  {len(cells)} after {cell}" for cell, cells in _few(after)]
        lines += _more(after)
    return lines


def _few(found: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list(found.items())[:_RERUNS]


def _more(found: Mapping[str, Any]) -> list[str]:
    return [f"  and {len(found) - _RERUNS} more"] if len(found) > _RERUNS else []
