"""Leave out pytest's capture of log records, where a run has nothing but cells.

At both ends of each phase of each test pytest adds its handlers to every logger that does not
propagate, of which torch has some forty: nearly half of what pytest costs for a cell. What is
logged at level WARNING and above still comes out, on the captured stderr.
"""

from __future__ import annotations

import pytest

from conformance.plugin.planning import planned_of

_PLUGIN = "logging-plugin"
_ASKING = ("log_level", "log_cli_level", "log_file", "log_file_level")
"""The options, each also an ini option, by which a user asks for log records."""


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Unregister pytest's plugin unless something asks for what it captures."""
    config = session.config
    has_only_cells = all(planned_of(item) is not None for item in session.items)
    if has_only_cells and config.pluginmanager.has_plugin(_PLUGIN) and not _is_asked_for(config):
        config.pluginmanager.unregister(name=_PLUGIN)


def _is_asked_for(config: pytest.Config) -> bool:
    return config.getini("log_cli") or any(
        config.getoption(name, None) is not None or config.getini(name) for name in _ASKING
    )
