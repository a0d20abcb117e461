"""Finds a device that a cell broke without any probe noticing: all cells after it fail alike.

Reports of cells that fail with one signature in a row are held back, and that of the cell before
them if it passed. When there are enough of them a cell that passed earlier, the canary, is run in
the same process. If it fails now the process is done for, and the held cells run again in a fresh
one. The cell before them, suspected of having broken the device, is put to the test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from conformance.harness.outcomes import Outcome
from conformance.plugin.planning import planned_of
from conformance.plugin.recorder import RECORD

_ENOUGH = 3
_SUSPICIOUS = (Outcome.FAIL.value, Outcome.ERROR.value)
"""How cells end in a process that is no longer fit: the check's own code may be what fails."""
_CANARY_S = 0.5
"""A cell that takes longer is no canary."""


@dataclass
class Held:
    """The reports of a test, not yet logged."""

    item: pytest.Item
    reports: list[pytest.TestReport]
    ended_process: bool = False
    """Whether nothing is left of the process that it ran in."""

    @property
    def is_judged(self) -> bool:
        """Whether it is known to have broken the device: its process was ended for that."""
        return self.ended_process and self.record("outcome") in _SUSPICIOUS

    def record(self, name: str) -> object:
        """A value of the cell's record, None where it has none."""
        for report in self.reports:
            if hasattr(report, RECORD):
                return getattr(report, RECORD).get(name)
        return None


class Streak:
    """Cells that failed alike, one after another.

    ``is_broken(canary)`` runs a cell that once passed; ``run_again(held, after)`` gives a cell's
    reports from a fresh process, ``after`` being the id of the last cell before the streak;
    ``blame(held, canary)`` gives those of that last cell, by what the canary does after it.
    """

    def __init__(
        self,
        is_broken: Callable[[pytest.Item], bool],
        run_again: Callable[[Held, str], list[pytest.TestReport]],
        blame: Callable[[Held, pytest.Item], list[pytest.TestReport]],
    ) -> None:
        self._is_broken, self._run_again, self._blame = is_broken, run_again, blame
        self._suspect: Held | None = None
        """The last cell, if it passed: it may have broken the device without a sign."""
        self._held: list[Held] = []
        self._canary: pytest.Item | None = None
        self._before = ""
        self._innocent: set[object] = set()
        """Signatures that cells share on a device that works."""

    @property
    def is_on(self) -> bool:
        """Whether cells that failed are held back."""
        return bool(self._held)

    def add(self, held: Held, *, is_last: bool) -> list[Held]:
        """Take a cell's reports; gives back those that can be logged now, in order."""
        ready: list[Held] = []
        if held.is_judged:  # its verdict stays, and what follows runs in another process
            settle = len(self._held) > 1 and self._is_alike(held)
            ready = self._settle() if settle else self.release()
            self._before = planned_of(held.item).cell.id
            return [*ready, held]
        if not self._is_alike(held):
            if len(self._held) > 1 and held.record("outcome") != Outcome.PASS.value:
                return self._end_early(held, is_last=is_last)
            ready = self.release()
        if self._is_suspect(held):
            self._held.append(held)
            if len(self._held) >= _ENOUGH or (is_last and len(self._held) > 1):
                ready += self._settle()
        else:
            ready += self.release()
            self._before = planned_of(held.item).cell.id
            if held.record("outcome") == Outcome.PASS.value:
                self._suspect = held
                if self._canary is None and self._may_be_canary(held):
                    self._canary = held.item
            else:
                ready.append(held)
        return [*ready, *self.release()] if is_last else ready

    def release(self) -> list[Held]:
        """Everything that is held back, as it is."""
        ready, self._held = self._held, []
        if ready:
            self._before = planned_of(ready[-1].item).cell.id
        if self._suspect is not None:
            ready.insert(0, self._suspect)
            self._suspect = None
        return ready

    def _end_early(self, held: Held, *, is_last: bool) -> list[Held]:
        """Settle a short streak that ended with a cell which went wrong in another way."""
        if held.record("outcome") in _SUSPICIOUS:
            self._held.append(held)
            return self._settle()
        return [*self._settle(), *self.add(held, is_last=is_last)]

    def _is_alike(self, held: Held) -> bool:
        return not self._held or self._held[0].record("signature") == held.record("signature")

    def _is_suspect(self, held: Held) -> bool:
        return (
            held.record("outcome") in _SUSPICIOUS
            and self._canary is not None
            and held.record("signature") not in self._innocent
        )

    def _may_be_canary(self, held: Held) -> bool:
        seconds = held.record("duration_s")
        return isinstance(seconds, float) and seconds < _CANARY_S

    def _settle(self) -> list[Held]:
        """Find out whether the device is to blame; if so run the held cells again."""
        after = self._before
        if not self._is_broken(self._canary):
            self._innocent.add(self._held[0].record("signature"))
            return self.release()
        if self._suspect is not None:
            item = self._suspect.item
            self._suspect = Held(item, self._blame(self._suspect, self._canary))
        again: list[Held] = []
        for held in self._held:
            again.append(Held(held.item, self._run_again(held, after)))
            if again[-1].record("signature") == held.record("signature"):
                after = planned_of(held.item).cell.id  # it is the one that breaks the device
        self._held = again
        return self.release()
