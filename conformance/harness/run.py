"""The cell that is being run: what the check finds out about it, for the plugin to record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from conformance.harness.cells import Cell
from conformance.harness.figures import Figures
from conformance.harness.outcomes import Outcome


class CellFailed(AssertionError):
    """Ends the test of a cell that is wrong. The run holds the outcome and the reason."""


@dataclass
class CellRun:
    """What is known of one cell so far. A check fills it in and ends with :meth:`finish`."""

    cell: Cell
    samples: int = 0
    """Samples that ran on the device, right or wrong."""
    outcome: Outcome | None = None
    reason: str | None = None
    signature: str | None = None
    path: str | None = None
    figures: Figures = field(default_factory=Figures)

    def conclude(
        self, outcome: Outcome, reason: str | None = None, signature: str | None = None
    ) -> None:
        """Set the outcome, once."""
        if self.outcome is not None:
            raise RuntimeError(f"{self.cell.id} already ended: {self.outcome}")
        self.outcome, self.reason, self.signature = outcome, reason, signature

    def finish(self) -> None:
        """End the test: raise CellFailed where pytest has to count the cell as failed."""
        if self.outcome is None:
            self.conclude(Outcome.ERROR, "the check came to no verdict", "no verdict")
        if self.outcome.is_red:
            raise CellFailed(self.reason)


_current: CellRun | None = None
_tell: Callable[[str], None] | None = None
_in_detail = False


def on_progress(tell: Callable[[str], None] | None, *, in_detail: bool = False) -> None:
    """Have ``tell`` called with what the cell is at, so that a watcher knows if it dies there."""
    global _tell, _in_detail
    _tell, _in_detail = tell, in_detail


def progress(what: str, detail: Callable[[], str]) -> None:
    """Say what the cell is at. ``detail`` is asked for more where it is worth the time."""
    if _tell is not None:
        _tell(f"{what} {detail()}" if _in_detail else what)


def begin(cell: Cell) -> CellRun:
    """Start the run of a cell. Called by the plugin."""
    global _current
    _current = CellRun(cell)
    return _current


def current() -> CellRun:
    """The run of the cell whose test is executing. Raises RuntimeError outside of one."""
    if _current is None:
        raise RuntimeError("no cell is running: conformance checks need the conformance plugin")
    return _current
