"""torch_accel: the PyTorch device ``accel``, an asynchronous PrivateUse1 backend.

Importing it (or ``import torch``, which finds it through the entry point group ``torch.backends``
unless TORCH_DEVICE_BACKEND_AUTOLOAD=0) registers the device and the module ``torch.accel``.
"""


def _autoload() -> None:
    """Entry point of ``torch.backends``, called at the end of ``import torch``.

    Importing this module is what registers the device, so there is nothing left to do. With
    ``import torch_accel`` first, torch calls this while the line ``import torch`` below still runs;
    the rest of the module follows.
    """


import torch  # noqa: E402  (the entry point must exist before torch looks for it)

# Before anything asks for the device by its name. Once per process, as this module is.
torch.utils.rename_privateuse1_backend("accel")

try:
    from . import _C
except ImportError as error:
    from pathlib import Path

    if any(Path(__file__).parent.glob("_C.*")):
        raise  # it was built; the error says what does not fit
    raise ImportError(
        "torch_accel's compiled extension is missing. Build it with "
        "`pip install --no-build-isolation ./reference_backend`, or in place with "
        "`cd reference_backend && python setup.py build_ext --inplace`"
    ) from error

import atexit  # noqa: E402

from . import accel  # noqa: E402

torch._register_device_module("accel", accel)
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)

# What is queued finishes before the interpreter goes; the driver itself shuts down after it.
atexit.register(_C.drain)
