"""torch_accel: the PyTorch device ``accel``, an asynchronous PrivateUse1 backend.

Importing it (or ``import torch``, which finds it through the entry point group ``torch.backends``
unless ``TORCH_DEVICE_BACKEND_AUTOLOAD=0``) registers the device and ``torch.accel``.
"""


def _autoload():
    """Entry point of ``torch.backends``.

    torch calls it at the end of ``import torch``. Importing this module is what registers the
    device, so nothing is left to do. Where ``import torch_accel`` came first and itself imported
    torch, this module is still half-executed when torch calls; it goes on right after.
    """


import torch

# First of all: whatever asks for the device's name from here on must find it.
torch.utils.rename_privateuse1_backend("accel")

try:
    from . import _C
except ImportError as error:
    from pathlib import Path

    if any(Path(__file__).parent.glob("_C.*")):
        raise  # it was built, and the error says what it lacks (another torch, a symbol)
    raise ImportError(
        "torch_accel's compiled extension is missing: build it with "
        "`pip install --no-build-isolation ./reference_backend` (in place: "
        "`cd reference_backend && python setup.py build_ext --inplace`)"
    ) from error

from . import accel

torch._register_device_module("accel", accel)
torch.utils.generate_methods_for_privateuse1_backend()
