"""The report's counts, and above all: a plan that does not agree with the records is reported."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from report_samples import cell, record, small_run

from conformance.harness.outcomes import Outcome
from conformance.report import build_report
from conformance.report.build import SEVERITY, incompleteness


def build(records, plan=None, **options):
    plan = [r.cell for r in records] if plan is None else plan
    return build_report(records, plan, {}, **options)


def test_every_outcome_has_a_severity_and_pass_is_the_least():
    assert sorted(SEVERITY) == sorted(Outcome)
    assert SEVERITY[-1] is Outcome.PASS


def test_counts():
    records, plan = small_run()
    report = build_report(records, plan, {"python": "3.11"})
    summary = report["summary"]
    assert report["environment"] == {"python": "3.11"}
    assert report["plan"] == {
        "cells": 12,
        "areas": {"opinfo": {"cells": 12, "checks": {"correctness": 12}}},
    }
    assert summary["outcomes"] == {
        "pass": 3,
        "fail": 2,
        "unsupported": 1,
        "crash": 1,
        "timeout": 1,
        "inconclusive": 1,
        "not_applicable": 1,
        "error": 1,
    }
    assert summary["areas"]["opinfo"] == summary["outcomes"]
    assert summary["checks"]["opinfo/correctness"] == summary["outcomes"]
    assert summary["dtypes"]["int64"]["fail"] == 1
    assert summary["samples"] == 29
    assert summary["paths"] == {
        "native": {"cells": 3, "share": 0.6},
        "composite": {"cells": 1, "share": 0.2},
        "fallback": {"cells": 1, "share": 0.2},
    }
    assert summary["durations"]["total_s"] == 0.5
    assert summary["durations"]["slowest"][0] == {
        "cell": "opinfo/correctness/add//float32",
        "duration_s": 0.25,
    }


def test_counts_add_up_to_the_cells():
    report = build_report(*small_run(), {})
    assert sum(report["summary"]["outcomes"].values()) == len(report["cells"]) == 11


def test_largest_errors_of_passed_and_failed_cells_apart():
    largest = build_report(*small_run(), {})["summary"]["largest_errors"]
    assert largest["pass"]["max_abs_error"] == {
        "value": 2e-6,
        "cell": "opinfo/correctness/sum//float32",
    }
    assert largest["pass"]["max_rel_error"]["value"] == "inf"
    assert largest["fail"]["max_abs_error"]["value"] == "nan"


@pytest.mark.parametrize("order", list(itertools.permutations((1.0, math.nan, math.inf))))
def test_nan_is_the_largest_error(order):
    records = [record(cell(str(i)), max_abs_error=value) for i, value in enumerate(order)]
    largest = build(records)["summary"]["largest_errors"]["pass"]["max_abs_error"]
    assert largest["value"] == "nan"


def test_signatures_by_frequency():
    signatures = build_report(*small_run(), {})["summary"]["signatures"]
    assert signatures[0] == {
        "outcome": "fail",
        "signature": "values differ",
        "count": 2,
        "example": "opinfo/correctness/sub//float32",
        "reason": "sample 2: values differ\nexpected 1, got 2",
    }
    assert all(entry["count"] == 1 for entry in signatures[1:])


def test_complete_only_when_plan_and_records_agree():
    report = build([record(cell("add")), record(cell("sub"))])
    assert report["complete"] is True
    assert incompleteness(report) == []


def test_planned_cell_without_record_is_missing_and_never_a_pass():
    report = build([record(cell("add"))], [cell("add"), cell("sub")])
    assert report["missing"] == ["opinfo/correctness/sub//float32"]
    assert report["complete"] is False
    assert report["summary"]["outcomes"]["pass"] == 1
    assert incompleteness(report) == [
        "1 planned cell has no record, e.g. opinfo/correctness/sub//float32."
    ]


def test_no_record_at_all():
    report = build([], [cell("add")])
    assert report["complete"] is False
    assert report["summary"]["outcomes"]["pass"] == 0


def test_record_without_plan_is_reported():
    report = build([record(cell("add"))], [])
    assert report["unplanned"] == ["opinfo/correctness/add//float32"]
    assert report["complete"] is False


def test_the_worst_of_several_records_counts_once():
    records = [record(cell("add"), outcome) for outcome in ("pass", "crash", "pass")]
    report = build(records)
    assert report["doubled"] == {"opinfo/correctness/add//float32": ["pass", "crash", "pass"]}
    assert report["complete"] is False
    assert [values["outcome"] for values in report["cells"]] == ["crash"]


def test_interrupted_is_never_complete():
    report = build([record()], interrupted=True)
    assert report["interrupted"] is True
    assert report["complete"] is False
    assert "partial" in incompleteness(report)[0]


def test_the_report_does_not_depend_on_the_order_of_records():
    records, plan = small_run()
    assert build_report(records, plan, {}) == build_report(records[::-1], plan[::-1], {})


def test_the_report_is_json():
    report = build_report(*small_run(), {})
    assert json.loads(json.dumps(report, allow_nan=False)) == report
