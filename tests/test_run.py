"""A run from the outside: records, reports, workers, interruption, and other people's projects."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from commands import CHECKOUT, command, environment, outcomes, records, report, run


def test_cpu_against_itself_from_an_empty_folder(tmp_path):
    options = ["--device=cpu", "--op=add,cat,std,nn.functional.dropout,empty_like,jiterator_unary"]
    result = run(command("run", *options, "--dtype=float32,int64,"), tmp_path)
    assert result.returncode == 0, result.stdout
    report_dir = tmp_path / "build" / "conformance" / "cpu"
    found = outcomes(report_dir)
    assert found.pop("jiterator_unary/", "not_applicable") == "not_applicable"
    assert set(found.values()) == {"pass"} and {"add/int64", "std.unbiased/float32"} <= set(found)
    assert report(report_dir)["complete"] is True
    assert {path.name for path in report_dir.iterdir()} == {
        "records.jsonl", "report.json", "junit.xml", "matrix.md", "plan.json", "run.json"
    }  # fmt: skip
    add = next(r for r in records(report_dir) if r["op"] == "add" and r["dtype"] == "float32")
    assert add["samples"] == 11 and add["path"] == "native" and add["device"] == "cpu"
    assert add["reference_error"] > 0 and add["duration_s"] > 0
    assert add["nodeid"].endswith("::TestCorrectnessCPU::test_correctness_add_cpu_float32")


def test_a_backend_with_next_to_nothing_is_judged(tmp_path):
    options = [
        "--device=toy",
        "--backend-module=toy_backend",
        "--op=add,sub,neg,svd,rand_like,nn.functional.linear",
        "--dtype=float32,bfloat16",
    ]
    result = run(command("run", *options), tmp_path)
    assert result.returncode == 1, result.stdout
    report_dir = tmp_path / "build" / "conformance" / "toy"
    assert outcomes(report_dir) == {
        "add/float32": "pass",
        "add/bfloat16": "unsupported",
        "neg/float32": "pass",
        "neg/bfloat16": "unsupported",
        "nn.functional.linear/float32": "unsupported",
        "nn.functional.linear/bfloat16": "unsupported",
        "rand_like/float32": "unsupported",
        "rand_like/bfloat16": "unsupported",
        "sub/float32": "fail",
        "sub/bfloat16": "unsupported",
        "svd/float32": "unsupported",
    }
    by_op = {r["op"]: r for r in records(report_dir) if r["dtype"] == "float32"}
    assert by_op["add"]["path"] == "native"
    assert by_op["neg"]["path"] == "fallback"
    assert "sample 0 (float32[], float32[]): wrong value: output: " in by_op["sub"]["reason"]
    assert by_op["sub"]["signature"] == "wrong value"
    assert "TestCorrectnessTOY::test_correctness_add_toy_float32" in by_op["add"]["nodeid"]
    assert "Traceback" not in result.stdout
    assert "1 failed, 2 passed, 8 unsupported" in result.stdout


def test_workers_record_what_one_process_records(tmp_path):
    options = ["--device=cpu", "--op=ab*,cat,jiterator_*,nn.functional.relu", "-q"]
    assert run(command("run", *options, "--report-dir=one"), tmp_path).returncode == 0
    result = run(command("run", *options, "--report-dir=two", "-n2"), tmp_path)
    assert result.returncode == 0, result.stdout
    alone, shared = tmp_path / "one", tmp_path / "two"
    assert outcomes(alone) == outcomes(shared)
    assert report(shared)["complete"] and report(shared)["plan"] == report(alone)["plan"]
    figures = [sorted(map(_figures, records(folder))) for folder in (alone, shared)]
    assert figures[0] == figures[1]


def _figures(record):
    names = ("op", "dtype", "samples", "max_abs_error", "reference_error", "path")
    return [str(record.get(name)) for name in names]


def test_interruption_keeps_the_journal_and_says_so(tmp_path):
    process = subprocess.Popen(
        command("run", "--device=cpu", "--dtype=float32", "--report-dir=here"),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A shell's background job ignores SIGINT, and so would all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    journal = tmp_path / "here" / "records.jsonl"
    deadline = time.monotonic() + 120
    while not (journal.exists() and journal.read_text().count("\n") >= 20):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    partial = report(tmp_path / "here")
    assert partial["interrupted"] is True and partial["complete"] is False
    done = len(records(tmp_path / "here"))
    assert done >= 20 and len(partial["missing"]) == partial["plan"]["cells"] - done > 0
    assert "partial" in output


def test_a_cell_without_samples_is_an_error(tmp_path):
    (tmp_path / "no_samples.py").write_text(
        "from torch.testing._internal import common_methods_invocations as opinfo\n"
        "for op in opinfo.op_db:\n"
        "    if op.name == 'sin':\n"
        "        op.sample_inputs_func = lambda *args, **kwargs: iter(())\n"
        "    if op.name == 'cos':\n"
        "        op.sample_inputs_func = lambda *args, **kwargs: 1 / 0\n"
    )
    options = ["--device=cpu", "--backend-module=no_samples", "--op=sin,cos", "--dtype=float32"]
    result = run(command("run", *options, "--report-dir=here"), tmp_path)
    assert result.returncode == 1, result.stdout
    assert outcomes(tmp_path / "here") == {"sin/float32": "error", "cos/float32": "error"}
    reasons = {r["op"]: r["reason"] for r in records(tmp_path / "here")}
    assert reasons["sin"] == "OpInfo gave no sample inputs"
    assert reasons["cos"] == "ZeroDivisionError: division by zero"


def test_a_dead_worker_is_a_crash_and_the_rest_still_runs(tmp_path):
    (tmp_path / "deadly.py").write_text(
        "import os\n"
        "import torch\n"
        "library = torch.library.Library('aten', 'IMPL')\n"
        "library.impl('sinh', lambda x: os.abort(), 'CPU')\n"
    )
    options = ["--device=cpu", "--backend-module=deadly", "--op=sin,sinh,cos", "--dtype=float32"]
    result = run(command("run", *options, "-n1", "--report-dir=here"), tmp_path)
    assert result.returncode == 1, result.stdout
    found = outcomes(tmp_path / "here")
    assert found == {"sin/float32": "pass", "sinh/float32": "crash", "cos/float32": "pass"}


def test_a_project_with_the_same_options_is_left_alone(tmp_path):
    (tmp_path / "conftest.py").write_text(
        "import pytest\n"
        "def pytest_addoption(parser):\n"
        "    parser.addoption('--device', default='theirs')\n"
        "    parser.addoption('--op', type=int)\n"
        "@pytest.fixture\n"
        "def device(request):\n"
        "    return request.config.getoption('--device')\n"
    )
    (tmp_path / "test_theirs.py").write_text(
        "import sys\n"
        "def test_device(device, request):\n"
        "    assert device == 'mine' and request.config.option.op == 3\n"
        "    assert 'torch' not in sys.modules\n"
    )
    pytest_ = [sys.executable, "-m", "pytest", "-p", "conformance.plugin", "--device=mine"]
    result = run([*pytest_, "--op=3", "test_theirs.py"], tmp_path)
    assert result.returncode == 0, result.stdout
    assert not (tmp_path / "build").exists()

    result = run([*pytest_, "--pyargs", "conformance"], tmp_path)
    assert result.returncode == 4, result.stdout
    assert "'conformance run'" in result.stdout

    result = run(command("run", "--device=cpu", "--op=sin", "--dtype=float32"), tmp_path)
    assert result.returncode == 0, result.stdout


def test_collecting_only_writes_nothing(tmp_path):
    options = ["--device=cpu", "--op=sin", "--collect-only", "-q"]
    result = run(command("run", *options), tmp_path)
    assert result.returncode == 0, result.stdout
    assert "test_correctness_sin_cpu_float32" in result.stdout
    assert not (tmp_path / "build").exists()


def test_the_checkout_needs_no_command(tmp_path):
    options = ["--device=cpu", "--op=sin", "--dtype=float32", f"--report-dir={tmp_path / 'here'}"]
    result = run([sys.executable, "-m", "pytest", *options], CHECKOUT)
    assert result.returncode == 0, result.stdout
    assert outcomes(tmp_path / "here") == {"sin/float32": "pass"}


def test_workers_find_the_configuration_whatever_the_report_directory(tmp_path):
    # pytest takes DIR for tests once it exists, which it does when the workers start
    options = ["--device=cpu", "--op=add", "--dtype=float32", "-n2", "--report-dir"]
    pytest_here = [sys.executable, "-m", "pytest", *options, str(tmp_path / "here")]
    result = run(pytest_here, CHECKOUT, timeout=90)
    assert result.returncode == 0, result.stdout
    assert outcomes(tmp_path / "here") == {"add/float32": "pass"}


@pytest.mark.parametrize("death", ["raise ImportError('no driver')", "os._exit(3)"])
def test_workers_that_die_before_they_collect_end_the_run(tmp_path, death):
    (tmp_path / "deadly.py").write_text(
        f"import os\nif 'PYTEST_XDIST_WORKER' in os.environ:\n    {death}\n"
    )
    options = ["--device=cpu", "--op=add", "--dtype=float32", "-n2", "-p", "deadly"]
    here = environment(PYTHONPATH=f"{environment()['PYTHONPATH']}:{tmp_path}")
    with subprocess.Popen(
        command("run", *options),
        cwd=tmp_path,
        env=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=90)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == pytest.ExitCode.INTERNAL_ERROR, output
    assert "3 workers in a row died before they had collected a test" in output
