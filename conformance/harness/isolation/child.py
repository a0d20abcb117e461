"""A process that answers requests over a pipe and whose death costs nobody else anything.

It is forked, which costs milliseconds and shares all that the watcher has imported, or spawned, a
new interpreter, for what does not work in a forked process. Either way it has a session of its own,
no terminal, no core dumps, a file that faulthandler writes stacks to, a page of memory shared with
the watcher, and the worst score with the kernel's out-of-memory killer.
"""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import pickle
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import IO, Any

import psutil

from conformance.harness.isolation import nanny

_PAGE_BYTES = 4096
_LENGTH = struct.Struct("=I")
_FATAL = {
    signal.SIGSEGV: "Segmentation fault",
    signal.SIGABRT: "Aborted",
    signal.SIGBUS: "Bus error",
    signal.SIGFPE: "Floating",
    signal.SIGILL: "Illegal instruction",
}
"""What faulthandler writes first."""
_HEADER = struct.Struct("!i")
"""What :meth:`Connection.send` writes before the pickle, of messages below 2 GiB."""
_READ_BYTES, _READS = 1 << 20, 64
"""How much is read at once, and how often before the watcher looks elsewhere."""
_DYING_S = 1.0
"""How long after its pipe closes a process may take to be gone."""
_NANNY_S = 30.0
"""How long a nanny may take to start its child, or to end it and all its processes."""


class ChildEnded(Exception):
    """The child is gone. ``returncode`` as Popen's; None where not even that could be learnt.

    ``hung_up``: it still ran, but its pipe was closed or held other things than answers, so that it
    had to be killed.
    """

    def __init__(self, returncode: int | None, *, hung_up: bool = False) -> None:
        super().__init__(returncode)
        self.returncode, self.hung_up = returncode, hung_up


class Page:
    """A page of shared memory with a short text: what the child is doing now."""

    def __init__(self, file: IO[bytes]) -> None:
        os.ftruncate(file.fileno(), _PAGE_BYTES)
        self._file, self._memory = file, mmap.mmap(file.fileno(), _PAGE_BYTES)

    def fileno(self) -> int:
        """The descriptor of the file behind it, for a child to inherit."""
        return self._file.fileno()

    def write(self, text: str) -> None:
        """Replace the text; what does not fit is cut."""
        data = text.encode("utf-8", "replace")[: _PAGE_BYTES - _LENGTH.size]
        self._memory[: _LENGTH.size + len(data)] = _LENGTH.pack(len(data)) + data

    def read(self) -> str:
        """The text as it is."""
        (length,) = _LENGTH.unpack_from(self._memory)
        data = self._memory[_LENGTH.size : min(_LENGTH.size + length, _PAGE_BYTES)]
        return data.decode("utf-8", "replace")

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()
        self._file.close()


class Workplace:
    """What a child finds when it starts.

    Its end of the pipe, the page, the file that stacks go to and the folder for temporary files.
    """

    def __init__(self, connection: Connection, page: Page, stacks: IO[bytes], scratch: str) -> None:
        self.connection, self.page, self.stacks = connection, page, stacks
        self.scratch = scratch
        self._identity = [_identity(handle) for handle in self._handles()]

    def _handles(self) -> tuple[Any, ...]:
        return 0, 1, 2, self.connection, self.page, self.stacks

    def is_intact(self) -> bool:
        """Whether the descriptors are still what they were."""
        try:
            return self._identity == [_identity(handle) for handle in self._handles()]
        except OSError:
            return False

    def settle(self) -> None:
        """Make this process one that may die. Called first thing in it."""
        os.setsid()
        nanny.die_with_parent()
        nanny.restore_signals()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")
        os.environ["TMPDIR"] = tempfile.tempdir = self.scratch
        faulthandler.enable(self.stacks, all_threads=True)

    def cut_off(self) -> None:
        """Put /dev/null in the place of all pipes and sockets of the process this is a fork of.

        Code that writes to descriptors that are not its own must reach nobody outside. Standard
        output and error stay, and copies of them, such as pytest keeps while it captures.
        """
        # Python has all processes of a family share one tracker, so that one is this one's too.
        tracker = getattr(resource_tracker._resource_tracker, "_fd", None)
        kept = [handle for handle in (0, 1, 2, self.connection, tracker) if handle is not None]
        identities = set(map(_identity, kept))
        null = os.open(os.devnull, os.O_RDWR)
        for number in map(int, os.listdir("/dev/fd")):
            with contextlib.suppress(OSError):
                mode = os.fstat(number).st_mode
                is_pipe = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
                if is_pipe and _identity(number) not in identities:
                    os.dup2(null, number, inheritable=False)
        os.close(null)


def _identity(handle: Any) -> tuple[int, int]:
    found = os.fstat(handle if isinstance(handle, int) else handle.fileno())
    return found.st_dev, found.st_ino


