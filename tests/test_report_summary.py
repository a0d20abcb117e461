"""The terminal summary."""

from __future__ import annotations

import re

from expecttest import assert_expected_inline
from report_samples import cell, record, small_run

from conformance.report import build_report, terminal_summary

ENVIRONMENT = {
    "torch": {"version": "2.13.0"},
    "device": {"name": "accel:0"},
    "backend": [{"module": "torch_accel", "distribution": "torch-accel", "version": "0.1.0"}],
}


def test_summary():
    text = terminal_summary(build_report(*small_run(), ENVIRONMENT), "build/out")
    assert_expected_inline(
        text,
        """\
accel:0 (torch-accel 0.1.0) on torch 2.13.0: 12 planned cells, 11 recorded, 29 samples
  passed                3
  failed                2
  unsupported           1
  crash                 1
  timeout               1
  inconclusive          1
  not applicable        1
  error                 1
path: 60.0% native (3 cells), 20.0% composite (1 cells), 20.0% fallback (1 cells)
largest errors in passed cells:
  absolute  2e-06      opinfo/correctness/sum//float32
  relative  inf        opinfo/correctness/sum//float32
  ULP       0          opinfo/correctness/add//float32
failures by signature:
     2 fail  values differ
         e.g. opinfo/correctness/sub//float32
     1 crash  died of SIGSEGV
         e.g. opinfo/correctness/div/floor_rounding/float32
     1 error  the sample generator raised `ValueError`
         e.g. opinfo/correctness/linalg.qr//float32
     1 timeout  no answer within 60 s
         e.g. opinfo/correctness/mm//float32
1 planned cell has no record, e.g. opinfo/correctness/sum//bfloat16.
reports in build/out: matrix.md, report.json, junit.xml""",
    )


def test_summary_without_figures():
    report = build_report([record()], [cell()], {})
    assert_expected_inline(
        terminal_summary(report),
        """\
unknown device: 1 planned cells, 1 recorded, 0 samples
  passed                1
  failed                0""",
    )


def test_many_signatures_stay_about_forty_lines():
    records = [
        record(cell(f"op{i}"), "fail", signature=f"signature {i % 50}\n" + "x" * 500, path="native")
        for i in range(500)
    ]
    text = terminal_summary(build_report(records, [], {}, interrupted=True), "out")
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 120
    assert "the 10 most frequent of 50 failure signatures" in text


def test_colour_only_when_asked_and_only_colour():
    report = build_report(*small_run(), ENVIRONMENT)
    plain, coloured = terminal_summary(report), terminal_summary(report, color=True)
    assert "\x1b" not in plain
    assert coloured != plain
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain


def test_messages_cannot_control_the_terminal():
    report = build_report([record(outcome="fail", signature="\x1b[2J\x07 gone")], [cell()], {})
    assert "\x1b" not in terminal_summary(report)
