"""Which tests a process runs and in which order, and on which device."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace

import pytest
from commands import command, records, run
from report_samples import cell, record

from conformance.harness import device as devices
from conformance.harness.shards import Shard
from conformance.plugin.planning import Schedule
from conformance.report import Durations, Journal


def test_a_worker_gets_the_schedule_as_it_is():
    schedule = Schedule(
        Shard(2, 5), Durations({"a": 1.5, "b": 2.0}, {"a": 1.5}), True, frozenset("a")
    )
    sent = json.loads(json.dumps(schedule.to_workerinput()))
    assert Schedule.from_workerinput(sent) == schedule


def test_the_expensive_run_first_and_a_group_together(tmp_path):
    with Journal(tmp_path / "records.jsonl") as journal:
        for op, dtype, seconds in (
            ("cos", "int64", 5.0),
            ("sin", "float32", 3.0),
            ("sin", "int64", 1),
        ):
            journal.append(record(cell(op, dtype), duration_s=seconds))
    options = ["--device=cpu", "--op=sin,cos", "--dtype=float32,int64", "--collect-only", "-q"]
    durations = f"--durations-from={tmp_path}"
    result = run(command("run", *options, durations), tmp_path)
    assert result.returncode == 0, result.stdout
    found = [line.rpartition("test_correctness_")[2] for line in result.stdout.splitlines()]
    ordered = ["cos_cpu_int64", "cos_cpu_float32", "sin_cpu_float32", "sin_cpu_int64"]
    # cos at float32 is not recorded: it is taken to last as long as the median, 3 seconds
    assert [name for name in found if "_cpu_" in name] == ordered

    result = run(command("run", *options, durations, "--shard=1/2"), tmp_path)
    assert "2/4 tests collected (2 deselected)" in result.stdout
    assert "cos_cpu_int64" in result.stdout and "sin_cpu_int64" in result.stdout


def test_a_shard_without_any_cell_is_no_failure(tmp_path):
    options = ["--device=cpu", "--op=sin", "--dtype=float32", "--shard=2/2", "--report-dir=here"]
    result = run(command("run", *options), tmp_path)
    assert result.returncode == 0, result.stdout
    assert records(tmp_path / "here") == []
    assert json.loads((tmp_path / "here" / "plan.json").read_text())["shard"] == 2


@pytest.mark.parametrize(("number", "index"), [(0, 0), (1, 1), (2, 2), (3, 0), (7, 1)])
def test_workers_go_round_the_devices(monkeypatch, number, index):
    module = SimpleNamespace(device_count=lambda: 3)
    monkeypatch.setattr("torch.chip", module, raising=False)
    monkeypatch.setattr(devices, "_current", None)
    found = devices.select_index(devices.Device("chip", 0, ("chip_backend",)), number)
    assert str(found) == f"chip:{index}" and found.backend_modules == ("chip_backend",)
    assert devices.current() == found


def test_workers_are_spread_over_the_devices(tmp_path):
    pytest.importorskip("torch_accel")
    options = ["--device=accel", "--op=a*", "--dtype=float32,int64", "--report-dir=here"]
    result = run(command("run", *options, "--spread-devices", "-n2"), tmp_path)
    assert result.returncode == 0, result.stdout
    count = Counter(r["device"] for r in records(tmp_path / "here"))
    assert set(count) == {"accel:0", "accel:1"}
    matrix = (tmp_path / "here" / "matrix.md").read_text()
    assert f"|accel:1|{count['accel:1']}|" in matrix
