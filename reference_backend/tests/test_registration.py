"""The device's name, the methods made for it, and finding the backend."""

import shutil
import sys
from pathlib import Path

import pytest
import tomllib
import torch
import torch_accel

BACKEND = Path(torch_accel.__file__).resolve().parent
PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def test_device_name():
    assert torch.device("accel").type == "accel"
    assert torch.device("accel:1").index == 1
    assert torch._C._get_privateuse1_backend_name() == "accel"
    assert torch.accelerator.current_accelerator() == torch.device("accel")
    assert torch.get_device_module("accel") is torch.accel


def test_second_rename_raises():
    with pytest.raises(RuntimeError):
        torch.utils.rename_privateuse1_backend("other")


def test_generated_methods():
    cpu = torch.arange(4)
    tensor = cpu.accel()
    assert tensor.is_accel and not cpu.is_accel
    assert tensor.device == torch.device("accel:0")
    assert cpu.accel(1).device == torch.device("accel:1")
    module = torch.nn.Linear(2, 2).accel()
    assert {p.device for p in module.parameters()} == {torch.device("accel:0")}
    assert tensor.untyped_storage().device == torch.device("accel:0")


@pytest.mark.parametrize(
    "names",
    [
        "Event Stream _initialized _is_in_bad_fork _lazy_init _sleep _utils current_device "
        "current_stream default_generators default_stream device device_count empty_cache "
        "get_amp_supported_dtype get_device_name get_device_properties get_rng_state init "
        "initial_seed is_available is_initialized manual_seed manual_seed_all "
        "max_memory_allocated max_memory_reserved memory_allocated memory_reserved memory_stats "
        "reset_peak_memory_stats seed seed_all set_device set_rng_state set_stream stream "
        "synchronize"
    ],
)
def test_module_has_what_torch_looks_up(names):
    missing = [n for n in names.split() if not hasattr(torch.accel, n)]
    assert not missing


def entry_point_path(tmp_path: Path) -> str:
    """A folder of package metadata that declares the entry points of pyproject.toml."""
    points = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"]
    info = tmp_path / "metadata" / "torch_accel_test-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-accel-test\nVersion: 0\n")
    lines = []
    for group, entries in points.items():
        lines.append(f"[{group}]")
        lines += [f"{key} = {value}" for key, value in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return str(info.parent)


ADDS_PATH = "import sys; sys.path.insert(0, {path!r})\n"


@pytest.mark.parametrize(
    "first", ["import torch", "import torch_accel", "import torch, torch_accel"]
)
def test_autoload(run_python, tmp_path, first):
    source = ADDS_PATH.format(path=entry_point_path(tmp_path)) + first
    source += "\nimport torch; print(torch.arange(3).to('accel').cpu().tolist())"
    done = run_python(source)
    assert (done.returncode, done.stdout.strip()) == (0, "[0, 1, 2]"), done.stderr


def test_autoload_switched_off(run_python, tmp_path):
    source = ADDS_PATH.format(path=entry_point_path(tmp_path))
    source += "import torch; print(hasattr(torch, 'accel'))"
    done = run_python(source, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr
    # ... and an explicit import still registers the device.
    source += "; import torch_accel; print(torch.accel.is_available())"
    done = run_python(source, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_failing_import_shows_its_cause(run_python, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(BACKEND, broken / "torch_accel", ignore=shutil.ignore_patterns("_C*"))
    source = ADDS_PATH.format(path=entry_point_path(tmp_path))
    source += ADDS_PATH.format(path=str(broken))
    done = run_python(source + "import torch")
    assert done.returncode != 0
    assert "compiled extension is missing" in done.stderr
    assert "pip install --no-build-isolation" in done.stderr
    assert "Failed to load the backend extension: torch_accel" in done.stderr


def test_unloadable_extension_shows_its_cause(run_python, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(BACKEND, broken / "torch_accel", ignore=shutil.ignore_patterns("_C*"))
    suffix = f".cpython-{sys.version_info.major}{sys.version_info.minor}-x86_64-linux-gnu.so"
    (broken / "torch_accel" / f"_C{suffix}").write_bytes(b"no library")
    done = run_python(ADDS_PATH.format(path=str(broken)) + "import torch_accel")
    assert done.returncode != 0
    assert "compiled extension is missing" not in done.stderr
    assert "_C" in done.stderr and "ImportError" in done.stderr


def test_no_devices(run_python):
    done = run_python(
        """
        import torch, torch_accel
        assert not torch.accel.is_available() and not torch.accelerator.is_available()
        assert torch.accel.device_count() == 0
        torch.manual_seed(0)
        try:
            torch.empty(1, device="accel")
        except RuntimeError as error:
            print(error)
        """,
        env={"TORCH_ACCEL_DEVICES": "0"},
    )
    assert done.returncode == 0, done.stderr
    assert "there are 0 accel devices" in done.stdout
