"""Run one sample on the device under test, and tell apart the stages at which it can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput

from conformance.harness.device import Device
from conformance.harness.path import DeclaredFallbacks, Path, Trace, path_of
from conformance.harness.samples import arguments, call
from conformance.harness.transfer import Carrier


class StageError(Exception):
    """The device raised. ``stage`` says while doing what; ``error`` is what it raised."""

    def __init__(self, stage: str, error: Exception) -> None:
        super().__init__(f"{stage}: {error}")
        self.stage, self.error = stage, error


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Turn what the device raises inside into a StageError."""
    try:
        yield
    except StageError:
        raise
    except Exception as error:
        raise StageError(name, error) from error


@dataclass
class DeviceCall:
    """What the device did with one sample."""

    outputs: Any
    bases: list[torch.Tensor]
    """The arguments' storages, to be read after the call (see Carrier.bases)."""
    reached_device: bool
    """Whether any argument said or carried the device; if not, the op ran where it defaults to."""
    path: Path | None = None
    notes: list[str] = field(default_factory=list)


class OnDevice:
    """Runs samples on one device, tracing the path that each takes."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.torch_device = device.torch_device
        self._declared = DeclaredFallbacks(device.module if device.type != "cpu" else None)

    def call(self, op: Callable[..., Any], sample: SampleInput) -> DeviceCall:
        """Carry the sample over and call ``op`` with it.

        Raises StageError with what the device raised. Queued work may raise later, when results
        are read.
        """
        carrier = Carrier(self.torch_device)
        with stage("moving the arguments to the device"):
            args = carrier.carry(arguments(sample))
        trace = Trace()
        self._declared.start()
        with stage("calling the operator"), trace.record():
            outputs = call(op, args)
        path = path_of(trace.calls, self.device.type)
        if self._declared.since_start():
            path = Path.FALLBACK
        reached = carrier.moved_tensors or carrier.rewrote_device
        return DeviceCall(outputs, carrier.bases, reached, path, carrier.notes)
