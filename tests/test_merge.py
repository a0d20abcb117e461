"""``conformance merge``: the whole from its shards, or every gap by name; never a mixture."""

from __future__ import annotations

import json
import re
import resource

import pytest
from commands import command, report, run
from junitparser import JUnitXml
from report_samples import record

from conformance.cli import main
from conformance.harness.cells import Cell
from conformance.harness.shards import Shard, split
from conformance.report import (
    Journal,
    Plan,
    build_report,
    read_identity,
    read_journal,
    read_plan,
    write_identity,
    write_plan,
    write_reports,
)
from conformance.report.build import SCHEMA

OPS = ("add", "sub", "mul", "div", "sum", "mean")
CELLS = [
    Cell("opinfo", check, op, "", "float32") for op in OPS for check in ("correctness", "layouts")
]
FILES = {"records.jsonl", "run.json", "plan.json", "report.json", "junit.xml", "matrix.md"}


def shard_dir(folder, index, count=3, cells=CELLS, outcomes=None, changed=None, **options):
    """What a run with --shard leaves; gives the folder."""
    folder.mkdir(exist_ok=True)
    build = {
        "torch": {"version": "2.13.0"},
        "python": "3.11",
        "harness": {"version": "1"},
        "backend": {"chip": {"sha256": "a" * 64, **(changed or {})}},
    }
    options = {"device": "chip", "profile": "full", "shard": f"{index}/{count}", **options}
    write_identity(folder, {"build": build, "options": options})
    parts = [{f"test_{c.id}": c for c in part} for part in split(cells, count, {})]
    plan = Plan(parts, Shard(index, count))
    write_plan(folder, plan)
    environment = {
        "device": {"name": "chip:0"},
        "machine": {"cpu": f"cpu of {folder.name}"},
        "options": {"profile": "full", "shard": f"{index}/{count}"},
    }
    records = [record(c, (outcomes or {}).get(c.op, "pass")) for c in plan.cells.values()]
    with Journal(folder / "records.jsonl", fresh=True) as journal:
        for each in records:
            journal.append(each)
    write_reports(folder, build_report(records, plan.cells.values(), environment))
    return folder


@pytest.fixture
def shards(tmp_path):
    return [str(shard_dir(tmp_path / f"s{index}", index)) for index in (1, 2, 3)]


@pytest.fixture
def merge(tmp_path, capsys):
    """Merges folders into ``out``; gives the exit code and all that was printed."""

    def call(*folders, out="out"):
        code = main(["merge", *map(str, folders), "--report-dir", str(tmp_path / out)])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return call


def test_all_shards_are_the_whole(tmp_path, shards, merge):
    code, text = merge(*reversed(shards))
    assert code == 0, text
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == FILES
    merged = report(out)
    assert merged["complete"] is True and merged["plan"]["cells"] == len(CELLS)
    assert merged["environment"]["options"] == {"profile": "full"}
    assert len(merged["environment"]["machine"]) == 3
    assert sorted(r.cell for r in read_journal(out / "records.jsonl").records) == sorted(CELLS)
    assert sorted(read_plan(out).cells.values()) == sorted(CELLS)
    assert read_identity(out)["options"] == {"device": "chip", "profile": "full"}
    assert JUnitXml.fromfile(str(out / "junit.xml")).tests == len(CELLS)


def test_the_order_of_the_shards_does_not_matter(tmp_path, shards, merge):
    merge(*shards)
    merge(*reversed(shards), out="other")
    for name in FILES:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_red_cells_are_1(tmp_path, shards, merge):
    shard_dir(tmp_path / "s2", 2, outcomes=dict.fromkeys(OPS, "crash"))
    code, _ = merge(*shards)
    assert code == 1
    assert report(tmp_path / "out")["complete"] is True


def test_a_missing_shard_and_its_cells_are_named(tmp_path, shards, merge):
    code, text = merge(shards[0], shards[2])
    missing = sorted(cell.id for cell in read_plan(shards[1]).cells.values())
    assert code == 1
    assert f"shard 2/3 is missing, with {len(missing)} planned cells" in text
    assert all(f"\n  {cell}" in text for cell in missing)
    assert report(tmp_path / "out")["missing"] == missing


def test_a_missing_cell_is_named(tmp_path, shards, merge):
    journal = tmp_path / "s1" / "records.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[1:]) + b'{"torn')
    code, text = merge(*shards)
    lost = json.loads(lines[0])
    assert code == 1
    assert f"cells without a record (1):\n  opinfo/{lost['check']}/{lost['op']}//float32" in text


def test_a_shard_that_is_given_twice_doubles_its_cells(tmp_path, shards, merge):
    again = shard_dir(tmp_path / "again", 1)
    code, text = merge(*shards, again)
    doubled = [cell.id for cell in read_plan(shards[0]).cells.values()]
    assert code == 1
    assert f"shard 1/3 is given 2 times: {shards[0]}, {again}" in text
    assert all(f"\n  {cell}" in text for cell in doubled)
    assert set(report(tmp_path / "out")["doubled"]) == set(doubled)


