"""A run that is killed or interrupted leaves nothing behind, and can be taken up again."""

from __future__ import annotations

import importlib.util
import os
import signal

import pytest
from chaos_runs import LONG, Run, clean_records, complaints

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch_accel") is None, reason="the bundled backend is not installed"
)
OPERATORS = "sin,exp,sqrt,neg,sign,log,add,mul"
EARLY = {
    "opinfo/correctness/add//int64": "children_left",
    "opinfo/correctness/exp//int64": "children_left",
    "opinfo/correctness/sin//float32": "leaves_files",
    "opinfo/correctness/sin//int64": "segfault",
    "opinfo/correctness/neg//float64": "exit_3",
}
LATE = ("opinfo/correctness/mul//int16", "opinfo/correctness/log//int16")


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    found = clean_records(tmp_path_factory)
    return {cell: found[cell] for cell in found if found[cell]["op"] in OPERATORS.split(",")}


def begun(folder, processes, hang):
    """A run that hangs in a cell, after others went wrong."""
    plan = {**EARLY, **dict.fromkeys(LATE, hang)}
    run = Run(folder, plan, f"--op={OPERATORS}", "--cell-timeout=100", f"-n{processes}")
    run.start()
    run.wait_until_struck(hang)
    return run


def left_by(run):
    found = run.leftovers()
    run.clean_up()
    run.kill_leftovers()
    return found


@pytest.mark.parametrize("processes", [0, 2])
def test_a_killed_run_leaves_nothing_and_is_resumed(tmp_path, clean, processes):
    run = begun(tmp_path, processes, "hangs_with_children")
    run.clean_up()
    assert left_by(run) == []
    before = run.lines()
    assert 0 < len(before) < len(clean)
    run.replan({cell: fault for cell, fault in run.plan.items() if "hang" not in fault})
    assert run.finish("--resume") == pytest.ExitCode.TESTS_FAILED, run.output()[-3000:]
    assert run.lines()[: len(before)] == before
    assert complaints(clean, run) == []
    assert run.report()["complete"] is True
    assert left_by(run) == []


@pytest.mark.parametrize(
    ("processes", "whom"),
    [
        (0, "the process group"),
        (2, "the process group"),
        (2, "the controller"),
        *([(0, "the controller")] if LONG else []),
    ],
)
def test_an_interrupted_run_leaves_nothing(tmp_path, clean, processes, whom):
    run = begun(tmp_path, processes, "ignores_signals")
    if whom == "the controller":
        run.process.send_signal(signal.SIGINT)
    else:
        os.killpg(run.process.pid, signal.SIGINT)
    code = run.process.wait(60)
    assert left_by(run) == []
    assert code == pytest.ExitCode.INTERRUPTED, run.output()[-3000:]
    assert run.records().keys() < clean.keys()
    partial = run.report()
    assert partial["interrupted"] is True and partial["complete"] is False
