"""What ran where: this backend's own account of it, beyond what torch asks of a device."""

from .. import _C


def launch_counters() -> dict[str, int]:
    """Number of kernels queued since the process began, by whether the caller waited for them.

    Keys: ``asynchronous`` and ``synchronous``. Plain copies are not kernels and not counted.
    """
    return _C.launch_counters()


def fallback_calls() -> dict[str, int]:
    """How often each operator, by name and overload, waited for its result on the host."""
    return _C.fallback_calls()


def fallback_ops() -> list[str]:
    """Operators that always wait, because the shape of their result depends on data."""
    return _C.fallback_ops()


def generic_ops() -> list[str]:
    """Operators whose CPU kernel runs in the stream's worker, without waiting."""
    return _C.generic_ops()


def metadata_cache_counters() -> dict[str, int]:
    """Hits and misses of the cache of output shapes, and its size in entries."""
    return _C.metadata_cache_counters()