def test_long_lists_are_cut(tmp_path, merge):
    cells = [Cell("opinfo", "correctness", f"op{i}", "", "float32") for i in range(60)]
    code, text = merge(shard_dir(tmp_path / "s1", 1, count=2, cells=cells))
    assert code == 1 and "cells without a record (30):" in text and "and 10 more" in text


def test_a_shard_that_was_killed_has_no_report_yet(tmp_path, shards, merge):
    (tmp_path / "s1" / "report.json").unlink()
    code, _ = merge(*shards)
    assert code == 0
    assert report(tmp_path / "out")["environment"]["device"] == {"name": "chip"}


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda d: shard_dir(d, 2, changed={"sha256": "b" * 64}), "backend.chip contents"),
        (lambda d: shard_dir(d, 2, profile="smoke"), r"profile: full in .*s1, smoke in .*s2"),
        (lambda d: shard_dir(d, 2, durations={"sha256": "c" * 64}), "durations contents"),
        (lambda d: shard_dir(d, 2, count=4), "s1 is one of 3 shards, .*s2 one of 4"),
        (lambda d: shard_dir(d, 2, cells=CELLS[:-1]), "not cut from the same plan"),
        (lambda d: (d / "run.json").unlink(), "cannot read .*run.json: No such file"),
        (lambda d: (d / "plan.json").write_text('{"shard":2'), "plan.json is not a whole plan"),
        (lambda d: (d / "plan.json").write_text('{"shard":9,"shards":[{}]}'), "not a whole plan"),
        (lambda d: (d / "records.jsonl").unlink(), "cannot read the journal"),
        (lambda d: (d / "records.jsonl").write_text("x\n"), "records.jsonl:1: not a record"),
        (lambda d: (d / "report.json").write_text("{"), "report.json is not a whole JSON"),
        (lambda d: (d / "report.json").write_text(f'{{"schema":{SCHEMA}}}'), "has no environment"),
        (
            lambda d: (d / "run.json").write_text('{"build":{},"options":{}}'),
            "run.json does not say which build",
        ),
        (lambda d: (d / "records.jsonl").write_text("[" * 100_000 + "\n"), "nested too deeply"),
    ],
)
def test_what_does_not_belong_together_or_cannot_be_read_is_2(tmp_path, shards, merge, spoil, why):
    spoil(tmp_path / "s2")
    code, text = merge(*shards)
    assert code == 2
    assert re.search(f"^not merged: .*{why}", text), text
    assert text.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_result_never_goes_into_a_shard(shards, merge):
    code, text = merge(*shards, out="s1")
    assert code == 2 and "is one of the shards" in text


def test_an_out_that_cannot_be_written_is_2(tmp_path, shards, merge):
    (tmp_path / "file").write_text("")
    code, text = merge(*shards, out="file/out")
    assert code == 2 and text.startswith("not merged: cannot write the reports into")


def test_no_file_is_replaced_where_one_cannot_be(tmp_path, shards, merge):
    (tmp_path / "out" / "matrix.md").mkdir(parents=True)
    code, text = merge(*shards)
    assert code == 2 and "matrix.md is a directory" in text
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["matrix.md"]


def test_a_full_disk_leaves_what_was_there(tmp_path, shards, merge):
    merge(*shards)
    out = tmp_path / "out"
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        code, text = merge(*shards[:2])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code == 2 and "free some space" in text
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_help_tells_the_exit_codes(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["merge", "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert all(f"\n  {code}  " in text for code in (0, 1, 2))


def test_no_folder_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["merge"])
    assert caught.value.code == 2


def test_shards_of_a_real_run(tmp_path):
    options = ["--device=cpu", "--op=add,sub,sum", "-q"]
    for index in (1, 2):
        shard = [f"--shard={index}/2", f"--report-dir=s{index}"]
        result = run(command("run", *options, *shard), tmp_path)
        assert result.returncode == 0, result.stdout
    counts = [report(tmp_path / name)["plan"]["cells"] for name in ("s1", "s2")]
    assert min(counts) >= max(counts) - 1 > 10

    result = run(command("merge", "s1", "--report-dir=half"), tmp_path)
    assert result.returncode == 1 and "shard 2/2 is missing" in result.stdout
    result = run(command("merge", "s1", "s2", "--report-dir=whole"), tmp_path)
    assert result.returncode == 0, result.stdout
    assert report(tmp_path / "whole")["plan"]["cells"] == sum(counts)

    # What is missing can be run in the place where it is missing.
    resumed = run(command("run", *options, "--report-dir=half", "--resume"), tmp_path)
    assert resumed.returncode == 0, resumed.stdout
    assert f"{counts[1]} passed, {counts[0]} deselected" in resumed.stdout
    whole = report(tmp_path / "half")
    assert whole["complete"] is True and whole["plan"]["cells"] == sum(counts)
