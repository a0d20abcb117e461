"""How a process ended, in words."""

from __future__ import annotations

import re
import signal

from conformance.harness.errors import shorten

_NATIVE = re.compile(r"^SIG[A-Z]+\(\d+\), PID: ", re.MULTILINE)
"""How the stacks begin that torch writes to stderr on a fatal signal (c10 FatalSignalHandler)."""
_FRAMES = 40
_FRAME_CHARACTERS = 300


def describe_returncode(returncode: int | None) -> tuple[str, str]:
    """What a return code says: a sentence without subject, and a short signature."""
    if returncode is None:
        return "disappeared, and left no exit code", "no exit code"
    if returncode >= 0:
        return f"ended by itself with exit code {returncode}", f"exit code {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    text = f"died of {name}"
    if name == "SIGKILL":
        text += ", which the harness did not send: the kernel's out-of-memory killer perhaps"
    elif description := signal.strsignal(-returncode):
        text += f" ({description})"
    return text, name


def stacks_of(written: str, stderr: str, outermost: str = "\n") -> str:
    """The stacks of a process that died: Python's, and the native ones that torch printed.

    ``written`` is faulthandler's file and ``stderr`` what was captured of standard error. Frames
    outside of the function ``outermost`` are left out.
    """
    python, _, _ = written.partition("\nExtension modules: ")
    inner, found, _ = python.partition(f" in {outermost}\n")
    python = inner + found
    native = _NATIVE.search(stderr)
    parts = [python.strip(), stderr[native.start() :].strip() if native else ""]
    return "\n\n".join(_cut(part) for part in parts if part)


def _cut(text: str) -> str:
    lines = [shorten(line.rstrip(), _FRAME_CHARACTERS) for line in text.splitlines()]
    if len(lines) > _FRAMES:
        lines[_FRAMES:] = [f"... {len(lines) - _FRAMES} more lines"]
    return "\n".join(lines)
