"""run.json: equal for equal builds and options wherever they are installed, else it says why."""

from __future__ import annotations

import sys

import pytest

from conformance.report.identity import (
    IdentityError,
    describe_differences,
    differences,
    fingerprint,
    identify,
    read_identity,
    write_identity,
)

NAMES = ("then", "now")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Makes a package of named files below a folder; gives its fingerprint."""

    def make(where, files):
        for name, data in files.items():
            path = tmp_path / where / "chip_backend" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        with monkeypatch.context() as context:
            context.setattr(sys, "path", [str(tmp_path / where), *sys.path])
            return fingerprint("chip_backend.registration")

    return make


FILES = {"__init__.py": b"import os", "_C.cpython-311.so": b"\x7fELF", "lib/libchip.so.2": b"x"}


def test_the_place_of_a_package_does_not_count(package):
    assert package("one", FILES) == package("two", FILES) is not None


@pytest.mark.parametrize(
    "changed",
    [
        {"__init__.py": b"import sys"},
        {"_C.cpython-311.so": b"\x7fELF2"},
        {"lib/libchip.so.2": b"y"},
        {"lib/more.py": b""},
    ],
)
def test_every_file_of_code_counts(package, changed):
    assert package("one", FILES) != package("two", FILES | changed)


def test_what_is_no_code_does_not_count(package):
    more = {"__pycache__/x.pyc": b"1", "notes.txt": b"2", "data.json": b"3"}
    assert package("one", FILES) == package("two", FILES | more)


def test_a_module_of_one_file_and_one_that_is_nowhere():
    assert fingerprint("report_samples") is not None
    assert fingerprint("no_such_module") is None
    assert fingerprint("sys") is None  # built in: Python's version tells


def test_nothing_is_imported(package, monkeypatch):
    package("one", {"__init__.py": b"raise RuntimeError"})
    assert "chip_backend" not in sys.modules


def test_identity_names_the_build_and_the_options():
    found = identify("chip", ["report_samples"], {"profile": "smoke"})
    assert found["options"] == {"device": "chip", "profile": "smoke"}
    build = found["build"]
    assert set(build) == {"torch", "python", "harness", "backend"}
    assert build["torch"]["git"] and build["harness"]["sha256"] == fingerprint("conformance")
    assert build["backend"]["report_samples"]["sha256"] == fingerprint("report_samples")


def test_backends_that_torch_loads_by_itself_count(monkeypatch):
    class Entry:
        module = "report_samples"

    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Entry])
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "1")
    assert set(identify("chip", [], {})["build"]["backend"]) == {"report_samples"}
    assert set(identify("chip", ["commands"], {})["build"]["backend"]) == {
        "commands",
        "report_samples",
    }
    assert identify("cpu", [], {})["build"]["backend"] == {}
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    assert identify("chip", [], {})["build"]["backend"] == {}


def test_round_trip(tmp_path):
    found = identify("cpu", [], {"op": "add", "tests": ["conformance"]})
    write_identity(tmp_path, found)
    assert read_identity(tmp_path) == found
    assert differences(found, read_identity(tmp_path), NAMES) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [(None, "cannot read"), ('{"build":{', "not a whole JSON"), ("[]", "does not say which")],
)
def test_a_run_json_that_cannot_be_read(tmp_path, text, why):
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    with pytest.raises(IdentityError, match=why):
        read_identity(tmp_path)


def identity(**options):
    harness = {"version": "1", "sha256": "a" * 64, "commit": options.pop("commit", "c1")}
    backend = {"chip": {"sha256": options.pop("sha256", "b" * 64), "distributions": {}}}
    return {"build": {"harness": harness, "backend": backend}, "options": options}


def test_differences_are_named_with_both_sides():
    one = identity(op="add", profile="smoke")
    other = identity(profile="full", sha256="d" * 64)
    assert differences(one, other, NAMES) == [
        f"backend.chip contents (sha256): {'b' * 12} then, {'d' * 12} now",
        "op: add then, none now",
        "profile: smoke then, full now",
    ]


def test_what_is_ignored_and_what_says_nothing_of_the_build():
    assert differences(identity(commit="c1"), identity(commit="c2"), NAMES) == []
    assert differences(identity(shard="1/2"), identity(shard="2/2"), NAMES, ["options.shard"]) == []


def test_many_differences_are_cut():
    text = describe_differences([f"option {i}" for i in range(9)])
    assert text == "option 0; option 1; option 2; option 3; and 5 more"
