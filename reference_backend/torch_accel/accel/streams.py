"""Streams and events: torch.Stream and torch.Event, with the device filled in."""

import contextlib

import torch

from .. import _C
from ._utils import checked_index

_DEFAULT_STREAM_ID = 0


class _OfThisDevice(type):
    """Calling the class makes a plain torch object; isinstance asks for its device.

    A subclass would not do: torch itself makes streams (torch.accelerator.current_stream()), and
    they are no instances of a subclass.
    """

    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, cls._base) and instance.device.type == "accel"


class Stream(metaclass=_OfThisDevice):
    """``Stream(device=None, priority=0)`` makes a torch.Stream of an accel device.

    A priority below 0 is high. Also, for a stream that exists: ``stream_id``, ``device_index`` and
    ``device_type``, as for torch.Stream.
    """

    _base = torch.Stream

    def __new__(cls, device=None, priority: int = 0, **kwargs) -> torch.Stream:
        if "stream_id" in kwargs:
            return torch.Stream(**kwargs)
        return torch.Stream(torch.device("accel", checked_index(device)), priority=priority)


class Event(metaclass=_OfThisDevice):
    """``Event(enable_timing=False)`` makes a torch.Event of the accel device that records it.

    ``blocking`` and ``interprocess`` are as for torch.Event (waiting never spins here).
    """

    _base = torch.Event

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> torch.Event:
        return torch.Event(
            "accel", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
        )


def current_stream(device=None) -> torch.Stream:
    """The calling thread's current stream of a device."""
    return torch.accelerator.current_stream(checked_index(device))


def default_stream(device=None) -> torch.Stream:
    """The default stream of a device."""
    device_type = torch._C._autograd.DeviceType.PrivateUse1.value
    return torch.Stream(
        stream_id=_DEFAULT_STREAM_ID, device_index=checked_index(device), device_type=device_type
    )


def set_stream(stream: torch.Stream | None) -> None:
    """Makes a stream the calling thread's current one, and its device the current device.

    None changes nothing.
    """
    if stream is not None:
        torch.accelerator.set_stream(stream)


@contextlib.contextmanager
def stream(stream: torch.Stream | None):
    """Context manager: another current stream (and device) within, the previous ones after.

    None changes nothing.
    """
    if stream is None:
        yield
        return
    with stream:
        yield


def _sleep(milliseconds: float) -> None:
    """Queues a kernel that occupies the current stream for a time: a delay to queue work behind."""
    _C.sleep(float(milliseconds))
