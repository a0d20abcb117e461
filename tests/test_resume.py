"""--resume: nothing is run twice, nothing is lost, and no two builds get mixed."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import pytest
from commands import command, environment, outcomes, records, report, run
from report_samples import cell, record

from conformance.report import Journal, ResumeError, done_before, write_identity

IDENTITY = {
    "build": {"torch": {}, "python": "3.11", "harness": {}},
    "options": {"device": "cpu", "profile": "full"},
}


@pytest.fixture
def report_dir(tmp_path):
    """What a run leaves that was killed after two cells."""
    write_identity(tmp_path, IDENTITY)
    with Journal(tmp_path / "records.jsonl") as journal:
        journal.append(record(cell("add")))
        journal.append(record(cell("sub"), "fail"))
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_recorded_cells_are_done_whatever_their_outcome(report_dir):
    before = contents(report_dir)
    assert done_before(report_dir, IDENTITY) == {cell("add").id, cell("sub").id}
    assert contents(report_dir) == before


def test_a_torn_last_line_is_not_done(report_dir):
    journal = report_dir / "records.jsonl"
    journal.write_bytes(journal.read_bytes()[:-1])
    assert done_before(report_dir, IDENTITY) == {cell("add").id}


def test_without_records_there_is_nothing_to_go_on_with(tmp_path):
    assert done_before(tmp_path / "nowhere", IDENTITY) is None
    write_identity(tmp_path, {**IDENTITY, "options": {}})  # killed before the journal
    assert done_before(tmp_path, IDENTITY) is None
    (tmp_path / "records.jsonl").write_text('{"area":')  # killed in the first line
    assert done_before(tmp_path, IDENTITY) is None


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (
            lambda d: (d / "run.json").unlink(),
            "cannot read .*run.json: No such file.* nothing says",
        ),
        (lambda d: (d / "run.json").write_text('{"build"'), "run.json is not a whole JSON"),
        (
            lambda d: write_identity(d, {**IDENTITY, "options": {"device": "cpu", "op": "add"}}),
            "the 2 records .* of another build or other options: "
            "op: add then, none now; profile: none then, full now",
        ),
        (lambda d: (d / "records.jsonl").write_text("x\n"), "records.jsonl:1: not a record"),
    ],
)
def test_what_cannot_be_gone_on_with_says_why_and_what_to_do(report_dir, spoil, why):
    spoil(report_dir)
    before = contents(report_dir)
    with pytest.raises(ResumeError, match=f"^--resume: .*{why}.*Run without --resume to start"):
        done_before(report_dir, IDENTITY)
    assert contents(report_dir) == before


OPTIONS = ["--device=cpu", "--op=a*,b*", "--dtype=float32,int64", "--report-dir=here"]


def run_and_kill(folder, workers, after):
    """Start a run and kill its process, and it alone, once it has recorded ``after`` cells."""
    process = subprocess.Popen(
        command("run", *OPTIONS, workers),
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    journal = folder / "here" / "records.jsonl"
    deadline = time.monotonic() + 120
    while not (journal.exists() and journal.read_bytes().count(b"\n") >= after):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)


@pytest.mark.parametrize(("killed", "resumed"), [("-n2", "-n2"), ("-n0", "-n0")])
def test_the_union_after_kill_9_is_the_plan(tmp_path, killed, resumed):
    here = tmp_path / "here"
    run_and_kill(tmp_path, killed, after=15)
    with open(here / "records.jsonl", "ab") as journal:
        journal.write(b'{"area":"opinfo","check":"corr')  # torn by the kill
    (here / "plan.json").write_text('{"shard":1,')
    (here / ".plan.json-left0ver").write_text('{"sh')
    whole = (here / "records.jsonl").read_bytes().rpartition(b"\n")[0]
    done = whole.count(b"\n") + 1

    result = run(command("run", *OPTIONS, resumed, "--resume"), tmp_path)
    assert result.returncode == 0, result.stdout
    told = f"--resume: cells that are recorded in {here} and not run again: {done}\n"
    assert told in result.stdout
    assert (here / "records.jsonl").read_bytes().startswith(whole + b"\n")
    shards = json.loads((here / "plan.json").read_text())["shards"]
    planned = sorted(cell for shard in shards for cell in shard.values())
    names = ("area", "check", "op", "variant", "dtype")
    recorded = ["/".join(r[name] for name in names) for r in records(here)]
    assert sorted(recorded) == planned and 15 <= done < len(planned)
    assert report(here)["complete"] is True
    assert not [path for path in here.iterdir() if path.name.startswith(".")]


def test_all_done_or_another_selection(tmp_path):
    options = ["--device=toy", "--backend-module=toy_backend", "--dtype=float32"]
    here = tmp_path / "here"
    options.append("--report-dir=here")
    assert run(command("run", *options, "--op=sub,neg"), tmp_path).returncode == 1
    before = contents(here)

    result = run(command("run", *options, "--op=neg", "--resume"), tmp_path)
    assert result.returncode == 4, result.stdout
    assert "op: sub,neg then, neg now" in result.stdout
    assert contents(here) == before

    (here / "report.json").unlink()
    result = run(command("run", *options, "--op=sub,neg", "--resume"), tmp_path)
    assert result.returncode == 1, result.stdout  # one of those that are done has failed
    assert outcomes(here) == {"sub/float32": "fail", "neg/float32": "pass"}
    assert report(here)["complete"] is True
    assert {name: contents(here)[name] for name in ("records.jsonl", "run.json")} == {
        name: before[name] for name in ("records.jsonl", "run.json")
    }
