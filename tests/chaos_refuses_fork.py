"""A backend module that does not work in a forked child, in the way that CHAOS_REFUSAL names.

``initialised``: the bundled backend, whose device is used at import: it raises in a forked child.
``hangs`` and ``dies``: its first call in another process than the importing one does so.
"""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any

import torch
import torch_accel  # noqa: F401

_importer = os.getpid()
_library = torch.library.Library("aten", "IMPL")


def _refuse() -> None:
    if os.environ["CHAOS_REFUSAL"] == "dies":
        ctypes.string_at(8)
    time.sleep(3600)


def _interpose(overload: str) -> None:
    own = torch.library.get_kernel(f"aten::{overload}", "PrivateUse1")

    def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        if os.getpid() != _importer:
            _refuse()
        return own.call_boxed(keyset, *args, **kwargs)

    _library.impl(overload, kernel, "PrivateUse1", with_keyset=True)


if os.environ["CHAOS_REFUSAL"] == "initialised":
    torch.ones(1, device="accel")
else:
    for _overload in ("_copy_from", "empty.memory_format", "empty_strided"):
        _interpose(_overload)
