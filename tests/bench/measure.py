"""What a command costs, with every process that it starts.

``python measure.py RESULT LOG TIMEOUT COMMAND...`` runs the command with its output in LOG and
writes to RESULT, as JSON, its exit code (None when TIMEOUT seconds did not suffice), wall and CPU
seconds, the peak resident bytes of its biggest process, and how many of its processes outlived it.
A process of its own, since the kernel keeps one account of ended children for each. Linux only.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_GRACE_S = 2.0


def measure(command: list[str], log: Path, timeout: float) -> dict[str, Any]:
    """Run the command and return what the module's description says."""
    # Orphans come to this process: their CPU time is counted, and they can be found.
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    start = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            returncode = process.wait(timeout)
        except subprocess.TimeoutExpired:
            returncode = None
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    wall = time.monotonic() - start
    left = _reap_orphans()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "returncode": returncode,
        "wall_s": wall,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * 1024,
        "left_running": left,
    }


def _reap_orphans() -> int:
    """Wait for processes that the command left, kill those that stay, and count the latter."""
    deadline = time.monotonic() + _GRACE_S
    killed: set[int] = set()
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return len(killed)
        if pid == 0:
            if time.monotonic() > deadline:
                killed.update(_kill_children())
            time.sleep(0.05)


def _kill_children() -> set[int]:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(child), signal.SIGKILL)
    return {int(child) for child in children}


if __name__ == "__main__":
    result, log, timeout, *command = sys.argv[1:]
    Path(result).write_text(json.dumps(measure(command, Path(log), float(timeout))))
