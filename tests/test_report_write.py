"""Report directories and the files in them: unwritable, full, read back."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys

import pytest
from junitparser import Error, Failure, JUnitXml, Properties, Skipped
from report_samples import cell, record, small_run

from conformance.report import (
    DirLock,
    ReportDirError,
    build_report,
    check_writable,
    write_reports,
)
from conformance.report.write import ReportReadError, read_report

ENVIRONMENT = {"device": {"name": "accel:0"}}


@pytest.fixture
def report():
    return build_report(*small_run(), ENVIRONMENT)


def test_check_writable_makes_the_directory_and_leaves_it_empty(tmp_path):
    check_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_file_in_the_way_is_found_before_the_run(tmp_path):
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "file", tmp_path / "file" / "sub"):
        with pytest.raises(ReportDirError, match=r"cannot be written: .* Give another with --rep"):
            check_writable(directory)


def test_one_run_at_a_time(tmp_path):
    lock = DirLock(tmp_path)
    code = "import sys; from conformance.report import DirLock; DirLock(sys.argv[1])"
    other = [sys.executable, "-c", code, str(tmp_path)]
    refused = subprocess.run(other, capture_output=True, text=True)
    assert refused.returncode and "another run is writing into the report dir" in refused.stderr
    lock.release()
    lock.release()
    assert list(tmp_path.iterdir()) == []
    assert subprocess.run(other).returncode == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_directory_without_permission_is_found_before_the_run(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(ReportDirError, match="Permission denied"):
        check_writable(tmp_path)


def test_all_files_are_written_and_report_json_comes_back(tmp_path, report):
    paths = write_reports(tmp_path / "new", report)
    assert sorted(path.name for path in paths) == ["junit.xml", "matrix.md", "report.json"]
    assert sorted(os.listdir(tmp_path / "new")) == ["junit.xml", "matrix.md", "report.json"]
    assert read_report(tmp_path / "new" / "report.json") == report


def test_report_json_has_one_cell_a_line(tmp_path, report):
    write_reports(tmp_path, report)
    text = (tmp_path / "report.json").read_text(encoding="ascii")
    lines = [line.rstrip(",") for line in text.splitlines() if line.startswith('{"area"')]
    assert [json.loads(line) for line in lines] == report["cells"]


def test_full_disk_leaves_the_old_files_as_they_were(tmp_path, report):
    """A file size limit fails the write in the middle, just as a full disk does."""
    write_reports(tmp_path, report)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    changed = build_report([record(cell(str(i))) for i in range(99)], [], ENVIRONMENT)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(ReportDirError, match=r"cannot write the reports into .*unchanged"):
            write_reports(tmp_path, changed)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "No such file"),
        ('{"schema":1,"cells":[', "not a whole JSON file"),
        ('{"schema":2,"cells":[]}', "has schema 2, this version reads 1"),
        ("[]", "has schema None"),
    ],
)
def test_bad_report_is_one_clear_error(tmp_path, text, why):
    path = tmp_path / "report.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ReportReadError, match=why):
        read_report(path)


def junit(tmp_path, report):
    write_reports(tmp_path, report)
    return JUnitXml.fromfile(str(tmp_path / "junit.xml"))


def test_junit_counts(tmp_path, report):
    xml = junit(tmp_path, report)
    (suite,) = xml
    assert (xml.name, suite.name) == ("conformance accel:0", "opinfo.correctness")
    # Errors: crash, timeout, error and the planned cell that has no record.
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (12, 2, 4, 3)
    assert (xml.tests, xml.failures, xml.errors, xml.skipped) == (12, 2, 4, 3)
    assert suite.time == pytest.approx(0.5)


def test_junit_cases(tmp_path, report):
    (suite,) = junit(tmp_path, report)
    cases = {case.name: case for case in suite}
    assert cases["add[float32]"].is_passed
    assert cases["add[float32]"].classname == "opinfo.correctness"
    assert [(p.name, p.value) for p in cases["add[int64]"].child(Properties)] == [
        ("path", "composite")
    ]
    expected = {
        "sub[float32]": (Failure, "fail", "sample 2: values differ"),
        "div.floor_rounding[float32]": (Error, "crash", "died of SIGSEGV"),
        "mm[float32]": (Error, "timeout", "no answer within 60 s"),
        "mm[bfloat16]": (Skipped, "unsupported", '"mm" not implemented for BFloat16'),
        "randn[float32]": (Skipped, "inconclusive", "too few values"),
        "jiterator_unary[float32]": (Skipped, "not_applicable", "only for CUDA"),
        "linalg.qr[float32]": (Error, "error", "the sample generator raised `ValueError`"),
    }
    for name, (kind, outcome, message) in expected.items():
        (result,) = cases[name].result
        assert (type(result), result.type, result.message) == (kind, outcome, message)
    (missing,) = cases["sum[bfloat16]"].result
    assert isinstance(missing, Error)
    assert missing.type == "missing"
    assert cases["sub[float32]"].result[0].text == "sample 2: values differ\nexpected 1, got 2"


def test_junit_of_text_that_xml_cannot_hold(tmp_path):
    nasty = "\x00\x1b[31m <&\"'> \ud800 \uffff ]]> 😀\nsecond line"
    records = [record(cell("add"), "fail", reason=nasty)]
    (suite,) = junit(tmp_path, build_report(records, [cell("add")], {}))
    (case,) = suite
    (result,) = case.result
    assert result.message.startswith("\ufffd\ufffd[31m <&\"'> ")
    assert result.text.endswith("]]> 😀\nsecond line")


def test_junit_has_a_suite_for_each_check(tmp_path):
    records = [record(cell(check=check)) for check in ("correctness", "layouts", "correctness")]
    report = build_report(records[:2], [r.cell for r in records], {})
    assert [suite.name for suite in junit(tmp_path, report)] == [
        "opinfo.correctness",
        "opinfo.layouts",
    ]
