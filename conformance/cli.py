"""The ``conformance`` command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

_RUN = "run the checks on a device: pytest with the conformance plugin"
_MERGE = "join the reports of the shards of a run into one"
_RUN_HELP = """\
usage: conformance run [--device NAME[:INDEX]] [OPTIONS] [PYTEST OPTIONS]

Runs the checks on a device and writes the reports. This is
`pytest -p conformance.plugin --pyargs conformance`, without the configuration and the conftest
files of the current folder. Every option of pytest and of pytest-xdist works (-n 2, -x, -k, -v).

The plugin's options:
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="conformance",
        description="Conformance suite for PyTorch accelerator backends.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    commands.add_parser("run", help=_RUN, add_help=False).set_defaults(function=_run)
    commands.add_parser("merge", help=_MERGE, add_help=False).set_defaults(function=_merge)
    chosen, rest = parser.parse_known_args(arguments[:1])
    return chosen.function(rest + arguments[1:])


def _run(arguments: list[str]) -> int:
    """``conformance run``: every further argument is pytest's or the plugin's."""
    import pytest

    if any(argument in ("-h", "--help") for argument in arguments):
        print(_RUN_HELP + _options_help())
        return 0
    package = Path(__file__).resolve().parent
    return int(
        pytest.main(
            [
                # Neither configuration nor conftest of the folder that it is called from.
                "-c",
                os.devnull,
                "--rootdir",
                str(package.parent),
                "-o",
                f"cache_dir={Path.cwd() / '.pytest_cache'}",
                "--noconftest",
                "-p",
                "conformance.plugin",
                "--pyargs",
                package.name,
                *arguments,
            ]
        )
    )


def _merge(arguments: list[str]) -> int:
    """``conformance merge``."""
    from conformance.report import merge

    return merge.main(arguments)


def _options_help() -> str:
    """The plugin's options as argparse prints them."""
    from conformance.plugin.options import OPTIONS

    parser = argparse.ArgumentParser(add_help=False, usage=argparse.SUPPRESS)
    for name, keywords in OPTIONS.items():
        parser.add_argument(f"--{name}", **keywords)
    return parser.format_help().partition("\n")[2] + "\nExit codes are pytest's."
