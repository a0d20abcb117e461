"""Records and the journal: round trip, torn lines, bad lines, full disks, several writers."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys

import pytest
from report_samples import cell, record, small_run

from conformance.harness.outcomes import Outcome
from conformance.harness.path import Path
from conformance.report import Journal, JournalError, Record, read_journal

KEYS = (
    "area, check, op, variant, dtype, device, outcome, reason, path, samples, max_abs_error, "
    "max_rel_error, max_ulp_error, reference_error, duration_s, signature, nodeid, rerun, flaky, "
    "rerun_after"
)


def full_record(**changed):
    values = {
        "area": "opinfo",
        "check": "correctness",
        "op": "linalg.norm",
        "variant": "subgradients_at_zero",
        "dtype": "complex64",
        "device": "accel:1",
        "outcome": "fail",
        "reason": "naïve \udcff \x00 text\nin two lines",
        "path": "native",
        "samples": 12,
        "max_abs_error": 1e-7,
        "max_rel_error": math.inf,
        "max_ulp_error": 3,
        "reference_error": -math.inf,
        "duration_s": 0.125,
        "signature": "values differ",
        "nodeid": "conformance/opinfo/test_correctness.py::TestX::test_y",
        "rerun": Outcome.PASS,
        "flaky": True,
        "rerun_after": "opinfo/correctness/add//float32",
    }
    return Record(**{**values, **changed})


def test_keys_are_those_of_the_contract_in_that_order():
    assert ", ".join(full_record().to_json()) == KEYS


def test_round_trip_through_the_journal(tmp_path):
    records = [full_record(), *small_run()[0]]
    with Journal(tmp_path / "records.jsonl") as journal:
        for each in records:
            journal.append(each)
    found = read_journal(tmp_path / "records.jsonl")
    assert found.torn is None
    # NaN is not equal to itself: compare what is written.
    assert [r.to_json() for r in found.records] == [r.to_json() for r in records]
    assert all(isinstance(r.outcome, Outcome) for r in found.records)


def test_infinity_and_nan_are_valid_json_and_come_back(tmp_path):
    path = tmp_path / "records.jsonl"
    with Journal(path) as journal:
        journal.append(
            record(max_abs_error=math.inf, max_rel_error=math.nan, reference_error=-math.inf)
        )

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    line = json.loads(path.read_text(encoding="ascii"), parse_constant=refuse)
    assert (line["max_abs_error"], line["max_rel_error"], line["reference_error"]) == (
        "inf",
        "nan",
        "-inf",
    )
    (found,) = read_journal(path).records
    assert found.max_abs_error == math.inf
    assert math.isnan(found.max_rel_error)
    assert found.reference_error == -math.inf


def test_what_is_not_known_is_left_out():
    assert record(cell("add", "")).to_json() == {
        "area": "opinfo",
        "check": "correctness",
        "op": "add",
        "variant": "",
        "dtype": "",
        "device": "accel:0",
        "outcome": "pass",
    }


def test_zero_is_known():
    assert record(samples=0, max_abs_error=0.0).to_json()["max_abs_error"] == 0.0
    assert record(samples=0).to_json()["samples"] == 0


def test_a_record_holds_plain_values_only():
    """Members of enumerations do not pass through execnet, which pytest-xdist sends with."""
    values = full_record(path=Path.NATIVE, outcome=Outcome.FAIL).to_json()
    assert {type(value) for value in values.values()} <= {str, int, float, bool}


def test_figures_keep_six_significant_digits():
    assert record(max_rel_error=1 / 3).max_rel_error == 0.333333


@pytest.mark.parametrize("changed", [{"outcome": "passed"}, {"rerun": "maybe"}, {"path": "cpu"}])
def test_a_record_refuses_what_no_report_knows(changed):
    with pytest.raises(ValueError, match="is not a valid"):
        full_record(**changed)


def test_torn_last_line_is_given_back_and_cut_before_more_is_written(tmp_path):
    path = tmp_path / "records.jsonl"
    with Journal(path) as journal:
        journal.append(record(cell("add")))
    whole = path.read_bytes()
    torn = whole[: len(whole) // 2]
    path.write_bytes(whole + torn)

    found = read_journal(path)
    assert [r.op for r in found.records] == ["add"]
    assert found.torn == torn.decode()

    with Journal(path) as journal:
        journal.append(record(cell("sub")))
    found = read_journal(path)
    assert [r.op for r in found.records] == ["add", "sub"]
    assert found.torn is None


def test_a_journal_that_is_one_torn_line_starts_anew(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"area":"' + b"x" * 200_000)
    Journal(path).close()
    assert path.read_bytes() == b""


def test_fresh_journal_forgets_the_last_run(tmp_path):
    for op in ("add", "sub"):
        with Journal(tmp_path / "records.jsonl", fresh=True) as journal:
            journal.append(record(cell(op)))
    assert [r.op for r in read_journal(tmp_path / "records.jsonl").records] == ["sub"]


GOOD = json.dumps(record().to_json())


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "not a record"),
        (GOOD[:-9], "not a record"),
        ("[1]", "JSON object"),
        (GOOD.replace('"check"', '"chek"'), "unknown key 'chek'"),
        ('{"area":"opinfo","check":"correctness","outcome":"pass"}', "'op' is missing"),
        (GOOD.replace('"pass"', '"passed"'), "'passed' is not a valid"),
        (GOOD.replace("}", ',"samples":"7"}'), "'samples' is not a whole number"),
        (GOOD.replace("}", ',"max_abs_error":"big"}'), "'max_abs_error' is not a number"),
        (GOOD.replace("}", ',"reason":7}'), "'reason' is not a string"),
        (GOOD.replace("}", ',"flaky":1}'), "'flaky' is not true or false"),
        (GOOD.replace("}", ',"rerun":"no"}'), "'no' is not a valid"),
        ("\udcff", "not a record"),
    ],
)
def test_a_bad_line_is_named_by_file_and_line(tmp_path, line, why):
    path = tmp_path / "records.jsonl"
    path.write_bytes(f"{GOOD}\n{line}\n{GOOD}\n".encode("utf-8", "surrogateescape"))
    with pytest.raises(JournalError, match=f"records.jsonl:2: .*{why}"):
        read_journal(path)


def test_missing_journal_is_one_clear_error(tmp_path):
    with pytest.raises(JournalError, match=r"cannot read the journal .*: No such file"):
        read_journal(tmp_path / "records.jsonl")
    with pytest.raises(JournalError, match=r"cannot open the journal .*: No such file"):
        Journal(tmp_path / "nowhere" / "records.jsonl")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_is_one_clear_message_that_stays():
    with Journal("/dev/full") as journal:
        for _ in range(2):
            with pytest.raises(JournalError, match=r"/dev/full: No space left.*free some space"):
                journal.append(record())


def test_line_that_fits_in_part_only_leaves_a_torn_line_and_nothing_after_it(tmp_path):
    """A file size limit cuts a write in two, just as a disk that fills up does."""
    path = tmp_path / "records.jsonl"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Journal(path) as journal:
        journal.append(record(cell("add")))
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, limits[1]))
        try:
            with pytest.raises(JournalError, match="cannot write to the journal"):
                journal.append(record(cell("sub")))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        with pytest.raises(JournalError, match="cannot write to the journal"):
            journal.append(record(cell("mul")))
    found = read_journal(path)
    assert [r.op for r in found.records] == ["add"]
    assert len(found.torn) == 20


WRITER = """
import sys
from conformance.report import Journal, Record
path, name = sys.argv[1:]
with Journal(path) as journal:
    for i in range(300):
        journal.append(Record("a", "c", name, str(i), "float32", "cpu", "pass", reason="x" * 3000))
"""


def test_processes_share_a_journal_without_mixing_lines(tmp_path):
    path = tmp_path / "records.jsonl"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], env=environment)
        for name in ("one", "two", "three")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    records = read_journal(path).records
    assert len(records) == len({r.cell for r in records}) == 900
