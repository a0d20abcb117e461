"""Import torch's test machinery without torch's compiler, which it names for one constant.

``common_device_type`` takes the list ``GPU_TYPES`` from ``torch._inductor.utils``, and that imports
Inductor, Dynamo and sympy: half of what the machinery costs in time and memory. The list is
therefore read from that module's source, and stands in for the module during the import. What
needs the compiler imports it as usual: some Python kernels for Meta tensors do, when first called.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

_DEVICE_TYPES = "torch.testing._internal.common_device_type"
_COMPILER = "torch._inductor.utils"
_CONSTANT = "GPU_TYPES"


def import_device_types() -> ModuleType:
    """``torch.testing._internal.common_device_type``.

    Where torch's source is not as expected it is imported with all that it asks for.
    """
    value = None if {_DEVICE_TYPES, _COMPILER} & sys.modules.keys() else _gpu_types()
    if value is None:
        return importlib.import_module(_DEVICE_TYPES)
    sys.modules[_COMPILER] = stand_in = ModuleType(_COMPILER)
    setattr(stand_in, _CONSTANT, value)
    try:
        return importlib.import_module(_DEVICE_TYPES)
    except ImportError:  # it asks for more than the constant
        sys.modules.pop(_COMPILER, None)
        return importlib.import_module(_DEVICE_TYPES)
    finally:
        if sys.modules.get(_COMPILER) is stand_in:
            del sys.modules[_COMPILER]


def _gpu_types() -> list[str] | None:
    """The constant, from the source of the module that defines it."""
    import torch

    source = Path(torch.__file__).with_name("_inductor") / "utils.py"
    try:
        found = re.search(rf"^{_CONSTANT} = (\[[^\]]*\])", source.read_text("utf-8"), re.MULTILINE)
        return None if found is None else ast.literal_eval(found[1])
    except (OSError, ValueError, SyntaxError):
        return None
