"""Progress of a run as plain lines, for terminals and logs alike."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from conformance.harness.outcomes import Outcome


class Progress:
    """Counts cells as they end and says now and then how far the run is.

    ``total`` is the number of planned cells; a line is due at most every ``interval`` seconds.
    """

    def __init__(
        self, total: int, interval: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._total = total
        self._interval = interval
        self._clock = clock
        self._counts: Counter[str] = Counter()
        self._started = self._last = clock()

    def add(self, outcome: Outcome | str) -> str | None:
        """Count one ended cell; gives the line to print when one is due, else None."""
        self._counts[Outcome(outcome).value] += 1
        now = self._clock()
        if now - self._last < self._interval:
            return None
        self._last = now
        return self.line()

    def line(self) -> str:
        """Cells done, cells by outcome, rate and expected time left, in one line."""
        done = self._counts.total()
        elapsed = self._clock() - self._started
        rate = done / elapsed if elapsed > 0 else 0.0
        percent = 100 * done // self._total if self._total else 100
        counts = ", ".join(
            f"{self._counts[outcome.value]} {outcome.value}"
            for outcome in Outcome
            if self._counts[outcome.value]
        )
        text = f"{done}/{self._total} cells ({percent}%)"
        if counts:
            text += f": {counts}"
        text += f"; {rate:.1f}/s"
        if rate > 0:
            text += f", {format_seconds((self._total - done) / rate)} left"
        return text


def format_seconds(seconds: float) -> str:
    """Seconds as people write them: ``42 s``, ``3 min 05 s``, ``2 h 07 min``."""
    whole = round(max(0.0, seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
