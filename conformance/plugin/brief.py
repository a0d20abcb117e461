"""Report a failed cell without a traceback: its reason takes the place of one.

Writing a traceback out takes pytest some 15 ms, for which it reads and parses the sources; on a
young backend most cells fail.
"""

from __future__ import annotations

from typing import Any

import pytest

from conformance.harness.run import CellFailed


class _Brief(pytest.fail.Exception, CellFailed):
    """A CellFailed that pytest writes out as its message."""


@pytest.hookimpl
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    """Exchange the exception; runs after unittest's has been found, before the report is made."""
    raised = call.excinfo
    if raised is not None and type(raised.value) is CellFailed:
        brief = _Brief(str(raised.value), pytrace=False).with_traceback(raised.tb)
        call.excinfo = pytest.ExceptionInfo.from_exc_info((_Brief, brief, raised.tb))
