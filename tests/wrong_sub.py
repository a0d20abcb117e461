"""A backend module that plants a fault: ``sub`` of the bundled backend swaps its operands."""

from __future__ import annotations

import torch
import torch_accel  # noqa: F401


def _swapped(a, b, *, alpha=1):
    return torch.add(b, a, alpha=-alpha)


_library = torch.library.Library("aten", "IMPL")
_library.impl("sub.Tensor", _swapped, "PrivateUse1")
