"""The benchmark against upstream-style tests: its options, its arithmetic, what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "bench"))

import bench_plugin
import suite

BENCH = suite.BENCH
_COST = {"returncode": 0, "wall_s": 4.0, "cpu_s": 10.0, "peak_bytes": 2**20, "left_running": 0}


def _run(name: str, selected: list[str] = (), outcomes: dict[str, bool] = (), **cost) -> suite.Run:
    return suite.Run(name, {**_COST, **cost}, 1.0, list(selected), dict(outcomes))


def test_a_sample_is_the_same_for_both_sides():
    names = [f"test_op{n}_{dtype}" for n in range(100) for dtype in ("float32", "int64", "bool")]
    chosen = bench_plugin.sample(names, 10)
    assert len(chosen) == 30 and chosen < set(names)
    assert chosen == bench_plugin.sample(reversed(names), 10)
    assert all(any(name.endswith(dtype) for name in chosen) for dtype in ("float32", "int64"))
    assert bench_plugin.sample(names, 1) == set(names)
    assert len(bench_plugin.sample(names, 1000)) == 1


def test_by_default_everything_runs_on_the_reference_backend():
    options = suite.parse([])
    assert (options.every, options.device, options.processes) == (1, "accel", 0)
    assert options.check == ["opinfo/correctness"]


@pytest.mark.parametrize(
    "wrong", [["--every=0"], ["--every=x"], ["--repeat=0"], ["--check=opinfo/other"]]
)
def test_a_wrong_option_is_refused(wrong, capsys):
    with pytest.raises(SystemExit) as ended:
        suite.parse(wrong)
    assert ended.value.code == 2
    assert wrong[0].partition("=")[0] in capsys.readouterr().err


def test_options_reach_both_sides():
    options = suite.parse(["--device=toy:1", "--backend-module=toy_backend", "--processes=3"])
    theirs = suite.upstream_command("opinfo/correctness", options, patched=True)
    ours = suite.suite_command(options, Path("out"), 3)
    assert {"--bench-device=toy:1", "--bench-backend-module=toy_backend", "-n3"} <= set(theirs)
    assert {"--device=toy:1", "--backend-module=toy_backend", "-n3"} <= set(ours)
    assert "--bench-patched" in theirs
    assert "--bench-patched" not in suite.upstream_command("opinfo/correctness", options, False)


def test_what_was_skipped_did_not_run():
    theirs = {"test_a": "passed", "test_b": "failed", "test_c": "skipped"}
    assert suite.upstream_outcomes(theirs) == {"test_a": False, "test_b": True}
    cells = [
        {"nodeid": f"file.py::Class::test_{n}", "outcome": outcome}
        for n, outcome in enumerate(("pass", "fail", "unsupported", "crash", "not_applicable"))
    ]
    ours = suite.suite_outcomes({"cells": cells})
    assert ours == {"test_0": False, "test_1": True, "test_2": False, "test_3": True}


def test_ratios_are_upstream_over_suite():
    runs = [
        _run("upstream-style", cpu_s=60.0),
        _run("upstream-style, patched", cpu_s=25.0),
        _run("suite, -n 0", cpu_s=10.0),
        _run("suite, -n 1", wall_s=12.0),
        _run("suite, -n 2", wall_s=6.0),
    ]
    assert suite.ratios(runs, 0) == {
        "cpu_ratio": 6.0, "cpu_ratio_patched": 2.5, "speedup_of_2_workers": 2.0
    }  # fmt: skip


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (_run("x", ["a", "b"], {"a": False}), "1 did not run: b"),
        (_run("x", ["a"], {"a": True}, returncode=2), "pytest ended with 2"),
        (_run("x", ["a"], {"a": True}, returncode=None), "--timeout"),
        (_run("x", ["a"], {"a": True}, left_running=2), "left 2 processes running"),
        (_run("x"), "selected no test"),
    ],
)
def test_a_run_that_does_not_count_says_why(result, problem):
    found = suite.problems(result, Path("log"))
    assert len(found) == 1 and problem in found[0]


def test_of_repeated_runs_the_least_counts_and_every_problem():
    first = _run("x", cpu_s=3.0, wall_s=2.0)
    second = _run("x", cpu_s=2.0, wall_s=9.0)
    first.problems = ["odd"]
    (found,) = suite.least([[first], [second]])
    assert (found.cost["cpu_s"], found.cost["wall_s"], found.problems) == (2.0, 2.0, ["odd"])


def test_red_cells_are_results_like_others():
    assert suite.problems(_run("x", ["a"], {"a": True}, returncode=1), Path("log")) == []


def test_sides_that_ran_different_tests_are_found_out(monkeypatch, tmp_path):
    def run(name, arguments, out, options, every):
        tests = ["a", "b"] if name.startswith("upstream") else ["a", "c"]
        return _run(name, tests, dict.fromkeys(tests, False))

    monkeypatch.setattr(suite, "run", run)
    runs = suite.compare("opinfo/correctness", suite.parse([f"--out={tmp_path}"]))
    assert [bool(result.problems) for result in runs] == [False, False, True, True, True]
    assert "b, c" in runs[2].problems[0]
    assert suite.main([f"--out={tmp_path}"]) == 1
    assert json.loads((tmp_path / "bench-suite.json").read_text())["options"]["every"] == 1


def _measure(tmp_path: Path, timeout: float, *command: str) -> dict:
    result = tmp_path / "cost.json"
    arguments = [str(result), str(tmp_path / "log"), str(timeout), *command]
    subprocess.run([sys.executable, str(BENCH / "measure.py"), *arguments], check=True)
    return json.loads(result.read_text())


def test_the_time_of_an_orphan_counts_and_it_does_not_stay(tmp_path):
    (tmp_path / "orphan.py").write_text(
        "import time\n"
        "while time.process_time() < 0.5: pass\n"
        "print('spun', flush=True)\n"
        "time.sleep(600)\n"
    )
    (tmp_path / "parent.py").write_text(
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, sys.argv[1]], stdout=subprocess.PIPE)\n"
        "print(child.stdout.readline().decode(), end='')\n"
        "sys.exit(3)\n"
    )
    scripts = [str(tmp_path / "parent.py"), str(tmp_path / "orphan.py")]
    cost = _measure(tmp_path, 60, sys.executable, *scripts)
    assert cost["returncode"] == 3 and cost["left_running"] == 1
    assert cost["cpu_s"] >= 0.5 and cost["peak_bytes"] > 2**20
    assert (tmp_path / "log").read_text() == "spun\n"


def test_a_command_that_takes_too_long_is_ended(tmp_path):
    cost = _measure(tmp_path, 0.5, "sleep", "600")
    assert cost["returncode"] is None and cost["left_running"] == 0
