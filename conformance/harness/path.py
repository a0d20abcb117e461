"""Which way an operator went on the device: its own kernel, a composition of others, or the CPU.

Three sources, none of them particular to a backend:

- a profiler trace of the call (the legacy autograd profiler, about 30 us where the usual one takes
  600) gives the tree of ATen calls;
- the dispatcher's tables say which of them the backend has a kernel of its own for;
- the trace also shows a CPU fallback at work: ``aten::_to_cpu``, which ``at::native::cpu_fallback``
  calls, or the same operator again inside itself allocating CPU memory, beside copies. A backend
  that computes on the CPU by means that no trace shows can declare it: a function
  ``fallback_calls()`` in its device module that returns a dict from overload name to the number of
  calls which ran synchronously on the CPU so far.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch


class Path(str, enum.Enum):
    """How a call was computed."""

    NATIVE = "native"
    """The backend has a kernel for every operator that was called."""
    COMPOSITE = "composite"
    """Some operator was composed by torch of others that the backend has kernels for."""
    FALLBACK = "fallback"
    """Some of it ran on the CPU."""

    def __str__(self) -> str:
        return self.value


_RANK = {Path.NATIVE: 0, Path.COMPOSITE: 1, Path.FALLBACK: 2}


def worst(a: Path | None, b: Path | None) -> Path | None:
    """The path of two calls together."""
    if a is None or b is None:
        return a or b
    return max(a, b, key=_RANK.__getitem__)


@dataclass
class AtenCall:
    """One call in a trace. ``arity`` counts the schema's arguments, given or not."""

    name: str
    arity: int
    calls: list[AtenCall] = field(default_factory=list)
    cpu_bytes: int = 0
    """CPU memory allocated while it ran, in bytes."""


class Trace:
    """The ATen calls made inside :meth:`record`."""

    def __init__(self) -> None:
        self.calls: list[AtenCall] = []

    @contextmanager
    def record(self) -> Iterator[None]:
        """Record the calls that this thread makes."""
        try:
            torch.autograd._enable_profiler_legacy(_profiler_config())
        except (AttributeError, RuntimeError, TypeError):
            yield  # a torch without this profiler, or one that is already in use
            return
        try:
            yield
        finally:
            self.calls = _call_tree(torch.autograd._disable_profiler_legacy())


@functools.lru_cache(maxsize=1)
def _profiler_config() -> Any:
    from torch.autograd import ProfilerConfig, ProfilerState

    shapes, memory = True, True
    experimental = torch._C._profiler._ExperimentalConfig()
    return ProfilerConfig(ProfilerState.CPU, shapes, memory, False, False, False, experimental)


def _call_tree(threads: list[list[Any]]) -> list[AtenCall]:
    """The calls of the thread that started the profiler."""
    roots: list[AtenCall] = []
    for events in threads:
        if not any(event.name() == "__start_profile" for event in events[:1]):
            continue
        stack: list[AtenCall] = []
        for event in events:
            kind = event.kind()
            if kind == "push":
                call = AtenCall(event.name(), len(event.shapes()))
                (stack[-1].calls if stack else roots).append(call)
                stack.append(call)
            elif kind == "pop" and stack:
                stack.pop()
            elif kind == "memory_alloc" and event.cpu_memory_usage() > 0:
                for call in stack:
                    call.cpu_bytes += event.cpu_memory_usage()
    return roots


@functools.cache
def _registered(key: str) -> frozenset[str]:
    """The overloads with a kernel of their own at a dispatch key."""
    return frozenset(torch._C._dispatch_get_registrations_for_dispatch_key(key))


_COMPOSITE_KEYS = (
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)


@functools.cache
def _overloads(name: str, arity: int) -> tuple[str, ...]:
    """The overloads that a traced name and number of arguments can stand for."""
    if "::" not in name:
        return ()  # a scope of the profiler's, such as a record_function block
    found = []
    for schema in torch._C._jit_get_schemas_for_operator(name):
        if len(schema.arguments) == arity:
            dot = f".{schema.overload_name}" if schema.overload_name else ""
            found.append(schema.name + dot)
    return tuple(found)


@functools.cache
def kernel_of(name: str, arity: int, key: str) -> Path | None:
    """Where the dispatcher finds the operator's kernel at ``key``.

    ``NATIVE`` for one registered there, ``COMPOSITE`` for torch's composition, ``FALLBACK`` when
    only the backend's boxed fallback is left. None for what is no operator, or has its kernel at
    another key, as operators on sparse tensors do.
    """
    overloads = _overloads(name, arity)
    if not overloads:
        return None
    own = _registered(key)
    if any(overload in own for overload in overloads):
        return Path.NATIVE
    if any(overload in _registered(c) for c in _COMPOSITE_KEYS for overload in overloads):
        return Path.COMPOSITE
    if torch._C._dispatch_has_backend_fallback(getattr(torch._C.DispatchKey, key)):
        return Path.FALLBACK
    return None


def path_of(calls: list[AtenCall], device_type: str) -> Path | None:
    """The path of a traced call, or None when the trace shows no operator."""
    key = torch._C._dispatch_key_for_device(device_type)
    path: Path | None = None
    for call in calls:
        path = worst(path, _path_of_call(call, key))
    if path is not None and device_type != "cpu" and any(map(_fell_back, calls)):
        return Path.FALLBACK
    return path


def _path_of_call(call: AtenCall, key: str) -> Path | None:
    path = kernel_of(call.name, call.arity, key)
    if path is Path.COMPOSITE:
        # A structured operator: the functional form is torch's, the work is the backend's `.out`.
        same = [inner for inner in call.calls if inner.name == call.name]
        if any(kernel_of(inner.name, inner.arity, key) is Path.NATIVE for inner in same):
            return Path.NATIVE
    if path is None:
        for inner in call.calls:
            path = worst(path, _path_of_call(inner, key))
    return path


_COPIES = frozenset(("aten::copy_", "aten::_copy_from", "aten::_copy_from_and_resize"))


def _fell_back(call: AtenCall) -> bool:
    if call.name == "aten::_to_cpu":
        return True
    again = any(inner.name == call.name and inner.cpu_bytes for inner in call.calls)
    # Without a copy of arguments or results it was no more than a question about their shapes.
    if again and any(map(_copies, call.calls)):
        return True
    return any(map(_fell_back, call.calls))


def _copies(call: AtenCall) -> bool:
    return call.name in _COPIES or any(map(_copies, call.calls))


class DeclaredFallbacks:
    """The backend's own count of calls that ran on the CPU, if its device module keeps one."""

    def __init__(self, device_module: Any) -> None:
        function = getattr(device_module, "fallback_calls", None)
        self._read: Callable[[], dict[str, int]] | None = function if callable(function) else None
        self._before: dict[str, int] = {}

    def start(self) -> None:
        """Remember the counts."""
        self._before = self._counts()

    def since_start(self) -> dict[str, int]:
        """The overloads called on the CPU since :meth:`start`, with the number of calls."""
        now = self._counts()
        before = self._before
        return {
            name: count - before.get(name, 0)
            for name, count in now.items()
            if count > before.get(name, 0)
        }

    def _counts(self) -> dict[str, int]:
        if self._read is None:
            return {}
        try:
            return dict(self._read())
        except Exception:
            self._read = None  # a declaration that fails says nothing
            return {}
