"""The plugin's command line options."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.harness.profiles import PROFILES

if TYPE_CHECKING:
    from _pytest.config.argparsing import Parser

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the ``conformance`` package."""

_PREFIX = "conformance_"
_taken: list[str] = []


def add(parser: Parser) -> None:
    """Add the options, but for those that something else has added already."""
    _taken.clear()
    group = parser.getgroup("conformance", "conformance of an accelerator backend")
    for name, keywords in OPTIONS.items():
        try:
            group.addoption(f"--{name}", dest=_PREFIX + name.replace("-", "_"), **keywords)
        except (ValueError, argparse.ArgumentError):
            _taken.append(f"--{name}")


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error


ISOLATION = ("auto", "fork", "spawn", "none")

OPTIONS: dict[str, dict[str, Any]] = {
    "device": {
        "metavar": "NAME[:INDEX]",
        "help": "device under test; default: the current accelerator, else accel if torch_accel "
        "is installed",
    },
    "backend-module": {
        "metavar": "MODULE",
        "action": "append",
        "default": [],
        "help": "import MODULE first, to register the backend (repeatable); default: torch's "
        "autoload, and torch_accel for accel",
    },
    "report-dir": {
        "metavar": "DIR",
        "help": "where records.jsonl, report.json, junit.xml and matrix.md go; default: "
        "build/conformance/<device>; write it with =, or pytest takes DIR for tests",
    },
    "profile": {
        "choices": PROFILES,
        "default": "full",
        "help": "how much to run: smoke within a minute, core for every commit, full for "
        "everything; default: full",
    },
    "area": {"metavar": "NAMES", "help": "run only these areas (comma-separated names or globs)"},
    "check": {"metavar": "NAMES", "help": "run only these checks (names or globs)"},
    "op": {
        "metavar": "NAMES",
        "help": "run only these operators, by OpInfo's name with or without the variant (names or "
        "globs)",
    },
    "dtype": {"metavar": "NAMES", "help": "run only these dtypes (names or globs)"},
    "shard": {
        "metavar": "I/N",
        "help": "run part I of N of what is selected; 'conformance merge' joins the parts' reports",
    },
    "durations-from": {
        "metavar": "REPORT",
        "help": "balance by the durations in REPORT: a report directory, its report.json or its "
        "records.jsonl; default: a table of what operators cost",
    },
    "resume": {
        "action": "store_true",
        "help": "go on with the run in the report directory: skip the cells that its journal "
        "holds; the build and the options must be the same",
    },
    "spread-devices": {
        "action": "store_true",
        "help": "with -n: worker number K uses the device of index K modulo their number",
    },
    "cell-timeout": {
        "metavar": "SECONDS",
        "type": _positive,
        "default": 60.0,
        "help": "end a cell that gives no answer for so long, or for ten times the duration "
        "recorded for it, whichever is more; default: 60",
    },
    "cell-memory": {
        "metavar": "GIB",
        "type": _positive,
        "help": "end a cell whose process, children included, uses more memory; default: a fair "
        "share of four fifths of what is free at the start",
    },
    "isolation": {
        "choices": ISOLATION,
        "default": "auto",
        "help": "where cells run: in a forked child process, in a spawned one, or in pytest's own "
        "process (none, for debuggers; --pdb implies it); default: auto, which is fork unless the "
        "device works in a spawned process only",
    },
    "fatal-pattern": {
        "metavar": "REGEX",
        "type": _pattern,
        "action": "append",
        "default": [],
        "help": "an error in which this is found leaves the device unusable: its process is "
        "replaced (repeatable)",
    },
}
"""Each option's name and what argparse is to know of it."""


@dataclass(frozen=True)
class Options:
    """What the command line says, unchecked."""

    device: str | None
    backend_module: list[str]
    report_dir: str | None
    profile: str
    area: str | None
    check: str | None
    op: str | None
    dtype: str | None
    shard: str | None
    durations_from: str | None
    resume: bool
    spread_devices: bool
    cell_timeout: float
    cell_memory: float | None
    isolation: str
    fatal_pattern: list[re.Pattern[str]]

    def selection(self) -> dict[str, str | None]:
        """The options that narrow the plan."""
        return {"area": self.area, "check": self.check, "op": self.op, "dtype": self.dtype}

    def given(self) -> dict[str, Any]:
        """Those that decide what is run and how, for the report."""
        chosen = {
            "profile": self.profile,
            **self.selection(),
            "shard": self.shard,
            "spread-devices": self.spread_devices or None,
            "cell-timeout": self.cell_timeout,
            "cell-memory": self.cell_memory,
            "isolation": self.isolation,
            "fatal-pattern": [pattern.pattern for pattern in self.fatal_pattern] or None,
        }
        return {name: value for name, value in chosen.items() if value is not None}


def read(config: pytest.Config) -> Options:
    """The options of this run. Raises pytest.UsageError when another plugin took one of them."""
    if _taken:
        raise pytest.UsageError(
            f"{', '.join(_taken)}: already an option of another plugin or conftest here. "
            "Use the command 'conformance run', which loads no conftest"
        )
    names = Options.__dataclass_fields__
    return Options(**{name: getattr(config.option, _PREFIX + name) for name in names})


def reaches_checks(config: pytest.Config) -> bool:
    """Whether the run's arguments name this package, a part of it, or a folder around it."""
    return any(_reaches(config, str(arg)) for arg in config.args)


def _reaches(config: pytest.Config, argument: str) -> bool:
    name = argument.split("::")[0]
    if config.option.pyargs and name.split(".")[0] == PACKAGE.name:
        return True
    path = Path(config.invocation_params.dir, name).resolve()
    if path == PACKAGE or PACKAGE in path.parents:
        return True
    # A folder around an installed copy was hardly meant, and pytest does not enter it.
    return path in PACKAGE.parents and "site-packages" not in PACKAGE.relative_to(path).parts
