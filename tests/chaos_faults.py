"""What a broken kernel may do to its process, and what a run must then say of the cell.

Each function of :data:`FAULTS` is called inside a kernel of the device under test, before its own
work; one that returns lets the kernel compute as usual. Nothing here knows of the harness.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FOR_EVER = 3600
STATE = "CHAOS_STATE"
"""Environment variable: a folder for the marks of faults that strike once in a run."""
FATAL_ERROR = "accel driver: unrecoverable fault 719, the context is lost"
MOST_MEMORY = 6 << 30
"""Bytes at which a memory eater that nothing stops gives up, to spare the machine."""


class DeviceLost(RuntimeError):
    """What every call on a broken device raises."""


broken: str | None = None
"""The message of the errors that further calls in this process raise."""
small_calls_work = False
breaks_when_over = False
kept: list[bytearray] = []
"""Whether a broken device still computes a few elements."""
_FEW = 8


def _forever() -> None:
    while True:
        time.sleep(FOR_EVER)


# Deaths


def segfault() -> None:
    ctypes.string_at(8)


def abort() -> None:
    os.abort()


def exit_3() -> None:
    os._exit(3)


def exit_0() -> None:
    os._exit(0)


def killed() -> None:
    """As the kernel's out-of-memory killer does it."""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(FOR_EVER)


def terminated() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(FOR_EVER)


def dies_in_a_thread() -> None:
    threading.Thread(target=ctypes.string_at, args=(8,)).start()
    time.sleep(FOR_EVER)


def dies_once() -> None:
    if _first_time("dies_once"):
        ctypes.string_at(8)


def dies_and_hangs_the_next_start() -> None:
    _first_time("hang_at_start")
    ctypes.string_at(8)


def eats_memory() -> None:
    held = []
    while len(held) < MOST_MEMORY >> 26:
        held.append(bytearray(b"x") * (1 << 26))
    os._exit(99)


def keeps_memory() -> None:
    """Too little to be ended for, but never given back."""
    kept.append(bytearray(b"x") * (200 << 20))


# Exceptions that mean the end of a process


def sys_exit() -> None:
    sys.exit(3)


def keyboard_interrupt() -> None:
    raise KeyboardInterrupt


def generator_exit() -> None:
    raise GeneratorExit


# Hangs


def sleeps() -> None:
    time.sleep(FOR_EVER)


def deadlocks() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def sleeps_with_gil() -> None:
    ctypes.PyDLL(None).sleep(FOR_EVER)


def pauses_with_gil() -> None:
    while True:
        ctypes.PyDLL(None).pause()


def spins() -> None:
    while True:
        pass


def computes() -> None:
    import torch

    a = torch.ones(200, 200)
    until = time.monotonic() + 120
    while time.monotonic() < until:
        a @ a


