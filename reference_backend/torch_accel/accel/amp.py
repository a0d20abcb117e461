"""Autocast: what dtypes it may use."""

import torch


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes that ``torch.autocast("accel", dtype=...)`` accepts."""
    return [torch.float16, torch.bfloat16]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True: every kernel that exists for float32 exists for bfloat16."""
    return True
