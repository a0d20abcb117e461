"""Where a run took place: torch, backend, Python, machine, commit, device and options."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.report.device_probe import RunningProbe


def collect_environment(
    device: str,
    backend_modules: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    probe: RunningProbe | None = None,
) -> dict[str, Any]:
    """The ``environment`` of report.json, JSON values only. Never raises.

    ``device`` is the device under test as torch writes it, ``backend_modules`` what is imported to
    register it, ``options`` those of the command line that decide what is run and how. The device
    is asked in a new process, which takes as long as importing torch: ``probe`` is one that was
    started before.
    """
    probed = (probe or RunningProbe(device, backend_modules)).answer()
    return {
        "torch": probed.get("torch") or {"version": version("torch")},
        "device": probed["device"],
        "backend": _backends(device, backend_modules),
        "harness": {"version": version("torch-conformance"), **commit()},
        "python": platform.python_version(),
        "platform": _platform(),
        "machine": {"cpu": _cpu_model(), "cores": _usable_cores()},
        "options": {key: _plain(value) for key, value in (options or {}).items()},
    }


def version(distribution: str) -> str | None:
    """The version of an installed distribution, None where there is none."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _backends(device: str, modules: Sequence[str]) -> list[dict[str, Any]]:
    """The distributions that the backend's modules belong to."""
    found: dict[str, dict[str, Any]] = {}
    for module in registering_modules(device.partition(":")[0], modules):
        for name in distributions(module) or [None]:
            found[name or module] = {
                "module": module,
                "distribution": name,
                "version": version(name) if name else None,
            }
    return list(found.values())


def registering_modules(device_type: str, modules: Sequence[str]) -> list[str]:
    """The modules that make the device's backend: those given, and those that torch autoloads.

    Only those given for a backend that is part of torch.
    """
    found = list(modules)
    autoload = os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1"  # as torch asks
    if autoload and device_type not in ("cpu", "cuda", "mps", "xpu", "meta"):
        found += [entry.module for entry in importlib.metadata.entry_points(group="torch.backends")]
    return list(dict.fromkeys(found))


def distributions(module: str) -> list[str]:
    """The names of the distributions that the module is installed by; usually one."""
    return importlib.metadata.packages_distributions().get(module.partition(".")[0], [])


def commit() -> dict[str, Any]:
    """Commit of the checkout that this file is tracked in, and whether it was changed since."""
    directory = Path(__file__).parent
    if _git(directory, "ls-files", "--error-unmatch", Path(__file__).name) is None:
        return {}  # Installed, perhaps into a folder that lies in someone else's repository.
    commit = _git(directory, "rev-parse", "HEAD")
    if commit is None:
        return {}
    changes = _git(directory, "status", "--porcelain", "--untracked-files=no", ":/")
    return {"commit": commit, "modified": bool(changes)}


def _git(directory: Path, *arguments: str) -> str | None:
    """Standard output of a git command, None when it fails or there is no git."""
    try:
        result = subprocess.run(
            ["git", *arguments], cwd=directory, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def _platform() -> str:
    """System, architecture and C library; the kernel's build is the machine's own affair."""
    return " ".join(filter(None, (platform.system(), platform.machine(), *platform.libc_ver())))


def _cpu_model() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or None


def _usable_cores() -> int | None:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # Only Linux has it.
        return os.cpu_count()


def _plain(value: Any) -> Any:
    """An option's value as JSON holds it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    return str(value)
