"""The base class of conformance tests: torch's TestCase without what costs time and adds nothing.

torch's own ``run`` patches Dynamo's configuration, looks tests up in lists of disabled ones and
reseeds at every test, some 3 ms each. A cell needs none of it: its inputs are seeded by its name.
"""

from __future__ import annotations

import unittest

import torch
from torch.testing._internal.common_utils import TestCase

from conformance.harness import device as devices
from conformance.harness import run
from conformance.harness.run import CellRun


class ConformanceTestCase(TestCase):
    """Derive a class of checks from this and instantiate it with :func:`plan.instantiate`."""

    def __init__(self, methodName: str = "runTest") -> None:
        unittest.TestCase.__init__(self, methodName)

    def run(self, result: unittest.TestResult | None = None) -> unittest.TestResult | None:
        """Run the test by unittest's own method."""
        return unittest.TestCase.run(self, result)

    def setUp(self) -> None:
        """Make the device under test current."""
        devices.current().make_current()

    def tearDown(self) -> None:
        """Leave torch's global state as it was found."""
        torch.set_grad_enabled(True)

    @property
    def cell_run(self) -> CellRun:
        """The run of this cell, to fill in."""
        return run.current()
