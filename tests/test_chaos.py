"""Random cells wreck their process: each is told for what it is, and no other cell suffers."""

from __future__ import annotations

import importlib.util

import pytest
from chaos_faults import BROKE, FAULTS
from chaos_runs import LONG, OPERATORS, SEED, Run, clean_records, complaints, strike

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch_accel") is None, reason="the bundled backend is not installed"
)
ROUNDS = 4 if LONG else 1
FEW_OPERATORS = "sin,exp,sqrt,neg,sign,log,add,mul,eq,atan2,roll,sgn"
QUICK = [name for name, fault in FAULTS.items() if fault.quick]


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    return clean_records(tmp_path_factory)


def assert_survived(run, clean):
    """The run went to its end, every record is right, and nothing is left of it."""
    code = run.finish()
    left = run.leftovers()
    run.kill_leftovers()
    assert code == pytest.ExitCode.TESTS_FAILED, run.output()[-3000:]
    wrong = complaints(clean, run)
    assert wrong == [], "\n".join(wrong)
    assert left == []
    assert run.report()["complete"] is True
    assert "\x1b]0;" not in run.output()


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_forty_bad_cells_of_five_hundred(tmp_path, clean, round_):
    plan = strike(clean, list(FAULTS), 40, SEED + round_)
    options = [f"--op={OPERATORS}", "--cell-timeout=4", f"-n{2 + round_}"]
    run = Run(tmp_path, plan, *options)
    assert_survived(run, clean)


def test_one_process_survives_as_well(tmp_path, clean):
    few = {cell: clean[cell] for cell in clean if clean[cell]["op"] in FEW_OPERATORS.split(",")}
    plan = strike(few, [*QUICK, "sleeps_with_gil", "spins"], len(QUICK) + 2)
    run = Run(tmp_path, plan, f"--op={FEW_OPERATORS}", "--cell-timeout=4", "-n0")
    assert_survived(run, few)


def test_a_cell_that_passes_and_leaves_the_device_broken_is_found(tmp_path, clean):
    few = {cell: clean[cell] for cell in clean if clean[cell]["op"] in FEW_OPERATORS.split(",")}
    breaker = sorted(few)[len(few) // 2]
    run = Run(tmp_path, {breaker: "breaks_silently"}, f"--op={FEW_OPERATORS}", "-n0")
    assert_survived(run, few)
    records = run.records()
    assert records[breaker]["outcome"] == "fail"
    assert BROKE in records[breaker]["reason"]
    after = [cell for cell, record in records.items() if record.get("rerun_after") == breaker]
    assert len(after) == 3


def test_no_cell_is_ended_for_memory_that_others_keep(tmp_path, clean):
    few = {cell: clean[cell] for cell in clean if clean[cell]["op"] in FEW_OPERATORS.split(",")}
    plan = dict.fromkeys(sorted(few)[::12], "keeps_memory")
    assert len(plan) > 8
    run = Run(tmp_path, plan, f"--op={FEW_OPERATORS}", "-n0")
    assert run.finish() == pytest.ExitCode.OK, run.output()[-3000:]
    assert complaints(few, run) == []
