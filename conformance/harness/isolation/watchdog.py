"""Waits for a child's answer, and says why there will be none."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from conformance.harness.isolation.child import Child, ChildEnded

_STEP_S = 0.05
_SAMPLE_S = 0.2
_DYING_S = 1.0
"""How long a process may write stacks after a fatal signal, be it the watchdog's SIGABRT."""
_BUSY = 0.2
"""Share of one core above which a process counts as computing."""
_GIB = 2**30


class NoAnswer(Exception):
    """The child was ended since it gave no answer. ``text`` says why, ``signature`` in short."""

    def __init__(self, text: str, signature: str, *, is_timeout: bool) -> None:
        super().__init__(text)
        self.text, self.signature, self.is_timeout = text, signature, is_timeout


@dataclass(frozen=True)
class Limits:
    """What a request may use."""

    seconds: float
    memory_bytes: float = float("inf")
    """Resident memory of the child and all its processes together."""


def await_answer(child: Child, limits: Limits, each_step: Callable[[], None]) -> Any:
    """The child's answer. ``each_step`` is called while waiting; what it raises ends the wait.

    Raises ChildEnded when the child died, NoAnswer when it was ended for using more than its
    limits: aborted, so that it could write its stacks, then killed with all its processes.
    """
    began = time.monotonic()
    dying = None
    usage: _Usage | None = None
    while True:
        waited = time.monotonic() - began
        left = _STEP_S if dying else limits.seconds - waited
        answer = child.poll(max(0.0, min(_STEP_S, left)))
        if answer:
            return answer[0]
        each_step()
        waited = time.monotonic() - began
        if (fatal := child.fatal_signal()) is not None:
            # A handler that does not come to an end must not make a crash look like a hang.
            dying = waited if dying is None else dying
            if waited >= dying + _DYING_S:
                child.end()
                raise ChildEnded(-fatal)
            continue
        usage = usage or _Usage(child.pid)
        usage.sample(waited)
        if usage.memory_bytes > limits.memory_bytes:
            child.end()
            raise NoAnswer(_too_much_memory(usage, limits), "memory limit", is_timeout=False)
        if waited >= limits.seconds:
            text, signature = usage.describe(waited)
            child.end(abort_s=_DYING_S)
            raise NoAnswer(text, signature, is_timeout=True)


def _too_much_memory(usage: _Usage, limits: Limits) -> str:
    used, limit = usage.memory_bytes / _GIB, limits.memory_bytes / _GIB
    return f"was killed for using {used:.1f} GiB of memory; its limit is {limit:.1f} GiB"


class _Usage:
    """CPU time and memory of a process and its descendants, sampled while it runs."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._samples: deque[tuple[float, float]] = deque()
        self._next = 0.0
        self.memory_bytes = 0

    def sample(self, now: float) -> None:
        """Take memory now, and CPU time if the last sample is old enough."""
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self._pid)
            self.memory_bytes = process.memory_info().rss
            if now < self._next:
                return
            self._next = now + _SAMPLE_S
            busy = 0.0
            for each in (process, *process.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    times = each.cpu_times()
                    busy += times.user + times.system
                    if each is not process:
                        # Forks share most of what they hold: count what is theirs alone.
                        self.memory_bytes += each.memory_full_info().uss
            self._samples.append((now, busy))

    def describe(self, waited: float) -> tuple[str, str]:
        """Whether the process was stuck or computing at the end: a sentence and a signature."""
        late = [sample for sample in self._samples if sample[0] >= waited / 2]
        if len(late) < 2:
            late = list(self._samples)[-2:]
        begin, end = (late[0], late[-1]) if late else ((0.0, 0.0), (0.0, 0.0))
        span, busy = end[0] - begin[0], end[1] - begin[1]
        computing = span > 0 and busy / span >= _BUSY
        state = "still computing" if computing else "stuck"
        used = f"{busy:.3g} s of CPU time in the last {span:.3g} s"
        return f"gave no answer in {waited:.3g} s and was {state}: {used}", state


def default_memory_limit(processes: int) -> float:
    """A fair share of what memory is free now, in bytes, for each of so many processes."""
    free = float(psutil.virtual_memory().available)
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            free = min(free, float(Path(name).read_text()))
    return 0.8 * free / max(processes, 1)
