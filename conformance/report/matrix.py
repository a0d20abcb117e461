"""matrix.md: the report as Markdown that a code host shows as it is.

Code hosts stop rendering at about 500 KB. The tables grow with operators and dtypes only, the lists
of what did not pass are cut at a number of signatures and operators and say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from conformance.harness.cells import Cell
from conformance.harness.outcomes import Outcome
from conformance.report.build import RED, SEVERITY, describe, incompleteness
from conformance.report.opgroups import GROUPS, UNGROUPED, group_of
from conformance.report.records import PATHS, cell_of, decode_number
from conformance.report.summary import subject
from conformance.report.text import shorten

_MISSING = "missing"
# Key, symbol, meaning; where several checks share a place in a table, the first of them is shown.
_SYMBOLS = {
    "crash": ("💥", "the process died"),
    "timeout": ("⏰", "no answer in time"),
    "error": ("⚠️", "the harness failed"),
    _MISSING: ("❓", "planned, did not run"),
    "fail": ("❌", "wrong"),
    "inconclusive": ("❔", "could not be judged"),
    "unsupported": ("🚫", "refused cleanly"),
    "not_applicable": ("·", "has no meaning here"),
    "pass fallback": ("○", "right, by falling back to the CPU"),
    "pass": ("✓", "right, path not known"),
    "pass composite": ("◐", "right, composed by torch of other operators of the device"),
    "pass native": ("●", "right, by a kernel of the device"),
}
_RANK = {key: rank for rank, key in enumerate(_SYMBOLS)}

# Dtypes in the order of columns, with torch's own abbreviations (``torch.dtype.abbr``).
DTYPES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "complex128": "c128",
    "complex64": "c64",
    "complex32": "c32",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint64": "u64",
    "uint32": "u32",
    "uint16": "u16",
    "uint8": "u8",
    "bool": "b8",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e4m3fnuz": "f8e4m3fnuz",
    "float8_e5m2": "f8e5m2",
    "float8_e5m2fnuz": "f8e5m2fnuz",
    "float8_e8m0fnu": "f8e8m0fnu",
    "": "no dtype",
}
_DTYPE_RANK = {dtype: rank for rank, dtype in enumerate(DTYPES)}

_ROWS_UNFOLDED = 12
_MAX_SIGNATURES = 100
_MAX_OPERATORS = 30
_MAX_RERUNS = 100
_SIGNATURE_WIDTH = 200


class _Entry(NamedTuple):
    """One planned cell as the matrix sees it; ``state`` is a key of the symbols."""

    cell: Cell
    state: str


def render_matrix(report: Mapping[str, Any]) -> str:
    """The report as Markdown."""
    entries = [_Entry(cell_of(values), _state(values)) for values in report["cells"]]
    entries += [_Entry(Cell.from_id(cell_id), _MISSING) for cell_id in report["missing"]]
    lines = [f"# Conformance of {subject(report)}", ""]
    for sentence in incompleteness(report):
        lines += [f"> **{sentence}**", ""]
    lines += _summary(report)
    lines += _operators(entries)
    lines += _lists(report)
    return "\n".join(lines)


def _state(values: Mapping[str, Any]) -> str:
    if values["outcome"] == Outcome.PASS.value and "path" in values:
        return f"pass {values['path']}"
    return values["outcome"]


def _summary(report: Mapping[str, Any]) -> list[str]:
    summary = report["summary"]
    recorded = len(report["cells"])
    lines = [
        "## Summary",
        "",
        f"{report['plan']['cells']:,} planned cells, {recorded:,} recorded, "
        f"{summary['samples']:,} samples.",
        "",
    ]
    lines += _table(
        ("Outcome", "Cells", "Share"),
        [
            (outcome.replace("_", " "), f"{count:,}", _share(count, recorded))
            for outcome, count in summary["outcomes"].items()
            if count or outcome in (Outcome.PASS.value, Outcome.FAIL.value)
        ],
    )
    lines += _table(
        ("Path", "Cells", "Share"),
        [
            (path, f"{summary['paths'][path]['cells']:,}", f"{summary['paths'][path]['share']:.1%}")
            for path in PATHS
        ],
    )
    for what, key in (("passed", "pass"), ("failed", "fail")):
        found = summary["largest_errors"][key]
        rows = [
            (
                name.split("_")[1],
                f"{decode_number(found[name]['value']):.4g}",
                _code(found[name]["cell"]),
            )
            for name in found
        ]
        if rows:
            lines += _table((f"Largest error in {what} cells", "Value", "Cell"), rows)
    shown = [outcome for outcome, count in summary["outcomes"].items() if count]
    titles = [("Area and check", "checks"), ("Dtype", "dtypes")]
    if len(summary["devices"]) > 1:
        titles.append(("Device", "devices"))
    for title, key in titles:
        groups = summary[key]
        if key == "dtypes":
            groups = {
                dtype or DTYPES[""]: groups[dtype] for dtype in sorted(groups, key=_dtype_key)
            }
        lines += _table(
            (title, *(outcome.replace("_", " ") for outcome in shown)),
            [
                (name, *(f"{counts[outcome]:,}" if counts[outcome] else "" for outcome in shown))
                for name, counts in groups.items()
            ],
        )
    return lines + _environment(report["environment"])


def _share(count: int, total: int) -> str:
    return f"{count / total:.1%}" if total else ""


def _environment(environment: Mapping[str, Any]) -> list[str]:
    rows = []
    for key, value in environment.items():
        if isinstance(value, Mapping):
            value = ", ".join(
                f"{name} {item}" for name, item in value.items() if item not in (None, "")
            )
        elif isinstance(value, list):
            value = "; ".join(", ".join(f"{k} {v}" for k, v in item.items() if v) for item in value)
        if value:
            rows.append((key, shorten(str(value), 400).replace("|", "\\|")))
    return [
        "<details><summary>Environment</summary>",
        "",
        *_table(("Environment", "Value"), rows, rule=":--"),
        "</details>",
        "",
    ]


def _operators(entries: Sequence[_Entry]) -> list[str]:
    groups: dict[str, list[_Entry]] = {}
    for entry in entries:
        groups.setdefault(_group(entry.cell), []).append(entry)
    used = {entry.state for entry in entries}
    lines = ["## Operators", ""]
    lines += [
        f"- {symbol} {meaning}" for state, (symbol, meaning) in _SYMBOLS.items() if state in used
    ]
    lines += [
        "",
        "An empty place is not planned: OpInfo does not claim that dtype.",
        "Where several checks cover an operator and dtype, the worst result is shown.",
        "Dtypes are abbreviated as `torch.dtype.abbr` does: f32 is float32, bf16 bfloat16,",
        "c64 complex64, i64 int64, u8 uint8, b8 bool.",
        "",
    ]
    known = [name for name in GROUPS if name in groups]
    for name in known + sorted(set(groups) - set(known)):
        lines += _group_table(name, groups[name])
    return lines


def _group(cell: Cell) -> str:
    group = group_of(cell.op)
    return f"Others, of area {cell.area}" if group == UNGROUPED else group


def _group_table(name: str, entries: Sequence[_Entry]) -> list[str]:
    rows: dict[str, dict[str, str]] = {}
    for cell, state in entries:
        row = rows.setdefault(cell.full_op or cell.check, {})
        row[cell.dtype] = min(row.get(cell.dtype, state), state, key=_RANK.__getitem__)
    dtypes = sorted({entry.cell.dtype for entry in entries}, key=_dtype_key)
    table = _table(
        ("Operator", *(DTYPES.get(dtype, dtype) for dtype in dtypes)),
        [
            (
                _code(operator),
                *(_SYMBOLS[row[dtype]][0] if dtype in row else "" for dtype in dtypes),
            )
            for operator, row in sorted(rows.items())
        ],
        rule=":-:",
    )
    passed = sum(state.startswith("pass") for _, state in entries)
    count = f"{_count(len(rows), 'operator')}, {passed:,} of {_count(len(entries), 'cell')} pass"
    if len(rows) <= _ROWS_UNFOLDED:
        return [f"### {name}", "", f"{count}.", "", *table]
    return [f"### {name}", "", f"<details><summary>{count}</summary>", "", *table, "</details>", ""]


def _dtype_key(dtype: str) -> tuple[int, str]:
    return _DTYPE_RANK.get(dtype, len(_DTYPE_RANK)), dtype


def _lists(report: Mapping[str, Any]) -> list[str]:
    by_outcome: dict[str, dict[str, list[Cell]]] = {}
    for values in report["cells"]:
        if values["outcome"] != Outcome.PASS.value:
            text = describe(values.get("signature"), values.get("reason"))
            by_outcome.setdefault(values["outcome"], {}).setdefault(text, []).append(
                cell_of(values)
            )
    several = len(report["summary"]["checks"]) > 1
    lines = []
    titles = {"fail": "Failures", "not_applicable": "Not applicable"}
    for outcome in (outcome.value for outcome in SEVERITY):
        if outcome in by_outcome:
            title = titles.get(outcome, outcome.capitalize())
            lines += _signature_list(title, by_outcome[outcome], several, folded=outcome not in RED)
    for title, key in (
        ("Planned but not run", "missing"),
        ("Run but not planned", "unplanned"),
        ("More than one record", "doubled"),
    ):
        if report[key]:
            cells = [Cell.from_id(cell_id) for cell_id in report[key]]
            lines += [
                f"## {title}",
                "",
                f"{_count(len(cells), 'cell')}: {_cells(cells, several)}",
                "",
            ]
    return lines + _reruns(report["summary"]["reruns"])


def _reruns(reruns: Mapping[str, Any]) -> list[str]:
    """Cells that were run twice and did not end alike, and those whose device was broken."""
    lines = []
    flaky = [
        f"- {first}, then {second}: {_code(cell)}"
        for cell, (first, second) in reruns["flaky"].items()
    ]
    if flaky:
        count = _count(len(flaky), "cell")
        lines += ["## Flaky", "", f"{count}, run twice with different outcomes; the first counts."]
        lines += ["", *_cut(flaky), ""]
    after = reruns["after"]
    if after:
        count = _count(sum(map(len, after.values())), "cell")
        text = f"{count}, since another cell had left the device broken:"
        lines += ["## Run again in a fresh process", "", text, ""]
        lines += _cut([
            f"- after {_code(breaker)}: {_cells(map(Cell.from_id, cells), True)}"
            for breaker, cells in after.items()
        ])  # fmt: skip
        lines.append("")
    return lines


def _cut(lines: Sequence[str]) -> list[str]:
    more = len(lines) - _MAX_RERUNS
    kept = list(lines[:_MAX_RERUNS])
    return [*kept, f"- and {more:,} more in report.json"] if more > 0 else kept


def _signature_list(
    title: str, groups: Mapping[str, Sequence[Cell]], several: bool, folded: bool
) -> list[str]:
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    lines = [
        f"- **{len(cells):,}** {_code(shorten(text, _SIGNATURE_WIDTH))}: {_cells(cells, several)}"
        for text, cells in ordered[:_MAX_SIGNATURES]
    ]
    if len(ordered) > _MAX_SIGNATURES:
        lines.append(f"- and {len(ordered) - _MAX_SIGNATURES:,} more signatures in report.json")
    cell_count = _count(sum(map(len, groups.values())), "cell")
    count_text = f"{cell_count}, {_count(len(groups), 'signature')}"
    if folded:
        lines = [f"<details><summary>{count_text}</summary>", "", *lines, "", "</details>"]
    else:
        lines = [f"{count_text}.", "", *lines]
    return [f"## {title}", "", *lines, ""]


def _cells(cells: Iterable[Cell], several_checks: bool) -> str:
    """Cells by operator with their dtypes; the check is named where there are several."""
    dtypes: dict[str, list[str]] = {}
    for cell in cells:
        name = cell.full_op or cell.check
        if several_checks:
            name = f"{cell.area}/{cell.check} {cell.full_op}".rstrip()
        dtypes.setdefault(name, []).append(cell.dtype)
    parts = []
    for name, found in list(dtypes.items())[:_MAX_OPERATORS]:
        short = ", ".join(
            DTYPES.get(dtype, dtype) for dtype in sorted(found, key=_dtype_key) if dtype
        )
        parts.append(f"{_code(name)} ({short})" if short else _code(name))
    if len(dtypes) > _MAX_OPERATORS:
        parts.append(f"and {len(dtypes) - _MAX_OPERATORS:,} more operators")
    return ", ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _code(text: str) -> str:
    """A code span, whatever the text holds."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], rule: str = "--:") -> list[str]:
    """A Markdown table and an empty line; ``rule`` aligns all columns after the first."""
    lines = [_row(header), _row([":--"] + [rule] * (len(header) - 1))]
    return [*lines, *map(_row, rows), ""]


def _row(values: Iterable[str]) -> str:
    return "|" + "|".join(values) + "|"
