"""Failed cells are reported by their reason."""

from __future__ import annotations

import pytest

from conformance.harness.run import CellFailed
from conformance.plugin import brief


def raise_failed():
    raise CellFailed("2 of 3 samples failed")


def raise_other():
    raise ValueError("our own fault")


@pytest.mark.parametrize(("test", "is_brief"), [(raise_failed, True), (raise_other, False)])
def test_only_a_failed_cell_goes_without_a_traceback(request, test, is_brief):
    call = pytest.CallInfo.from_call(test, "call")
    brief.pytest_runtest_makereport(request.node, call)
    text = str(request.node.repr_failure(call.excinfo))
    assert (text == "2 of 3 samples failed") is is_brief
    assert ("raise_other" in text) is not is_brief
    assert isinstance(call.excinfo.value, CellFailed) is is_brief
    assert call.excinfo.value.__traceback__ is not None
