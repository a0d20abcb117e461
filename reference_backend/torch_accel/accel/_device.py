"""Devices: how many, which is current, what they are; initialisation and forks."""

from typing import NamedTuple

from .. import _C
from ._utils import _get_device_index, checked_index


class DeviceProperties(NamedTuple):
    """What the driver says of a device; ``total_memory`` in bytes."""

    name: str
    total_memory: int
    multi_processor_count: int
    major: int
    minor: int


def is_available() -> bool:
    """True if there is a device. Starts nothing: safe before a fork."""
    return _C.device_count() > 0


def device_count() -> int:
    """Number of devices (TORCH_ACCEL_DEVICES, read once). Starts nothing: safe before a fork."""
    return _C.device_count()


def is_initialized() -> bool:
    """True once a device was used in this process, and not inherited through a fork."""
    return _C.is_initialized() and not _C.is_in_bad_fork()


def init() -> None:
    """Initialises the runtime, as the first use would. Raises RuntimeError in a bad fork."""
    _C.init()


def _lazy_init() -> None:
    # Called by torch before it makes the first tensor on the device.
    _C.init()


def _is_in_bad_fork() -> bool:
    """True in a process forked after its parent had used the device: it can't use the device."""
    return _C.is_in_bad_fork()


def current_device() -> int:
    """Index of the calling thread's current device."""
    return _C.current_device()


def set_device(device) -> None:
    """Makes a device the calling thread's current one; an index below 0 changes nothing."""
    index = _get_device_index(device, optional=True)
    if index >= 0:
        _C.set_device(index)


class device:
    """Context manager: another current device within, the previous one after, exceptions or not.

    None and an index below 0 change nothing.
    """

    def __init__(self, device):
        self.idx = -1 if device is None else _get_device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = _C.exchange_device(self.idx)

    def __exit__(self, *exc_info):
        _C.exchange_device(self.prev_idx)
        return False


class device_of(device):
    """As ``device``, with that of a tensor or storage; one that isn't on accel changes nothing."""

    def __init__(self, obj):
        super().__init__(obj.device if obj.device.type == "accel" else None)


def get_device_properties(device=None) -> DeviceProperties:
    """Name, memory in bytes, number of processors and version of a device."""
    return DeviceProperties(**_C.device_properties(checked_index(device)))


def get_device_name(device=None) -> str:
    """Name of a device."""
    return get_device_properties(device).name


def get_device_capability(device=None) -> tuple[int, int]:
    """Version of a device's hardware: (major, minor)."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def synchronize(device=None) -> None:
    """Waits for all work queued on a device; raises torch.AcceleratorError if a kernel failed."""
    index = checked_index(device)
    if is_initialized() or _C.is_in_bad_fork():
        _C.synchronize(index)
