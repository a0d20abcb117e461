"""The child that runs cells at the moment: started when one is needed, replaced when it is lost."""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable, Iterable

import pytest

from conformance.harness.isolation.child import Child, ChildEnded, Workplace, fork, spawn
from conformance.harness.isolation.ending import describe_returncode, stacks_of
from conformance.harness.isolation.watchdog import Limits, NoAnswer, await_answer
from conformance.plugin.isolation.serve import serve
from conformance.plugin.isolation.spawned import COMMAND, description_of

_START_S = {"fork": 20.0, "spawn": 120.0}
"""How long a child may take until the device has answered, unless a cell may take longer."""
_TRIES = 3
"""Children in a row that may fail to start before it is left alone for a while."""
_PAUSE_S = 60.0
"""How long after that until it is tried again; it doubles."""


class StartFailed(Exception):
    """No child could be started. ``text`` says what became of it, ``signature`` in short."""

    def __init__(self, text: str, signature: str, stacks: str, *, is_timeout: bool) -> None:
        super().__init__(text)
        self.text, self.signature, self.stacks = text, signature, stacks
        self.is_timeout = is_timeout


class Children:
    """Keeps one child alive. ``each_step`` is called while waiting for a start.

    ``let_go`` is called in a forked child, to close what is the parent's alone.
    ``start_s``: how long a start may take at least, in seconds.
    """

    def __init__(
        self,
        session: pytest.Session,
        mode: str,
        each_step: Callable[[], None],
        let_go: Callable[[], None],
        start_s: float = 0.0,
    ) -> None:
        self._start_s = start_s
        self._session, self._mode, self._each_step = session, mode, each_step
        self._let_go = let_go
        self._child: Child | None = None
        self._failures = 0
        self._last_failure: StartFailed | None = None
        self._try_again = 0.0
        self._imported: dict[str, None] = {}
        self._first_bytes = 0
        """What the child held when it had started."""

    @property
    def has_one(self) -> bool:
        """Whether there is a child at the moment."""
        return self._child is not None

    def get(self) -> Child:
        """The child, started if there is none. Raises StartFailed."""
        if self._child is None:
            if self._last_failure is not None and time.monotonic() < self._try_again:
                raise self._last_failure
            while self._child is None:
                try:
                    self._child = self._start()
                except StartFailed as failure:
                    self._failures += 1
                    if self._failures >= _TRIES:
                        pause = _PAUSE_S * 2 ** (self._failures - _TRIES)
                        self._last_failure, self._try_again = failure, time.monotonic() + pause
                        raise
            self._failures, self._last_failure = 0, None
            self._first_bytes = self._child.resident_bytes()
        return self._child

    def is_outgrown(self, limit_bytes: float) -> bool:
        """Whether the child keeps more than half of the memory that cells may use of the limit.

        The next cell could be killed for what those before it have left there.
        """
        if self._child is None:
            return False
        now = self._child.resident_bytes()
        return now - self._first_bytes > (limit_bytes - self._first_bytes) / 2

    def note_imports(self, modules: Iterable[str]) -> None:
        """What a child imported late: the next one is forked with it, to be quick."""
        self._imported.update(dict.fromkeys(modules))

    def _import(self) -> None:
        for module in self._imported:
            with contextlib.suppress(Exception):
                importlib.import_module(module)
        self._imported.clear()

    def drop(self) -> None:
        """End the child. The next one starts anew, with nothing left of this one."""
        if self._child is not None:
            child, self._child = self._child, None
            child.close()

    def stop(self, within_s: float) -> None:
        """Let the child end by itself, tearing down what tests set up; end it if it does not."""
        if self._child is not None:
            try:
                self._child.send(None)
                await_answer(self._child, Limits(within_s), self._each_step)
            except (ChildEnded, NoAnswer):
                pass
            finally:
                self.drop()

    def _start(self) -> Child:
        if self._mode == "auto":
            return self._find_out()
        child, _ = self._started(self._mode)
        return child

    def _find_out(self) -> Child:
        """Settle on a mode: fork, unless the device works in a spawned child and not there."""
        forked, failure, problem = None, None, None
        for _ in range(2):  # it may die or hang by chance, and a spawned child is dear
            try:
                forked, problem = self._started("fork")
                break
            except StartFailed as error:
                failure, problem = error, error.text
        if problem is not None:
            try:
                spawned, still = self._started("spawn")
            except StartFailed:
                still = problem
            else:
                if still is None:
                    if forked is not None:
                        forked.close()
                    self._mode = "spawn"
                    return spawned
                spawned.close()
        self._mode = "fork"
        if forked is None:
            raise failure
        return forked

    def _serve(self, workplace: Workplace) -> None:
        self._let_go()
        serve(workplace, self._session)

    def _started(self, mode: str) -> tuple[Child, str | None]:
        """A child, and what the device did not do in it when asked whether it works."""
        if mode == "fork":
            self._import()
            child = fork(self._serve)
        else:
            child = spawn(COMMAND)
        try:
            if mode == "spawn":
                child.send(description_of(self._session.config))
            return child, await_answer(
                child, Limits(max(_START_S[mode], self._start_s)), self._each_step
            )
        except ChildEnded as error:
            is_timeout = False
            text, signature = describe_returncode(error.returncode)
        except NoAnswer as error:
            text, signature, is_timeout = error.text, error.signature, error.is_timeout
        except BaseException:
            child.close()
            raise
        stacks = stacks_of(child.stacks(), "", "serve")
        child.close()
        text = f"a fresh process for the device {text}"
        raise StartFailed(text, f"start: {signature}", stacks, is_timeout=is_timeout)