def ignores_signals() -> None:
    for number in (signal.SIGABRT, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    _forever()


def hangs_with_children() -> None:
    _leave_children()
    _forever()


# Processes and threads


def children_then_death() -> None:
    _leave_children()
    ctypes.string_at(8)


def children_left() -> None:
    _leave_children()


def threads_left() -> None:
    for daemon in (True, False):
        for _ in range(4):
            threading.Thread(target=_forever, daemon=daemon).start()


def forks_and_returns() -> None:
    """Both processes go on, as after a kernel's helper that forgot to exec."""
    os.fork()


def _leave_children() -> None:
    """A child, one in a session of its own, and one whose parent is gone, all hanging."""
    if os.fork() == 0:
        _hang_for_good()
    if os.fork() == 0:
        os.setsid()
        _hang_for_good()
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if os.fork() == 0:
            _hang_for_good()
        os._exit(0)
    os.waitpid(middle, 0)


def _hang_for_good() -> None:
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        _forever()
    finally:
        os._exit(1)


# The process's surroundings


def prints_junk() -> None:
    junk = bytes(range(256)) * 512 + b"\x1b[2J\x1b]0;title\x07\x1b[31m\r\n\x00\xff\xfe"
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        os.write(number, junk)
        stream.write(junk.decode("latin-1"))
        stream.write("\udcff\n")
        stream.flush()


def closes_descriptors() -> None:
    os.closerange(3, 4096)


def closes_output() -> None:
    os.close(1)
    os.close(2)


def writes_everywhere() -> None:
    """Into every descriptor that there may be, its own or not."""
    for number in range(3, 1024):
        with contextlib.suppress(OSError):
            os.write(number, b"no business of mine\n")


def closes_streams() -> None:
    """What Python prints with, for this cell and all that follow."""
    sys.stdout.close()
    sys.stderr.close()


def changes_directory() -> None:
    os.chdir(tempfile.mkdtemp())
    os.rmdir(os.getcwd())


def leaves_files() -> None:
    import torch

    Path(tempfile.mkdtemp(), "left").write_bytes(b"x" * 4096)
    tempfile.mkstemp()
    before = torch.multiprocessing.get_sharing_strategy()
    torch.multiprocessing.set_sharing_strategy("file_system")
    shared = torch.ones(1000).share_memory_()
    torch.multiprocessing.set_sharing_strategy(before)
    _kept.append(shared)


def leaves_files_and_dies() -> None:
    leaves_files()
    ctypes.string_at(8)


_kept: list[object] = []


def changes_handlers() -> None:
    """Takes the handlers that a harness may have set for its own use."""
    import faulthandler

    faulthandler.disable()
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    ctypes.string_at(8)


# The device


def breaks_the_device() -> None:
    """From now on every call raises."""
    _break("an earlier kernel left the device in an unusable state", small=False)


def breaks_big_calls() -> None:
    """From now on every call on more than a few elements raises."""
    _break("an earlier kernel left most compute units in an unusable state", small=True)


def raises_fatally() -> None:
    """As :func:`breaks_big_calls`, by an error that the vendor knows to be fatal."""
    _break(FATAL_ERROR, small=True)


def breaks_silently() -> None:
    """This cell passes; once it is over, every call on more than a few elements raises."""
    global breaks_when_over
    breaks_when_over = True


def cell_is_over() -> None:
    """Called at a use of the device by another cell than the one that was last struck."""
    global broken, small_calls_work
    if breaks_when_over and broken is None:
        broken, small_calls_work = "most compute units do not answer any more", True


def _break(message: str, *, small: bool) -> None:
    global broken, small_calls_work
    broken, small_calls_work = message, small
    raise DeviceLost(broken)


def check_device(elements: int) -> None:
    """Called at every use of the device: raises if an earlier fault broke it."""
    if broken is not None and not (small_calls_work and elements <= _FEW):
        raise DeviceLost(broken)


def first_use() -> None:
    """Called at the first use of the device in a process: hangs once where a fault arranged it."""
    if _taken_back("hang_at_start"):
        _forever()


def mark(fault: str) -> None:
    """Leave word that the fault strikes now."""
    _path_of_mark(f"struck.{fault}").touch()


def _path_of_mark(name: str) -> Path:
    return Path(os.environ[STATE], name)


def _first_time(name: str) -> bool:
    try:
        _path_of_mark(name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _taken_back(name: str) -> bool:
    if STATE not in os.environ:
        return False
    try:
        _path_of_mark(name).rename(_path_of_mark(name + ".done"))
    except FileNotFoundError:
        return False
    return True


# What must be said of them

BROKE = "The device does not work after this cell"
STUCK, COMPUTING = r"(?i)\bstuck\b", r"(?i)\bcomputing\b"


@dataclass(frozen=True)
class Fault:
    """A fault and the record that it must lead to."""

    strike: Callable[[], None]
    outcomes: tuple[str, ...]
    reason: tuple[str, ...] = ()
    """Patterns that the reason must match."""
    stack: bool = True
    """Whether the reason must name the function in a Python stack."""
    rerun: str | None = None
    """Outcome of the second run; None where a second run is not asked for."""
    quick: bool = True
    """Whether it ends without waiting for the watchdog."""
    breaks_device: bool = False
    """Whether later cells in the same process fail for it."""

    @property
    def name(self) -> str:
        return self.strike.__name__


def _dies(strike: Callable[[], None], *reason: str, stack: bool = True) -> Fault:
    return Fault(strike, ("crash",), reason, stack, rerun="crash")


def _hangs(strike: Callable[[], None], *reason: str, stack: bool = True) -> Fault:
    return Fault(strike, ("timeout",), reason, stack, rerun="timeout", quick=False)


def _breaks(strike: Callable[[], None], *reason: str) -> Fault:
    return Fault(strike, ("fail",), reason, stack=False, breaks_device=True)


def _harmless(strike: Callable[[], None]) -> Fault:
    return Fault(strike, ("pass",), stack=False)


FAULTS = {
    fault.name: fault
    for fault in (
        _dies(segfault, "SIGSEGV"),
        _dies(abort, "SIGABRT"),
        _dies(exit_3, r"(?i)exit.*\b3\b", stack=False),
        _dies(exit_0, r"(?i)exit.*\b0\b", stack=False),
        _dies(killed, "SIGKILL", stack=False),
        _dies(terminated, "SIGTERM", stack=False),
        _dies(dies_in_a_thread, "SIGSEGV"),
        _dies(changes_handlers, "SIGSEGV", stack=False),
        _dies(children_then_death, "SIGSEGV"),
        _dies(leaves_files_and_dies, "SIGSEGV"),
        _dies(eats_memory, "(?i)memory", stack=False),
        Fault(dies_and_hangs_the_next_start, ("crash",), ("SIGSEGV",), rerun="crash", quick=False),
        Fault(dies_once, ("crash",), ("SIGSEGV",), rerun="pass"),
        _hangs(sleeps, STUCK),
        _hangs(deadlocks, STUCK),
        _hangs(sleeps_with_gil, STUCK),
        _hangs(pauses_with_gil, STUCK),
        _hangs(spins, COMPUTING),
        _hangs(computes, COMPUTING),
        _hangs(ignores_signals, STUCK, stack=False),
        _hangs(hangs_with_children, STUCK),
        _dies(sys_exit, "SystemExit", stack=False),
        _dies(keyboard_interrupt, "KeyboardInterrupt", stack=False),
        _dies(generator_exit, "GeneratorExit", stack=False),
        _breaks(breaks_the_device, "unusable state"),
        _breaks(breaks_big_calls, "unusable state"),
        _breaks(raises_fatally, "unrecoverable fault 719"),
        # Green where too few cells follow it to show.
        Fault(breaks_silently, ("fail", "pass"), (BROKE,), stack=False, breaks_device=True),
        _harmless(children_left),
        _harmless(threads_left),
        _harmless(keeps_memory),
        _harmless(forks_and_returns),
        _harmless(prints_junk),
        _harmless(closes_output),
        _harmless(changes_directory),
        _harmless(leaves_files),
        _dies(closes_descriptors, "(?i)descriptor|pipe", stack=False),
        _dies(writes_everywhere, "(?i)descriptor|pipe", stack=False),
        Fault(closes_streams, ("error", "pass"), stack=False, breaks_device=True),
    )
}
"""Every fault by name."""
