"""junit.xml, by junitparser: one suite per area and check, one test case per cell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from junitparser import (
    Error,
    Failure,
    JUnitXml,
    Properties,
    Property,
    Skipped,
    TestCase,
    TestSuite,
)

from conformance.harness.cells import Cell
from conformance.report.records import cell_of, decode_number

# A cell that did not run is an error here, so that no reader takes it for a pass.
_RESULTS = {
    "fail": Failure,
    "crash": Error,
    "timeout": Error,
    "error": Error,
    "missing": Error,
    "unsupported": Skipped,
    "inconclusive": Skipped,
    "not_applicable": Skipped,
}
# What XML 1.0 cannot hold, not even escaped; a backend's messages may contain any of it.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PROPERTIES = ("path", "rerun", "flaky", "rerun_after")
_MESSAGE_LENGTH = 200


def render_junit(report: Mapping[str, Any]) -> bytes:
    """The report as JUnit XML."""
    suites: dict[str, list[TestCase]] = {}
    for cell, case in _cases(report):
        suites.setdefault(f"{cell.area}.{cell.check}", []).append(case)

    device = report["environment"].get("device", {}).get("name")
    xml = JUnitXml(_clean(f"conformance {device}") if device else "conformance")
    for name, cases in suites.items():
        suite = TestSuite(name)
        suite.extend(cases)
        xml.add_testsuite(suite)
    xml.update_statistics()
    return xml.tostring()


def _cases(report: Mapping[str, Any]) -> Iterator[tuple[Cell, TestCase]]:
    for values in report["cells"]:
        cell = cell_of(values)
        case = _case(cell)
        if "duration_s" in values:
            case.time = decode_number(values["duration_s"])
        known = [name for name in _PROPERTIES if name in values]
        if known:
            properties = Properties()
            for name in known:
                text = _clean(str(values[name]))
                properties.add_property(Property(name, text.lower() if name == "flaky" else text))
            case.append(properties)
        if values["outcome"] != "pass":
            reason = values.get("reason") or values.get("signature") or "(no reason recorded)"
            case.append(_result(values["outcome"], reason + _rerun(values)))
        yield cell, case
    for cell_id in report["missing"]:
        cell = Cell.from_id(cell_id)
        case = _case(cell)
        case.append(_result("missing", "planned, but there is no record: the cell did not run"))
        yield cell, case


def _rerun(values: Mapping[str, Any]) -> str:
    """What a second run showed, for readers that show no properties."""
    if "rerun" not in values:
        return ""
    word = "flaky" if values.get("flaky") else "confirmed"
    return f"\n{word}: run again alone, the outcome was {values['rerun']}"


def _case(cell: Cell) -> TestCase:
    name = f"{cell.full_op}[{cell.dtype}]" if cell.dtype else cell.full_op or cell.check
    return TestCase(_clean(name), classname=f"{cell.area}.{cell.check}")


def _result(outcome: str, reason: str) -> Failure | Error | Skipped:
    reason = _clean(reason)
    first_line = reason.strip().partition("\n")[0]
    result = _RESULTS[outcome](first_line[:_MESSAGE_LENGTH], outcome)
    if reason != first_line[:_MESSAGE_LENGTH]:
        result.text = reason
    return result


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
