"""The device under test: found, checked and made ready in one place.

The order matters. A backend's rename of PrivateUse1 has to come before any module of
``torch.testing._internal`` is imported (importing one freezes the list of device types), and before
the first class is instantiated for the device (or that class is named after "privateuse1"). So
:func:`resolve` imports the backend and checks the device, and only then :func:`device_test_base`
imports torch's test machinery.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from conformance.harness.errors import describe_chain, describe_exception

if TYPE_CHECKING:
    import torch

BUNDLED = ("accel", "torch_accel")
"""The device and module of the reference backend that this project ships."""


class DeviceError(Exception):
    """The device under test cannot be had. The message says what to do about it."""


@dataclass(frozen=True)
class Device:
    """A device that is there. ``index`` is None for the CPU.

    ``backend_modules`` were imported to register its backend, beside what torch loads by itself.
    """

    type: str
    index: int | None
    backend_modules: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    @property
    def torch_device(self) -> torch.device:
        """As torch names it, index included."""
        import torch

        return torch.device(str(self))

    @property
    def module(self) -> Any:
        """``torch.<type>``, or None where the backend registered no module."""
        import torch

        return getattr(torch, self.type, None)

    def make_current(self) -> None:
        """Make it the current device of this thread, where the backend has more than one."""
        if self.index:
            self.module.set_device(self.index)

    def synchronize(self) -> None:
        """Wait for queued work, where the backend's module can."""
        synchronize = getattr(self.module, "synchronize", None)
        if callable(synchronize) and self.type != "cpu":
            synchronize()

    def drain(self) -> None:
        """Wait for queued work and drop the errors it left, so that nobody else is blamed."""
        for _ in range(_PENDING_ERRORS):
            try:
                return self.synchronize()
            except Exception:
                continue
        return None


_PENDING_ERRORS = 8
"""Errors that one call may leave queued, each raised at a synchronisation of its own."""

_current: Device | None = None


def current() -> Device:
    """The device that :func:`resolve` found. Raises DeviceError before that."""
    if _current is None:
        raise DeviceError("no device under test yet: run through the conformance plugin")
    return _current


def resolve(name: str | None, backend_modules: Sequence[str] = ()) -> Device:
    """Import the backend, find the device and make it the device under test.

    ``name`` is ``NAME`` or ``NAME:INDEX``; None means the current accelerator, else the bundled
    backend where it is installed. Raises DeviceError.
    """
    global _current
    _import_torch()
    wanted = _split(name) if name is not None else None
    modules = list(backend_modules)
    if not modules and _should_import_bundled(wanted):
        modules.append(BUNDLED[1])
    for module in modules:
        _import_backend(module)
    kind, index = wanted if wanted is not None else (_default_type(), None)
    _check_known(kind)
    _current = Device(kind, _check_available(kind, index), tuple(modules))
    return _current


def select_index(device: Device, number: int) -> Device:
    """Make another device of the type the device under test: ``number`` modulo how many there are.

    Raises DeviceError where the backend does not tell how many.
    """
    global _current
    count = None if device.type == "cpu" else _ask(device.type, device.module, "device_count", None)
    if count is None:
        raise DeviceError(
            f"--spread-devices needs to know how many devices there are: torch.{device.type} has "
            "no device_count"
        )
    _current = replace(device, index=number % count)
    return _current


def _import_torch() -> None:
    try:
        import torch  # noqa: F401
    except Exception as error:
        raise DeviceError(
            f"torch failed to import:\n{describe_chain(error)}\n"
            "If a backend's autoload is at fault, TORCH_DEVICE_BACKEND_AUTOLOAD=0 turns it off "
            "and --backend-module names the backend to import."
        ) from error


def _split(name: str) -> tuple[str, int | None]:
    match = re.fullmatch(r"([A-Za-z_]\w*)(?::(\d+))?", name)
    if match is None:
        raise DeviceError(f"--device: {name!r} is not NAME or NAME:INDEX, such as cuda or cuda:1")
    return match[1], None if match[2] is None else int(match[2])


