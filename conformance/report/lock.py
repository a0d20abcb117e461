"""One run at a time in a report directory: two would mix their records."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from conformance.report.write import ReportDirError

try:
    import fcntl
except ImportError:  # not POSIX: runs are not kept apart there
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"


class DirLock:
    """Keeps a report directory for this process until :meth:`release`, or until it is dead.

    A lock of POSIX's (``fcntl``), which no forked child inherits: what a killed run leaves running
    for a moment keeps nobody out. Raises :class:`ReportDirError` where another process has it.
    """

    def __init__(self, report_dir: str | os.PathLike[str]) -> None:
        self._path = Path(report_dir, NAME)
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise ReportDirError(f"cannot open {self._path}: {error.strerror}") from error
        if fcntl is None:
            return
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES, as the system likes
            os.close(self._fd)
            raise ReportDirError(
                f"another run is writing into the report directory {self._path.parent}. Wait for "
                "its end, or give another with --report-dir"
            ) from None
        except OSError:  # a file system without locks
            return

    def release(self) -> None:
        """Let others have the directory; releasing twice is harmless."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(self._fd)
            self._fd = -1
