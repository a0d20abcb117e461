"""Device arguments. torch's deserialisation looks for ``_get_device_index`` here."""

import torch

from .. import _C


def _get_device_index(device, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index that ``device`` means: an int, a str, a ``torch.device``, or None.

    None, and a device without an index, mean the current device if ``optional``, else ValueError.
    With ``allow_cpu`` the CPU is -1. Another device type raises ValueError. The index isn't checked
    against the number of devices.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if allow_cpu and device.type == "cpu":
            return -1
        if device.type != "accel":
            raise ValueError(f"expected an accel device, got {device}")
        if device.index is not None:
            return device.index
    elif device is not None:
        raise TypeError(
            f"expected an accel device as an index, a str or a torch.device, got {device!r}"
        )
    if not optional:
        raise ValueError(f"expected an accel device with an index, as accel:0, got {device}")
    return _C.current_device()


def checked_index(device) -> int:
    """As ``_get_device_index``, None allowed; RuntimeError for a device that does not exist."""
    index = _get_device_index(device, optional=True)
    count = _C.device_count()
    if not 0 <= index < count:
        raise RuntimeError(f"invalid accel device index {index}: there are {count} accel devices")
    return index
