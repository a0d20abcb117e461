"""``torch.accel``: the module that torch looks up by the device's name."""

import torch

from . import _C
