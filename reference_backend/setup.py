"""Builds torch_accel against the installed torch (pip install --no-build-isolation)."""

import os
import runpy
from pathlib import Path

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

HERE = Path(__file__).resolve().parent
os.chdir(HERE)

# -Werror=suggest-override: a hook that torch renamed must not turn into dead code.
COMPILE_FLAGS = ["-std=c++20", "-O2", "-g1", "-Wall", "-Wextra", "-Wno-unused-parameter"]
COMPILE_FLAGS += ["-Werror=suggest-override", "-Woverloaded-virtual", "-fvisibility=hidden"]
# As PyTorch itself is compiled: sqrt(), floor() and comparisons may then vectorise.
COMPILE_FLAGS += ["-fno-math-errno", "-fno-trapping-math"]
COMPILE_FLAGS += ["-Wno-interference-size"]  # of a torch header that sizes for any machine


def sources():
    """The driver and the torch integration: every .cpp file below the two folders."""
    return sorted(str(p) for d in ("driver/src", "csrc") for p in Path(d).rglob("*.cpp"))


# The list of generic operators, as C++.
runpy.run_path("csrc/aten/generic_ops.py")["write_include"]()

setup(
    ext_modules=[
        CppExtension(
            name="torch_accel._C",
            sources=sources(),
            include_dirs=[str(HERE / "driver" / "include"), str(HERE / "csrc")],
            extra_compile_args=COMPILE_FLAGS,
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
)
