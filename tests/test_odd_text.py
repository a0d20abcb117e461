"""What a dying backend says: any bytes, which must neither stop a run nor spoil a report."""

from __future__ import annotations

import json

import pytest
from commands import command, outcomes, records, report, run
from junitparser import JUnitXml
from report_samples import cell, record

from conformance.report import build_report, terminal_summary, write_reports
from conformance.report.text import as_unicode, printable, shorten

NASTY = "\x00\x07\x1b[2J\x1b]0;title\x07 \udc80\ud800 \x7f\x85\u2028\ufffe <&]]> `|` é\r\nmore"


def test_text_that_no_encoding_takes_is_escaped():
    as_unicode(NASTY).encode("utf-8")
    assert "\\udc80\\ud800" in as_unicode(NASTY)
    assert as_unicode("né\x00") == "né\x00"


def test_printable_text_keeps_lines_and_letters():
    text = printable(NASTY)
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "é" in text and text.endswith("\nmore") and "\\x1b[2J" in text
    assert shorten(NASTY, 20).endswith("...") and "\n" not in shorten(NASTY, 500)


@pytest.mark.parametrize("outcome", ["crash", "timeout", "fail", "unsupported", "error"])
def test_every_report_takes_it(tmp_path, outcome):
    found = [
        record(cell("add"), outcome, reason=NASTY, signature=NASTY, rerun="pass", flaky=True),
        record(cell("sub"), rerun_after=cell("add").id),
    ]
    made = build_report(found, [r.cell for r in found], {"device": {"name": NASTY}})
    write_reports(tmp_path, made)
    assert report(tmp_path)["cells"][0]["reason"] == as_unicode(NASTY)
    assert JUnitXml.fromfile(str(tmp_path / "junit.xml")).tests == 2
    matrix = (tmp_path / "matrix.md").read_text(encoding="utf-8")
    summary = terminal_summary(made, tmp_path)
    for text in (matrix.replace("\N{VARIATION SELECTOR-16}", ""), summary):  # of our symbols
        assert all(c.isprintable() or c == "\n" for c in text)


def test_a_run_on_workers_takes_it(tmp_path):
    text = json.dumps(NASTY)
    (tmp_path / "nasty.py").write_text(
        "import torch\n"
        "def nasty(x):\n"
        f"    raise RuntimeError({text})\n"
        "library = torch.library.Library('aten', 'IMPL')\n"
        "library.impl('sinh', nasty, 'CPU')\n"
    )
    options = ["--device=cpu", "--backend-module=nasty", "--op=sin,sinh,cos", "--dtype=float32"]
    result = run(command("run", *options, "-n1", "--report-dir=here"), tmp_path)
    assert result.returncode == 1, result.stdout
    here = tmp_path / "here"
    found = outcomes(here)
    assert found.pop("sinh/float32") in ("fail", "error")
    assert set(found.values()) == {"pass"} and report(here)["complete"] is True
    reason = next(r["reason"] for r in records(here) if r["op"] == "sinh")
    assert "\\udc80" in reason
    assert not set(result.stdout) & {"\x00", "\x07", "\x1b"}
