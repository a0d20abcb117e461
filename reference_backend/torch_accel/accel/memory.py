"""Memory: statistics of the caching allocator, and its cache. Sizes in bytes.

The functions are torch.accelerator's, which reach the allocator through c10::DeviceAllocator; here
they are for the code that looks for them under the device's name.
"""

import torch

from .. import _C
from ._utils import checked_index


def memory_stats(device=None) -> dict:
    """All statistics of a device's allocator, as torch.accelerator.memory_stats names them."""
    return torch.accelerator.memory_stats(checked_index(device))


def memory_allocated(device=None) -> int:
    """Bytes that tensors occupy now."""
    return torch.accelerator.memory_allocated(checked_index(device))


def max_memory_allocated(device=None) -> int:
    """The most bytes that tensors occupied since the start or the last reset of the peak."""
    return torch.accelerator.max_memory_allocated(checked_index(device))


def memory_reserved(device=None) -> int:
    """Bytes that the allocator holds from the driver now, in use or cached."""
    return torch.accelerator.memory_reserved(checked_index(device))


def max_memory_reserved(device=None) -> int:
    """The most bytes that the allocator held since the start or the last reset of the peak."""
    return torch.accelerator.max_memory_reserved(checked_index(device))


def reset_peak_memory_stats(device=None) -> None:
    """Lets every ``peak`` statistic start again from the current value."""
    torch.accelerator.reset_peak_memory_stats(checked_index(device))


def reset_accumulated_memory_stats(device=None) -> None:
    """Sets the ``allocated`` and ``freed`` totals and the counters to 0."""
    torch.accelerator.reset_accumulated_memory_stats(checked_index(device))


def get_memory_info(device=None) -> tuple[int, int]:
    """Free and total bytes of a device, as the driver sees it."""
    return torch.accelerator.get_memory_info(checked_index(device))


mem_get_info = get_memory_info


def empty_cache() -> None:
    """Gives cached device memory that no tensor uses back to the driver."""
    torch.accelerator.empty_cache()


def empty_host_cache() -> None:
    """Gives cached pinned memory that no tensor uses back to the system."""
    torch.accelerator.empty_host_cache()


def set_per_process_memory_fraction(fraction: float, device=None) -> None:
    """Limits what may be reserved on a device to a fraction (0 to 1) of its memory.

    Beyond it an allocation raises torch.OutOfMemoryError. ValueError for another fraction.
    """
    _C.set_memory_fraction(checked_index(device), float(fraction))
