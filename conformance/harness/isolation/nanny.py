"""The nanny: a small process between a watcher and a process that may do anything.

It is the reaper of everything that the child starts, whatever process group or session that moved
to (``PR_SET_CHILD_SUBREAPER``, Linux), so that nothing of it outlives the child; and it ends the
child when the watcher is gone, even by SIGKILL. It is a fork of the watcher that only waits.

The watcher sends ``("end", grace_s)``: SIGABRT, on which faulthandler writes the stacks, and
SIGKILL after that many seconds; no grace means SIGKILL at once. It gets ``("started", pid)``,
``("died", None)`` and, when nothing is left of the child, ``("ended", returncode)`` as
:attr:`subprocess.Popen.returncode` has it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn

import psutil

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TIDY = ("multiprocessing.resource_tracker", "torch_shm_manager")
"""Helpers that remove shared memory once the processes they serve are gone."""
_TIDY_S, _GIVE_UP_S = 4.0, 10.0
"""torch's helper takes two seconds to notice that it is alone."""
_POLL_S = 0.02


def tend(control: Connection, start: Callable[[], int], scratch: str) -> NoReturn:
    """Be the nanny of the process that ``start`` starts and returns the pid of.

    ``scratch`` is the child's folder for temporary files; it is emptied when the watcher is gone.
    """
    status = 1
    try:
        os.setsid()
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        began, pid = time.time(), start()
        control.send(("started", pid))
        returncode, watched = _wait(pid, control)
        with contextlib.suppress(OSError):
            control.send(("died", None))
        kill_descendants()
        _remove_shared_memory(pid, began)
        if watched:
            with contextlib.suppress(OSError):
                control.send(("ended", returncode))
        else:
            shutil.rmtree(scratch, ignore_errors=True)
        status = 0
    except BaseException as error:  # the watcher sees the pipe close
        print(f"conformance: the nanny process failed: {error!r}", file=sys.stderr)
    finally:
        kill_descendants()
        os._exit(status)


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that started it ends (Linux)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def restore_signals() -> None:
    """Undo in the child what :func:`tend` set."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _wait(pid: int, control: Connection) -> tuple[int, bool]:
    """The child's return code, and whether the watcher is still there."""
    handles: list[Any] = [control]
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            handles.append(os.pidfd_open(pid))
    step = None if len(handles) > 1 else _POLL_S
    watched, deadline = True, None
    while True:
        _reap_orphans(pid)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), watched
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            _kill(pid, signal.SIGKILL)
            deadline = None
        timeout = step if deadline is None else min(step or deadline - now, deadline - now)
        if control not in wait(handles, timeout):
            continue
        try:
            _, grace = control.recv()
        except (EOFError, OSError):
            watched, grace = False, 0.0
            handles.remove(control)
        if grace:
            _kill(pid, signal.SIGABRT)
            _kill(pid, signal.SIGCONT)
            deadline = time.monotonic() + grace
        else:
            _kill(pid, signal.SIGKILL)


def _reap_orphans(pid: int) -> None:
    """Collect dead processes that the child left, but not the child itself."""
    if not hasattr(os, "waitid"):
        return
    with contextlib.suppress(ChildProcessError):
        while True:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None or found.si_pid == pid:
                return
            os.waitpid(found.si_pid, os.WNOHANG)


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def kill_descendants() -> None:
    """Kill every process below this one, until there is none, or none that can be killed."""
    began = time.monotonic()
    while time.monotonic() < began + _GIVE_UP_S:
        found = [p for p in psutil.Process().children(recursive=True) if _is_alive(p)]
        tidy = [process for process in found if _is_tidy(process)]
        if not found:
            break
        # Helpers that clean up end by themselves, as soon as nobody needs them any more.
        in_time = time.monotonic() < began + _TIDY_S
        doomed = [process for process in found if not (in_time and process in tidy)]
        for process in doomed:
            _kill(process.pid, signal.SIGKILL)
        psutil.wait_procs(found, timeout=_POLL_S)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _remove_shared_memory(pid: int, began: float) -> None:
    """Remove what torch's helper has left of a process: it may have been misled or killed itself.

    torch names the files ``torch_<pid>_...`` (ATen/MapAllocator.cpp). They must be younger
    than the process, since namespaces of pids may share ``/dev/shm``.
    """
    for path in Path("/dev/shm").glob(f"torch_{pid}_*"):
        with contextlib.suppress(OSError):
            found = path.stat()
            if found.st_uid == os.geteuid() and found.st_mtime >= began - 1:
                path.unlink()


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _is_tidy(process: psutil.Process) -> bool:
    try:
        return any(name in " ".join(process.cmdline()) for name in _TIDY)
    except psutil.Error:
        return False
