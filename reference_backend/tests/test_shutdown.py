"""The end of the process: no hang, no crash, nothing lost."""

import time

import pytest

IMPORT = "import torch, torch_accel\n"


@pytest.mark.parametrize(
    "source",
    [
        "",
        "x = torch.arange(3).to('accel')",
        "x = torch.arange(3).to('accel'); torch.accel._sleep(300); y = x.clone()",
        "s = [torch.accel.Stream() for _ in range(8)]\n"
        "for i in s:\n with i: torch.accel._sleep(100); torch.empty(9, device='accel').clone()",
        "x = torch.arange(3).pin_memory(); y = x.to('accel', non_blocking=True)",
        "e = torch.Event('accel'); torch.accel._sleep(100); e.record(); "
        "torch.accel.Stream().wait_event(e)",
        "torch.kept = torch.arange(3).to('accel'), torch.Event('accel'), torch.accel.Stream()",
        "import atexit; atexit.register(lambda: print(torch.arange(3).to('accel').cpu().tolist()))",
        "g = torch.Generator('accel'); torch.kept = g, torch.accel.default_generators",
        "t = torch.arange(2.0).to('accel'); torch.accel._sleep(50);"
        "torch.index_select(t, 0, torch.tensor([9]).to('accel'))",
    ],
)
def test_exit_is_clean(run_python, source):
    begin = time.monotonic()
    done = run_python(IMPORT + source, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert time.monotonic() - begin < 50


def test_queued_work_finishes_before_the_interpreter_goes(run_python):
    done = run_python(
        """
        import atexit
        kept = []
        atexit.register(lambda: print(kept[0].tolist()))  # the last handler to run
        import torch, torch_accel
        x = torch.arange(3).to("accel")
        kept.append(torch.full((3,), -1).pin_memory())
        torch.accel._sleep(300)
        kept[0].copy_(x, non_blocking=True)
        """
    )
    assert done.stdout.strip() == "[0, 1, 2]", done.stderr


def test_exit_by_an_exception(run_python):
    done = run_python(IMPORT + "x = torch.arange(3).to('accel'); torch.accel._sleep(200); 1 / 0")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
