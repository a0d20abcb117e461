"""Bad input: one clear message, exit code 4, and nothing left behind."""

from __future__ import annotations

import pytest
from commands import command, run

from conformance.plugin.options import OPTIONS
from conformance.report import DirLock


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        (["--device=nosuch"], ["unknown device 'nosuch'", "--backend-module"]),
        (["--device=cud"], ["did you mean cuda"]),
        (["--device=1:2:3"], ["'1:2:3' is not NAME or NAME:INDEX"]),
        (["--device=cpu:7"], ["out of range: cpu:7"]),
        (["--device=xpu"], ["device 'xpu' is not available"]),
        (
            ["--device=cpu", "--backend-module=no_such_backend"],
            ["backend module 'no_such_backend' is not installed", "--backend-module"],
        ),
        (
            ["--device=toy:3", "--backend-module=toy_backend"],
            ["device index out of range: toy:3", "toy:0"],
        ),
        (["--device=cpu", "--report-dir="], ["--report-dir= names no directory"]),
        (["--device=cpu", "--op=,"], ["--op=, names nothing"]),
        (["--device=cpu", "--report-dir=/proc/nowhere"], ["/proc/nowhere cannot be written"]),
        (["--device=cpu", "--shard=5/4"], ["--shard: '5/4' is not I/N", "such as 1/4"]),
        (["--device=cpu", "--durations-from=nowhere"], ["cannot read", "nowhere: No such file"]),
        (
            ["--device=toy:0", "--backend-module=toy_backend", "--spread-devices", "-n2"],
            ["give --device=toy without an index"],
        ),
        (["--device=cpu", "--spread-devices"], ["say how many with -n"]),
        (["--device=cpu", "--spread-devices", "-n2"], ["torch.cpu has no device_count"]),
    ],
)
def test_one_message_and_a_usage_error(options, messages, tmp_path):
    result = run(command("run", *options), tmp_path)
    assert result.returncode == 4, result.stdout
    errors = [line for line in result.stdout.splitlines() if line.startswith("ERROR:")]
    assert len(errors) == 1, result.stdout
    for message in messages:
        assert message in result.stdout
    assert "Traceback" not in result.stdout
    assert not list(tmp_path.rglob("records.jsonl"))


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_report_directory_takes_one_run_at_a_time(workers, tmp_path):
    journal = tmp_path / "records.jsonl"
    journal.write_text("another run's\n")
    lock = DirLock(tmp_path)
    options = ["--device=cpu", "--op=neg", "--dtype=float32", f"--report-dir={tmp_path}"]
    result = run(command("run", *options, workers), tmp_path)
    assert result.returncode == 4, result.stdout
    assert "another run is writing into the report directory" in result.stdout
    assert "Traceback" not in result.stdout
    assert journal.read_text() == "another run's\n"
    lock.release()
    assert run(command("run", *options, workers), tmp_path).returncode == 0


def test_a_journal_that_something_else_wrote_into_is_one_clear_error(tmp_path):
    (tmp_path / "spoils.py").write_text(
        "def pytest_runtest_logfinish():\n"
        "    with open('here/records.jsonl', 'a') as journal:\n"
        "        journal.write('no business of mine\\n')\n"
    )
    options = ["--device=cpu", "--op=neg", "--dtype=float32", "--report-dir=here", "-p", "spoils"]
    result = run(command("run", *options), tmp_path)
    assert result.returncode == 3, result.stdout
    assert "No report is written: " in result.stdout
    assert "records.jsonl:2: not a record" in result.stdout
    assert "Traceback" not in result.stdout


def test_a_backend_that_fails_to_import_is_shown_with_its_causes(tmp_path):
    (tmp_path / "broken_backend.py").write_text(
        "try:\n"
        "    1 / 0\n"
        "except ZeroDivisionError as error:\n"
        "    raise RuntimeError('the driver is too old') from error\n"
    )
    result = run(command("run", "--device=cpu", "--backend-module=broken_backend"), tmp_path)
    assert result.returncode == 4, result.stdout
    assert "backend module 'broken_backend' failed to import:" in result.stdout
    assert "RuntimeError: the driver is too old" in result.stdout
    assert "caused by ZeroDivisionError: division by zero" in result.stdout


def test_a_device_without_hardware_is_not_available(tmp_path):
    (tmp_path / "absent_backend.py").write_text(
        "import toy_backend\ntoy_backend.Module.is_available = staticmethod(lambda: False)\n"
    )
    result = run(command("run", "--device=toy", "--backend-module=absent_backend"), tmp_path)
    assert result.returncode == 4, result.stdout
    assert "torch.toy.is_available() is False" in result.stdout


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_an_op_that_matches_nothing_suggests_the_nearest(workers, tmp_path):
    result = run(command("run", "--device=cpu", "--op=sin,consine", *workers), tmp_path)
    assert result.returncode == 4, result.stdout
    assert "--op: 'consine' matches nothing; nearest: " in result.stdout
    assert not list(tmp_path.rglob("records.jsonl"))


def test_help_names_every_option(tmp_path):
    result = run(command("run", "--help"), tmp_path)
    assert result.returncode == 0
    for option in OPTIONS:
        assert f"--{option} " in result.stdout
