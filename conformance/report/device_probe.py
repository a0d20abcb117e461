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
from collections.abc import Mapping, Sequence
from typing import Any

_MARKER = "device-probe-result:"
_COMMAND = f"from {__name__} import main; main()"


def probe_device(
    device: str, backend_modules: Sequence[str] = (), timeout_s: float = 60.0
) -> dict[str, Any]:
    """Ask a new process for torch's build and the device's properties. Never raises.

    The answer has ``torch`` and ``device`` as ``report.json`` has them, or only a ``device`` with
    a ``problem`` that says why nothing is known.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", _COMMAND, device, *backend_modules]
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=timeout_s)
            except BaseException as error:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                return _problem(device, f"no answer within {timeout_s:g} s")
    except OSError as error:
        return _problem(device, str(error))
    text = output.decode("utf-8", "replace")
    _, marker, answer = text.rpartition(_MARKER)
    if marker:
        # A property may be infinite, which a report cannot hold as a number.
        with contextlib.suppress(ValueError):  # Another thread may have printed into the line.
            return json.loads(answer.partition("\n")[0], parse_constant=str)
    if process.returncode < 0:
        return _problem(device, f"died of {signal.Signals(-process.returncode).name}")
    last_line = text.strip().rpartition("\n")[2]
    return _problem(device, last_line or f"ended with exit code {process.returncode}")


def _problem(device: str, text: str) -> dict[str, Any]:
    return {"device": {"name": device, "problem": text}}


def main() -> None:
    """Answer on standard output; the arguments are the device and the backend's modules."""
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
