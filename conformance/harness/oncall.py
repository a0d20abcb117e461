"""Run one sample on the device under test, and tell apart the stages at which it can fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from conformance.harness.device import Device
from conformance.harness.path import DeclaredFallbacks, Path, Trace, path_of
from conformance.harness.samples import arguments, call, keep_cpu_arguments
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
    path: Path | None = None
    """None where the call was not traced."""
    notes: list[str] = field(default_factory=list)


class OnDevice:
    """Runs samples of one op at one dtype on a device, tracing the path that they take.

    A trace costs as much as several small operators, so a call is traced when its outline (ranks
    and contiguity of tensors, values of flags and strings, kinds of other arguments) is new here.
    What a backend declares to have run on the CPU is read around every call.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.torch_device = device.torch_device
        self._declared = DeclaredFallbacks(device.module if device.type != "cpu" else None)
        self._traced: set[Any] = set()

    def call(self, op: OpInfo, sample: SampleInput) -> DeviceCall:
        """Carry the sample over and call ``op`` with it.

        Raises StageError with what the device raised. Queued work may raise later, when results
        are read.
        """
        carrier = Carrier(self.torch_device)
        with stage("moving the arguments to the device"):
            args = keep_cpu_arguments(op, sample, carrier.carry(arguments(sample)))
        where: AbstractContextManager[Any] = nullcontext()
        if not (carrier.moved_tensors or carrier.rewrote_device):
            where = self.torch_device  # a factory that leaves the device to the default
        outline = _outline(arguments(sample))
        self._declared.start()
        if outline in self._traced:
            path = None
            with stage("calling the operator"), where:
                outputs = call(op, args)
        else:
            self._traced.add(outline)
            trace = Trace()
            with stage("calling the operator"), where, trace.record():
                outputs = call(op, args)
            path = path_of(trace.calls, self.device.type)
        if self._declared.since_start():
            path = Path.FALLBACK
        return DeviceCall(outputs, carrier.bases, path, carrier.notes)


def _outline(value: Any) -> Any:
    """What of the arguments is likely to decide the path; hashable."""
    if isinstance(value, torch.Tensor):
        return value.dim(), value.dtype, value.layout is torch.strided and value.is_contiguous()
    if value is None or isinstance(value, (bool, str, torch.dtype)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(map(_outline, value))
    if isinstance(value, dict):
        return tuple((name, _outline(item)) for name, item in value.items())
    return type(value)
