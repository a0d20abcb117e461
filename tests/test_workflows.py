"""The workflow files in docs/workflows stay true: options exist, references meet, steps work."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml
from commands import CHECKOUT, command, environment, run
from report_samples import small_run

from conformance.report import build_report

FOLDER = CHECKOUT / "docs" / "workflows"
FILES = {path.name: yaml.load(path.read_text(), yaml.BaseLoader) for path in FOLDER.glob("*.yml")}


def _steps(file: str, job: str) -> list[dict]:
    return FILES[file]["jobs"][job].get("steps", [])


def _script(file: str, job: str, name: str) -> str:
    return next(step["run"] for step in _steps(file, job) if step.get("name") == name)


def _commands(script: str) -> list[list[str]]:
    """The words of each ``conformance`` command, with those of arrays that are put into it."""
    arrays = {
        f"${{{name}[@]}}": shlex.split(words)
        for name, words in re.findall(r"(\w+)\+=\(([^)]*)\)", script)
    }
    found = []
    for line in script.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True) if line.strip().startswith("conformance") else []
        if words:
            found.append([option for word in words for option in arrays.get(word, [word])])
    return found


@cache
def _help(*arguments: str) -> str:
    result = run(arguments, Path.cwd())
    assert result.returncode == 0, result.stdout
    return result.stdout


ALL_COMMANDS = [
    words
    for file, content in FILES.items()
    for job in content["jobs"]
    for step in _steps(file, job)
    for words in _commands(step.get("run", ""))
]


def test_the_commands_are_found():
    assert [words[:2] for words in ALL_COMMANDS] == [
        ["conformance", "run"], ["conformance", "merge"]
    ]  # fmt: skip
    assert any(word.startswith("--durations") for word in ALL_COMMANDS[0])


@pytest.mark.parametrize("words", ALL_COMMANDS, ids=lambda words: words[1])
def test_every_option_exists(words):
    known = _help(*command(words[1], "--help"))
    for word in words[2:]:
        option = word.partition("=")[0]
        if option == "-n" and words[1] == "run":
            assert importlib.util.find_spec("xdist")  # every other one is the plugin's
        elif option.startswith("-"):
            assert re.search(rf"^  {option}\b(?!-)", known, re.MULTILINE), option


@pytest.mark.parametrize("option", ["--no-such-option", "--report", "--durations"])
def test_an_option_that_is_none_of_ours_is_found_out(option):
    with pytest.raises(AssertionError, match=option):
        test_every_option_exists(["conformance", "run", f"{option}=1"])


def test_shards_are_as_many_as_they_say():
    job = FILES["conformance.yml"]["jobs"]["shard"]
    step = next(step for step in job["steps"] if step.get("name") == "Run the shard")
    count = int(step["env"]["SHARD"].rpartition("/")[2])
    matrix = job["strategy"]["matrix"]["shard"]
    assert matrix == [str(number) for number in range(1, count + 1)]


def test_the_relay_calls_what_is_there():
    called = FILES["conformance.yml"]["on"]["workflow_call"]
    relay = FILES["relay.yml"]["jobs"]
    assert relay["conformance"]["uses"] == "./.github/workflows/conformance.yml"
    assert set(relay["conformance"]["with"]) <= set(called["inputs"])
    wanted = re.findall(r"needs\.conformance\.outputs\.([\w-]+)", json.dumps(relay["finish"]))
    assert wanted and set(wanted) <= set(called["outputs"])
    names = {relay[job]["steps"][0]["with"]["job-name"] for job in ("start", "finish")}
    assert len(names) == 1, "the relay refuses an end without a beginning of the same name"


def _bash(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_counts_of_a_report_are_handed_on(tmp_path):
    report = build_report(*small_run(), {})
    (tmp_path / "merged").mkdir()
    (tmp_path / "merged" / "report.json").write_text(json.dumps(report))
    output = tmp_path / "output"
    script = _script("conformance.yml", "merge", "Count")
    result = _bash(script, tmp_path, GITHUB_OUTPUT=str(output))
    assert result.returncode == 0, result.stderr
    name, _, text = output.read_text().partition("=")
    counts = json.loads(text)
    outcomes = report["summary"]["outcomes"]
    assert name == "test-results" and counts["passed"] == outcomes["pass"] > 0
    assert sum(counts.values()) == sum(outcomes.values()) + len(report["missing"])
    assert counts["skipped"] == sum(
        outcomes[outcome] for outcome in ("unsupported", "not_applicable", "inconclusive")
    )


@pytest.mark.parametrize("name", ["Show the matrix on the page of the run", "Count"])
def test_steps_after_a_merge_that_failed_do_nothing(name, tmp_path):
    out = {"GITHUB_OUTPUT": str(tmp_path / "out"), "GITHUB_STEP_SUMMARY": str(tmp_path / "out")}
    result = _bash(_script("conformance.yml", "merge", name), tmp_path, **out)
    assert result.returncode == 0 and not (tmp_path / "out").exists()
