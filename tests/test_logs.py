"""pytest captures log records where somebody has a use for them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from conformance.plugin import logs
from conformance.plugin.planning import PLANNED


class Config:
    """As much of pytest's as is asked, with the options that it is made with."""

    def __init__(self, **given):
        self.given, self.plugins = given, {"logging-plugin"}
        self.pluginmanager = SimpleNamespace(
            has_plugin=self.plugins.__contains__,
            unregister=lambda name: self.plugins.remove(name),
        )

    def getini(self, name):
        return self.given.get(f"ini {name}")

    def getoption(self, name, default):
        return self.given.get(name, default)


def item(planned):
    stash = pytest.Stash()
    if planned:
        stash[PLANNED] = object()
    return SimpleNamespace(stash=stash)


@pytest.mark.parametrize(
    ("given", "planned", "captures"),
    [
        ({}, [True, True], False),
        ({}, [True, False], True),
        ({"log_level": "INFO"}, [True], True),
        ({"ini log_cli": True}, [True], True),
        ({"ini log_file": "a"}, [True], True),
    ],
)
def test_log_capture_ends_where_there_are_only_cells(given, planned, captures):
    config = Config(**given)
    session = SimpleNamespace(config=config, items=list(map(item, planned)))
    logs.pytest_collection_finish(session)
    assert bool(config.plugins) is captures
