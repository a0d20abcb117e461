"""A child that is a new interpreter, for a device that does not work in a forked process.

It is set up as a pytest-xdist worker is: a configuration of its own from the options of the process
that wants it, which collects the same tests.
"""

from __future__ import annotations

import os
import pickle
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.config import Config

from conformance.harness.isolation.child import Workplace, workplace_of_spawned
from conformance.plugin.isolation.serve import serve

COMMAND = (sys.executable, "-c", f"from {__name__} import main; main()")
_ALONE = {
    "numprocesses": None,
    "maxprocesses": None,
    "dist": "no",
    "distload": False,
    "tx": [],
    "looponfail": False,
    "usepdb": False,
}
"""What pytest-xdist's options must be in a process that runs tests."""


def description_of(config: pytest.Config) -> dict[str, Any]:
    """What :func:`main` needs to know of the process that wants a child."""
    options = {name: v for name, v in vars(config.option).items() if _can_be_sent(v)}
    options.update({name: value for name, value in _ALONE.items() if name in options})
    options["plugins"] = [*options.get("plugins", []), "no:terminal"]
    return {
        "options": options,
        "args": list(config.args),
        "workerinput": {**_input_of_only_worker(config), "spawned": True},
        "folder": str(config.invocation_params.dir),
    }


def _input_of_only_worker(config: pytest.Config) -> dict[str, Any]:
    """What pytest-xdist gave this worker, or would give if there were one in place of none."""
    given = getattr(config, "workerinput", None)
    if given is not None:
        return given
    made = SimpleNamespace(workerinput={"workerid": "gw0", "workercount": 1})
    config.pluginmanager.getplugin("conformance-planning").pytest_configure_node(made)
    return made.workerinput


def _can_be_sent(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:
        return False
    return True


class _Serving:
    """Takes the place of pytest's loop over the tests."""

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        serve(self._workplace, session)
        return True


def main() -> None:
    """Be the child. The last arguments are those of :func:`workplace_of_spawned`."""
    workplace = workplace_of_spawned(sys.argv)
    workplace.settle()
    description = workplace.connection.recv()
    os.chdir(description["folder"])
    config = Config.fromdictargs(description["options"], description["args"])
    config.workerinput = description["workerinput"]
    config.pluginmanager.register(_Serving(workplace), "conformance-serving")
    status = config.hook.pytest_cmdline_main(config=config)
    # Nothing of what a young backend does at exit matters here.
    os._exit(int(status))
