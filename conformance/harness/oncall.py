"""Run one sample on the device under test, and tell apart the stages at which it can fail."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from conformance.harness.device import Device
from conformance.harness.path import DeclaredFallbacks, Path, Trace, path_of
from conformance.harness.samples import arguments, call, keep_cpu_arguments, parcel
from conformance.harness.transfer import Carrier


class StageError(Exception):
    """The device raised. ``stage`` says while doing what; ``error`` is what it raised."""

    def __init__(self, stage: str, error: Exception) -> None:
        super().__init__(f"{stage}: {error}")
        self.stage, self.error = stage, error


class stage:
    """Context: turn what the device raises inside into a StageError."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, StageError):
            raise StageError(self._name, error) from error


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
    and contiguity of tensors, values of flags and strings, kinds of other arguments) is new here,
    and no longer once a call has fallen back, the worst that there is.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.torch_device = device.torch_device
        self._declared = DeclaredFallbacks(device.module if device.type != "cpu" else None)
        self._declared.start()
        self._traced: set[Any] = set()
        self._fell_back = False

    def call(self, op: OpInfo, sample: SampleInput) -> DeviceCall:
        """Carry the sample over and call ``op`` with it.

        Raises StageError with what the device raised. Queued work may raise later, when results
        are read.
        """
        carrier, args, where = self._carry(op, sample)
        if self._is_traced(sample):
            path = None
            with stage("calling the operator"), where:
                outputs = call(op, args)
        else:
            trace = Trace()
            with stage("calling the operator"), where, trace.record():
                outputs = call(op, args)
            path = path_of(trace.calls, self.device.type)
            self._fell_back = path is Path.FALLBACK
        return DeviceCall(outputs, carrier.bases, path, carrier.notes)

    def declares_fallback(self, op: OpInfo, samples: Iterable[SampleInput]) -> bool:
        """Whether the backend declares that a call of one of the samples ran on the CPU.

        Call it once the samples have run. Its account is read at both ends of the run, not around
        each call; where it has grown, which copying arguments may have done as well, the calls are
        repeated one by one. False where a trace has told as much already.
        """
        if self._fell_back or not self._declared.since_start():
            return False
        return any(self._declares_fallback(op, sample) for sample in samples)

    def _declares_fallback(self, op: OpInfo, sample: SampleInput) -> bool:
        try:
            _, args, where = self._carry(op, sample)
            self._declared.start()
            with stage("calling the operator"), where:
                call(op, args)
        except StageError:
            return False
        finally:
            self.device.drain()
        return bool(self._declared.since_start())

    def _carry(
        self, op: OpInfo, sample: SampleInput
    ) -> tuple[Carrier, Any, AbstractContextManager[Any]]:
        """The arguments on the device, and the context that the call needs."""
        carrier = Carrier(self.torch_device)
        with stage("moving the arguments to the device"):
            args = keep_cpu_arguments(op, sample, carrier.carry(parcel(sample)))
        if carrier.moved_tensors or carrier.rewrote_device:
            return carrier, args, nullcontext()
        return carrier, args, self.torch_device  # a factory that leaves the device to the default

    def _is_traced(self, sample: SampleInput) -> bool:
        """Whether the path of the sample's call is known, or not worth knowing."""
        if self._fell_back:
            return True
        outline = _outline(arguments(sample))
        if outline in self._traced:
            return True
        self._traced.add(outline)
        return False


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