class Child:
    """A process and its nanny, seen from the watcher. Made by :func:`fork` or :func:`spawn`."""

    def __init__(self, start: Callable[[Workplace], int]) -> None:
        self.scratch = tempfile.mkdtemp(prefix="conformance-")
        """The folder where the child makes its temporary files."""
        self.page = Page(tempfile.TemporaryFile())  # noqa: SIM115  closed by close()
        self._stacks = tempfile.TemporaryFile()  # noqa: SIM115
        self.connection, theirs = Pipe()
        self._control, nannys = Pipe()
        self._received = bytearray()
        self._returncode: int | None = None
        self._is_over = False
        sys.stdout.flush()
        sys.stderr.flush()
        self._nanny_pid = os.fork()
        if self._nanny_pid == 0:
            self.connection.close()
            self._control.close()

            def start_and_let_go() -> int:
                pid = start(Workplace(theirs, self.page, self._stacks, self.scratch))
                theirs.close()
                return pid

            nanny.tend(nannys, start_and_let_go, self.scratch)
        theirs.close()
        nannys.close()
        self.pid = self._expect("started")

    def resident_bytes(self) -> int:
        """Its resident memory; 0 when it is gone."""
        try:
            return psutil.Process(self.pid).memory_info().rss
        except (psutil.Error, TypeError):
            return 0

    def send(self, message: object) -> None:
        """Send a request. Raises ChildEnded where nobody takes it."""
        try:
            self.connection.send(message)
        except OSError:
            raise self._lost() from None

    def poll(self, timeout_s: float) -> tuple[Any, ...]:
        """Wait for an answer: ``(answer,)``, or ``()`` when the time is up.

        Raises ChildEnded when the child has died, closed its pipe or written other things to it.
        """
        ready = wait([self.connection, self._control], timeout_s)
        if self.connection in ready:
            try:
                return self._receive()
            except Exception:  # its end closed, or something else written into the pipe
                raise self._lost() from None
        if ready:
            raise ChildEnded(self.end())
        return ()

    def _receive(self) -> tuple[Any, ...]:
        """The message if it is whole. Never waits: a child may write a part of one, and hang.

        Raises whatever when the pipe holds no message.
        """
        for _ in range(_READS):
            data = os.read(self.connection.fileno(), _READ_BYTES)
            if not data:
                raise EOFError
            self._received += data
            if len(self._received) > _HEADER.size:
                (length,) = _HEADER.unpack_from(self._received)
                begin, end = _HEADER.size, _HEADER.size + length
                is_one = length > 0 and self._received[begin : begin + 1] == pickle.PROTO
                if not is_one or len(self._received) > end:
                    raise ValueError("not a message, or more than one")
                if len(self._received) == end:
                    data, self._received = self._received[begin:], bytearray()
                    return (pickle.loads(data),)
            if not wait([self.connection], 0):
                break
        return ()

    def _lost(self) -> ChildEnded:
        """The pipe is of no use any more. Mostly the child is dead, and its nanny about to tell."""
        died = self._is_over or bool(wait([self._control], _DYING_S))
        return ChildEnded(self.end(), hung_up=not died)

    def end(self, abort_s: float = 0.0) -> int | None:
        """End the child and all that it started; returns its return code.

        With ``abort_s`` it gets SIGABRT first, so that its stacks are written, and has that many
        seconds to die of it.
        """
        if not self._is_over:
            with contextlib.suppress(OSError):
                self._control.send(("end", abort_s))
            self._returncode = self._expect("ended")
        return self._returncode

    def stacks(self) -> str:
        """What faulthandler wrote when the child died."""
        size = os.fstat(self._stacks.fileno()).st_size
        return os.pread(self._stacks.fileno(), size, 0).decode("utf-8", "replace")

    def fatal_signal(self) -> int | None:
        """The signal of which the child is dying, once faulthandler has begun to say so."""
        if not os.fstat(self._stacks.fileno()).st_size:
            return None
        return next((n for n, text in _FATAL.items() if text in self.stacks()[:100]), None)

    def close(self) -> None:
        """End the child, if it still runs, and give back what belonged to it."""
        self.end()
        for thing in (self.connection, self._control, self.page, self._stacks):
            thing.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _expect(self, word: str) -> int | None:
        """What the nanny says with this word, or at the end. None when it is gone itself."""
        said, value = "", None
        try:
            while said != "ended" and self._control.poll(_NANNY_S):
                said, value = self._control.recv()
                if said == word == "started":
                    return value
        except (EOFError, OSError):
            pass
        self._is_over = True
        self._reap_nanny()
        return value

    def _reap_nanny(self) -> None:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            if not wait([self._control], 1.0):
                os.kill(self._nanny_pid, signal.SIGKILL)
            os.waitpid(self._nanny_pid, 0)


def fork(main: Callable[[Workplace], None]) -> Child:
    """A child that runs ``main`` as a copy of this process, and ends when it returns."""

    def start(workplace: Workplace) -> int:
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            workplace.settle()
            workplace.cut_off()
            main(workplace)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    return Child(start)


def spawn(command: Sequence[str]) -> Child:
    """A child that is a new process of ``command``, which gets four more arguments.

    :func:`workplace_of_spawned` makes a Workplace of them.
    """

    def start(workplace: Workplace) -> int:
        handles = (workplace.connection, workplace.page, workplace.stacks)
        numbers = [handle.fileno() for handle in handles]
        path = os.pathsep.join(filter(None, sys.path))
        process = subprocess.Popen(
            [*command, *map(str, numbers), workplace.scratch],
            pass_fds=numbers,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
        process.returncode = 0  # the nanny waits for it by itself
        return process.pid

    return Child(start)


def workplace_of_spawned(arguments: Sequence[str]) -> Workplace:
    """In a spawned process: the Workplace that its last four arguments stand for."""
    connection, page, stacks = map(int, arguments[-4:-1])
    shared, written = os.fdopen(page, "r+b"), os.fdopen(stacks, "r+b")
    return Workplace(Connection(connection), Page(shared), written, arguments[-1])
