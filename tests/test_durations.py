"""Durations of an earlier run, read back from whatever a run or a publication left."""

from __future__ import annotations

import gzip

import pytest
from report_samples import cell, record

from conformance.report import (
    DurationsError,
    Journal,
    build_report,
    recorded_durations,
    write_reports,
)
from conformance.report.durations import Durations

RECORDS = [
    record(cell("add"), duration_s=0.25),
    record(cell("mm"), "timeout", duration_s=60.0),
    record(cell("sub"), "crash", duration_s=0.5),
    record(cell("neg"), "fail", duration_s=0.125),
    record(cell("abs")),
]
ADD, MM, SUB, NEG = (r.cell.id for r in RECORDS[:4])


@pytest.fixture
def report_dir(tmp_path):
    with Journal(tmp_path / "records.jsonl") as journal:
        for each in RECORDS:
            journal.append(each)
    write_reports(tmp_path, build_report(RECORDS, [r.cell for r in RECORDS], {}))
    return tmp_path


def test_what_is_cut_short_tells_what_running_takes_but_no_limit(report_dir):
    found = recorded_durations(report_dir)
    assert found.seconds == {ADD: 0.25, MM: 60.0, SUB: 0.5, NEG: 0.125}
    assert found.ended == {ADD: 0.25, NEG: 0.125}


@pytest.mark.parametrize("name", ["records.jsonl", "report.json"])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("by_folder", [False, True])
def test_every_form_of_a_report_holds_them(
    report_dir, tmp_path_factory, name, compressed, by_folder
):
    folder = tmp_path_factory.mktemp("elsewhere")
    data = (report_dir / name).read_bytes()
    path = folder / (f"{name}.gz" if compressed else name)
    path.write_bytes(gzip.compress(data, mtime=0) if compressed else data)
    found = recorded_durations(folder if by_folder else path)
    assert found == recorded_durations(report_dir)


def test_the_longest_of_several_records_counts(report_dir):
    with Journal(report_dir / "records.jsonl") as journal:
        journal.append(record(cell("add"), duration_s=2.0))
        journal.append(record(cell("neg"), duration_s=0.1))
    found = recorded_durations(report_dir)
    assert (found.seconds[ADD], found.ended[NEG]) == (2.0, 0.125)


def test_a_torn_last_line_does_not_count(report_dir):
    before = recorded_durations(report_dir)
    with open(report_dir / "records.jsonl", "ab") as file:
        file.write(b'{"area":"opinfo","che')
    assert recorded_durations(report_dir) == before


def test_equal_durations_have_equal_sums():
    one, other = {"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0}
    assert Durations(one).sha256 == Durations(other).sha256
    assert Durations(one).sha256 != Durations({"a": 1.0}).sha256


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        (None, None, "cannot read .*: No such file"),
        ("report.json", b"{}", "holds no records"),
        ("report.json", b"[1]", "holds no records"),
        ("report.json", b'{"cells":[1]}', "holds no records"),
        ("records.jsonl", b"\x00\xff\n", "holds no records"),
        ("records.jsonl", b'{"duration_s":1}\n', "holds no records"),
        ("records.jsonl", b"", "holds no durations"),
        ("records.jsonl.gz", b"not gzip", "cannot read .*: Not a gzipped file"),
        ("records.jsonl.gz", gzip.compress(b"x" * 999, mtime=0)[:-9], "holds no records"),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(tmp_path, name, data, why):
    path = tmp_path / (name or "nowhere")
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(DurationsError, match=why) as caught:
        recorded_durations(path)
    assert path.name in str(caught.value)


@pytest.mark.parametrize("duration", ['"inf"', '"nan"', "-1", "true", '"long"'])
def test_a_duration_that_is_no_time_is_refused(report_dir, duration):
    text = (report_dir / "records.jsonl").read_text().replace(":0.25", f":{duration}")
    (report_dir / "records.jsonl").write_text(text)
    with pytest.raises(DurationsError, match="duration_s"):
        recorded_durations(report_dir)


def test_a_folder_without_a_report(tmp_path):
    with pytest.raises(DurationsError, match="is no report directory"):
        recorded_durations(tmp_path)
