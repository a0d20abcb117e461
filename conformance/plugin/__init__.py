"""The pytest plugin: options in, records out. Loaded with ``-p conformance.plugin``.

Loading it changes nothing for tests that are not conformance checks: options are added only after a
project's own, and everything else happens in a :class:`Recorder` that is registered when the run's
arguments reach into this package.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from conformance.plugin import garbage, options

if TYPE_CHECKING:
    from _pytest.config.argparsing import Parser


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: Parser) -> Iterator[None]:
    """Add the options once conftest files have added theirs, so that theirs win."""
    result = yield
    options.add(parser)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Set up pytest-xdist, where ``-n`` asks for it: neighbouring cells share samples."""
    if not options.reaches_checks(config) or not getattr(config.option, "numprocesses", None):
        return
    if config.option.dist == "no":
        config.option.dist = "worksteal"
    if config.option.maxworkerrestart is None:
        config.option.maxworkerrestart = "1000000"  # a device that keeps crashing ends no run
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    _keep_configuration_of_workers(config)


def _keep_configuration_of_workers(config: pytest.Config) -> None:
    """Give workers the configuration file that was found here.

    A worker parses the command line anew, and pytest takes any word on it that names a folder for
    tests to look for its configuration around: ``--report-dir DIR``, once DIR is there.
    """
    before = os.environ.get("PYTEST_ADDOPTS")
    found = ["-c", str(config.inipath)] if config.inipath is not None else []
    found = shlex.join([*found, "--rootdir", str(config.rootpath)])
    os.environ["PYTEST_ADDOPTS"] = f"{before or ''} {found}"

    def restore() -> None:
        if before is None:
            os.environ.pop("PYTEST_ADDOPTS", None)
        else:
            os.environ["PYTEST_ADDOPTS"] = before

    config.add_cleanup(restore)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Find the device and check every option before anything runs."""
    if options.reaches_checks(session.config):
        garbage.pause(session.config)
        from conformance.plugin.start import start

        start(session)
