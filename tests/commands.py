"""Running the ``conformance`` command from tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
CHECKOUT = TESTS.parent


def environment(**variables: str) -> dict[str, str]:
    """The environment for a command: this checkout and its tests importable, no autoload."""
    found = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    paths = [str(CHECKOUT), str(TESTS), *filter(None, [found.get("PYTHONPATH")])]
    return {
        **found,
        "PYTHONPATH": os.pathsep.join(paths),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "OMP_NUM_THREADS": "1",
        **variables,
    }


def command(*arguments: str) -> list[str]:
    """The command line of ``conformance ARGUMENTS``."""
    return [sys.executable, "-m", "conformance", *arguments]


def run(
    arguments: Sequence[str], folder: Path, timeout: float = 240.0
) -> subprocess.CompletedProcess[str]:
    """Run a command in ``folder``, with what it prints as text in ``stdout``."""
    return subprocess.run(
        arguments,
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )


def records(report_dir: Path) -> list[Mapping[str, Any]]:
    """The records in a report directory, in the order in which cells ended."""
    lines = (report_dir / "records.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def outcomes(report_dir: Path) -> dict[str, str]:
    """Outcome by ``op/dtype``, or ``op.variant/dtype``."""
    return {
        f"{'.'.join(filter(None, (r['op'], r.get('variant'))))}/{r.get('dtype', '')}": r["outcome"]
        for r in records(report_dir)
    }


def report(report_dir: Path) -> Mapping[str, Any]:
    """The report.json of a report directory."""
    return json.loads((report_dir / "report.json").read_text())
