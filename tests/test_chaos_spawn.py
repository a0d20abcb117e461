"""Cells run in spawned processes: on request, and where the device does not work in forked ones."""

from __future__ import annotations

import importlib.util

import pytest
from chaos_runs import LONG, Run, clean_records, complaints
from commands import outcomes

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch_accel") is None, reason="the bundled backend is not installed"
)


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    return clean_records(tmp_path_factory)


def test_spawned_processes_survive_as_well(tmp_path, clean):
    few = {cell: clean[cell] for cell in clean if clean[cell]["op"] in ("sin", "add")}
    plan = {
        "opinfo/correctness/sin//float32": "segfault",
        "opinfo/correctness/sin//int64": "prints_junk",
        "opinfo/correctness/add//int8": "sleeps_with_gil",
        "opinfo/correctness/add//bool": "children_left",
        "opinfo/correctness/sin//complex64": "breaks_the_device",
    }
    run = Run(tmp_path, plan, "--op=sin,add", "--cell-timeout=10", "--isolation=spawn")
    code = run.finish()
    left = run.leftovers()
    run.kill_leftovers()
    assert code == pytest.ExitCode.TESTS_FAILED, run.output()[-3000:]
    assert complaints(few, run) == []
    assert left == []


@pytest.mark.parametrize("refusal", ["initialised", "hangs", *(["dies"] if LONG else [])])
def test_a_backend_that_refuses_forks_is_spawned(tmp_path, refusal):
    options = ["--op=sin,add", "--dtype=float32,int64", "--cell-timeout=10"]
    run = Run(
        tmp_path, None, "--backend-module=chaos_refuses_fork", *options, CHAOS_REFUSAL=refusal
    )
    code = run.finish(timeout=120)
    left = run.leftovers()
    run.kill_leftovers()
    assert code == pytest.ExitCode.OK, run.output()[-3000:]
    assert set(outcomes(run.report_dir).values()) == {"pass"}
    assert left == []