def _should_import_bundled(wanted: tuple[str, int | None] | None) -> bool:
    import torch

    kind, module = BUNDLED
    if wanted is not None:
        return wanted[0] == kind and not hasattr(torch, kind)
    return torch.accelerator.current_accelerator() is None and _installed(module)


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _import_backend(module: str) -> None:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and module.split(".")[0] == error.name:
            raise DeviceError(
                f"backend module {module!r} is not installed in this environment; install it or "
                "name another with --backend-module"
            ) from error
        raise _failed_import(module, error) from error
    except Exception as error:
        raise _failed_import(module, error) from error


def _failed_import(module: str, error: Exception) -> DeviceError:
    return DeviceError(f"backend module {module!r} failed to import:\n{describe_chain(error)}")


def _default_type() -> str:
    import torch

    accelerator = torch.accelerator.current_accelerator()
    if accelerator is None:
        raise DeviceError(
            "no accelerator found: name the device with --device, and the module that registers "
            "its backend with --backend-module (--device=cpu judges the CPU against itself)"
        )
    return accelerator.type


def _check_known(kind: str) -> None:
    import torch

    private = torch._C._get_privateuse1_backend_name()
    try:
        known = torch.device(kind).type == kind
    except RuntimeError:
        known = False
    if known:
        return
    names = ["cpu", "cuda", "hpu", "mps", "mtia", "xpu"]
    if hasattr(torch, private):
        names.append(private)
    near = difflib.get_close_matches(kind, names, n=2)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise DeviceError(
        f"unknown device {kind!r}{hint}\n"
        f"torch knows here: {', '.join(names)}. A backend outside torch has to be installed with "
        "an entry point in the group torch.backends, or named with --backend-module."
    )


def _check_available(kind: str, index: int | None) -> int | None:
    """The index to use. Raises DeviceError when the device is not there."""
    import torch

    if kind == "cpu":
        if index:
            raise DeviceError(f"device index out of range: cpu:{index}, the CPU has index 0 only")
        return None
    module = getattr(torch, kind, None)
    if module is None:
        raise DeviceError(
            f"device {kind!r} is not available: torch has no module torch.{kind}; its backend has "
            "to register one with torch._register_device_module"
        )
    if not _ask(kind, module, "is_available", True):
        raise DeviceError(
            f"device {kind!r} is not available: torch.{kind}.is_available() is False on this "
            "machine"
        )
    count = _ask(kind, module, "device_count", None)
    if count == 0:
        raise DeviceError(f"device {kind!r} is not available: it has 0 devices")
    if index is not None and count is not None and index >= count:
        raise DeviceError(
            f"device index out of range: {kind}:{index}, there are {count} devices "
            f"({kind}:0 to {kind}:{count - 1})"
        )
    return index or 0


def _ask(kind: str, module: Any, function: str, otherwise: Any) -> Any:
    """What a function of the device module returns; ``otherwise`` where there is none."""
    found = getattr(module, function, None)
    if found is None:
        return otherwise
    try:
        return found()
    except Exception as error:
        raise DeviceError(
            f"device {kind!r} is not available: torch.{kind}.{function}() raised "
            f"{describe_exception(error)}"
        ) from error


def device_test_base(device: Device) -> type:
    """torch's base class of tests for the device, ready for ``instantiate_device_type_tests``.

    Raises DeviceError where torch has none.
    """
    from conformance.harness.torch_testing import import_device_types

    upstream = import_device_types()
    bases = {
        "cpu": upstream.CPUTestBase,
        "cuda": upstream.CUDATestBase,
        "hpu": getattr(upstream, "HPUTestBase", None),
        "mps": upstream.MPSTestBase,
        "xpu": upstream.XPUTestBase,
    }
    import torch

    if device.type == torch._C._get_privateuse1_backend_name():
        base = upstream.PrivateUse1TestBase
        _pin(base, device)
    else:
        base = bases.get(device.type)
    if base is None:
        raise DeviceError(f"torch {torch.__version__} has no device-type tests for {device.type!r}")
    if base not in upstream.device_type_test_bases:
        upstream.device_type_test_bases.append(base)
    return base


def _pin(base: type, device: Device) -> None:
    """Name the base after the backend now, not in the middle of the first instantiation.

    Its own ``setUpClass`` does that, but asks the module for a current device, which some backends
    lack, and which need not be the device under test.
    """

    def set_up_class(cls: type) -> None:
        cls.device_type = device.type
        cls.device_mod = device.module
        cls.primary_device = str(device)

    base.setUpClass = classmethod(set_up_class)
    base.setUpClass()
