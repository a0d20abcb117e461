"""What torch says of the device under test, found in a process of its own.

A backend may die or hang when it is asked, and asking initialises it, which a process that means
to fork must not do. The process runs :func:`main` and prints one line of JSON after a marker.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.harness.isolation.nanny import die_with_parent

_MARKER = "device-probe-result:"
LIMIT_S = 60
"""How long a device may take to answer, in seconds."""
_COMMAND = f"from {__name__} import main; main()"


class RunningProbe:
    """A process that asks for torch's build and the device's properties, while others go on.

    It ends by itself after :data:`LIMIT_S` seconds, or when the thread that started it ends.
    """

    def __init__(self, device: str, backend_modules: Sequence[str] = ()) -> None:
        self._device = device
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  a pipe would want to be emptied
        path = os.pathsep.join(filter(None, sys.path))
        self._process: subprocess.Popen[bytes] | None = None
        self._problem: str | None = None
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _COMMAND, device, *backend_modules],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,
            )
        except OSError as error:
            self._problem = str(error)

    def answer(self, timeout_s: float = LIMIT_S) -> dict[str, Any]:
        """Wait for the answer and end the process. Never raises, but for interruptions.

        It has ``torch`` and ``device`` as ``report.json`` has them, or only a ``device`` with a
        ``problem`` that says why nothing is known.
        """
        if self._process is not None:
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self._problem = f"no answer within {timeout_s:g} s"
            finally:
                self.end()
        found = self._read() if self._problem is None else None
        return found or {"device": {"name": self._device, "problem": self._problem}}

    def end(self) -> None:
        """End the process and what it started."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _read(self) -> dict[str, Any] | None:
        self._output.seek(0)
        text = self._output.read().decode("utf-8", "replace")
        _, marker, answer = text.rpartition(_MARKER)
        if marker:
            # A property may be infinite, which a report cannot hold as a number.
            with contextlib.suppress(ValueError):  # Another thread may have printed into the line.
                return json.loads(answer.partition("\n")[0], parse_constant=str)
        code = self._process.returncode
        last_line = text.strip().rpartition("\n")[2]
        self._problem = last_line or f"ended with exit code {code}"
        if code == -signal.SIGALRM:
            self._problem = f"no answer within {LIMIT_S} s"
        elif code < 0:
            self._problem = f"died of {signal.Signals(-code).name}"
        return None


def main() -> None:
    """Answer on standard output; the arguments are the device and the backend's modules."""
    die_with_parent()
    signal.alarm(LIMIT_S)
    device, *modules = sys.argv[1:]
    answer = json.dumps(_describe(device, modules))
    print(f"\n{_MARKER}{answer}", flush=True)
    # Nothing of what a young backend does at exit matters here.
    os._exit(0)


def _describe(name: str, modules: Sequence[str]) -> dict[str, Any]:
    import torch

    for module in modules:
        importlib.import_module(module)
    version = torch.version
    build = {"version": torch.__version__, "git_version": version.git_version}
    build.update(
        {
            key: getattr(version, key)
            for key in ("cuda", "hip", "xpu")
            if getattr(version, key, None)
        }
    )
    device: dict[str, Any] = {"name": name}
    try:
        _add_properties(device, torch.device(name))
    except Exception as error:  # Any code of a backend may have been run.
        device["problem"] = f"{type(error).__name__}: {error}".partition("\n")[0]
    return {"torch": build, "device": device}


def _add_properties(found: dict[str, Any], device: Any) -> None:
    import torch

    if device.type == "cpu":
        return
    module = torch.get_device_module(device)
    found["count"] = int(module.device_count())
    properties = module.get_device_properties(device.index or 0)
    if isinstance(properties, Mapping):
        values = dict(properties)
    else:
        names = [name for name in dir(properties) if not name.startswith("_")]
        values = {name: getattr(properties, name, None) for name in names}
    found["properties"] = {
        str(name): value
        for name, value in values.items()
        if isinstance(value, bool | int | float | str)
    }
