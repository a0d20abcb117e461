"""Publishing: what is written, that it is the same for the same run, and what is refused."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import pytest
from report_samples import cell, record

from conformance.report import Journal, build_report, write_reports
from conformance.report import publish as publishing
from conformance.report.publish import PublishError, hide_paths, publish

REASON = 'File "/home/someone/venv/lib/python3.11/site-packages/torch/_ops.py", line 9'


def run(report_dir, ops=("add", "sub", "mul"), plan=None, reverse=False):
    """Leave a report in a directory as a run does."""
    records = [record(cell(op), "fail", reason=REASON, duration_s=0.5) for op in ops]
    report_dir.mkdir(exist_ok=True)
    with Journal(report_dir / "records.jsonl", fresh=True) as journal:
        for each in reversed(records) if reverse else records:
            journal.append(each)
    environment = {"device": {"name": "accel"}, "options": {"report_dir": "/home/someone/out"}}
    plan = [cell(op) for op in (plan or ops)]
    write_reports(report_dir, build_report(records, plan, environment))
    return report_dir


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_published_files(tmp_path):
    sizes = publish(run(tmp_path / "run"), tmp_path / "published")
    files = contents(tmp_path / "published")
    assert {name: len(data) for name, data in files.items()} == sizes
    assert sorted(files) == [
        "environment.json",
        "matrix.md",
        "records.jsonl.gz",
        "report.json.gz",
    ]
    report = json.loads(gzip.decompress(files["report.json.gz"]))
    lines = gzip.decompress(files["records.jsonl.gz"]).decode().splitlines()
    assert [json.loads(line) for line in lines] == report["cells"]
    assert json.loads(files["environment.json"]) == report["environment"]
    assert b"`add` (f32)" in files["matrix.md"]


def test_nothing_private_is_published(tmp_path):
    publish(run(tmp_path / "run"), tmp_path / "published")
    for name, data in contents(tmp_path / "published").items():
        text = gzip.decompress(data) if name.endswith(".gz") else data
        assert b"someone" not in text


def test_equal_runs_are_published_as_equal_bytes(tmp_path, monkeypatch):
    publish(run(tmp_path / "one"), tmp_path / "published one")
    monkeypatch.setattr("time.time", lambda: 2e9)
    publish(run(tmp_path / "two", reverse=True), tmp_path / "published two")
    assert contents(tmp_path / "published one") == contents(tmp_path / "published two")


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("/home/me/x/lib/python3.11/site-packages/torch/_ops.py:9", "torch/_ops.py:9"),
        ("../../home/me/dist-packages/a/b.py::test", "a/b.py::test"),
        ("see '/home/me/secret/file.so' (it's new)", "see 'file.so' (it's new)"),
        ("conformance/opinfo/test_x.py::T::t", "conformance/opinfo/test_x.py::T::t"),
        ("opinfo/correctness/add//float32", "opinfo/correctness/add//float32"),
        ("https://github.com/a/b/issues/1", "https://github.com/a/b/issues/1"),
        ("1/2 and a / b, either/or", "1/2 and a / b, either/or"),
    ],
)
def test_hide_paths(text, public):
    assert hide_paths({"a": [text, 1, None]}) == {"a": [public, 1, None]}


def test_incomplete_report_is_refused(tmp_path):
    run(tmp_path / "run", plan=("add", "sub", "mul", "div"))
    with pytest.raises(PublishError, match="not complete: 1 planned cell has no record"):
        publish(tmp_path / "run", tmp_path / "published")
    assert not (tmp_path / "published").exists()


def test_report_of_another_run_is_refused(tmp_path):
    run(tmp_path / "run")
    with Journal(tmp_path / "run" / "records.jsonl") as journal:
        journal.append(record(cell("div")))
    with pytest.raises(PublishError, match="not of the same run"):
        publish(tmp_path / "run", tmp_path / "published")


def test_too_large_a_report_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(publishing, "MAX_BYTES", 500)
    with pytest.raises(PublishError, match="more than the 500 that are allowed"):
        publish(run(tmp_path / "run"), tmp_path / "published")


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "conformance.report.publish", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_command_and_its_exit_codes(tmp_path):
    run(tmp_path / "run")
    done = command(tmp_path / "run", tmp_path / "published")
    assert done.returncode == 0
    assert "report.json.gz" in done.stdout

    nothing = command(tmp_path / "nowhere", tmp_path / "published")
    assert nothing.returncode == 2
    assert nothing.stderr.count("\n") == 1
    assert "cannot read" in nothing.stderr

    run(tmp_path / "run", plan=("add", "sub", "mul", "div"))
    partial = command(tmp_path / "run", tmp_path / "published")
    assert partial.returncode == 1
    assert "not complete" in partial.stderr
