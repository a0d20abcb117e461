"""torch's test machinery comes without the compiler, and leaves nothing behind in its place."""

import subprocess
import sys

_SCRIPT = """
import sys
from conformance.harness.torch_testing import import_device_types
types = import_device_types()
import torch.testing._internal.common_methods_invocations
print("torch._inductor.utils" in sys.modules, "torch._dynamo" in sys.modules)
from torch._inductor.utils import GPU_TYPES
print(types.GPU_TYPES == GPU_TYPES, hasattr(sys.modules["torch._inductor.utils"], "__file__"))
"""


def test_the_compiler_stays_out_until_it_is_wanted():
    run = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.stdout.split() == ["False", "False", "True", "True"], run.stderr
