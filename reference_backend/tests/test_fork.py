"""Forks: fine before the device is used, one clear error after."""

CHILD = """
import os, sys, torch, torch_accel
{before}
pid = os.fork()
if pid == 0:
    try:
        print("bad", torch.accel._is_in_bad_fork(), torch.accel.is_available(), flush=True)
        {child}
    except RuntimeError as error:
        print(type(error).__name__, error, flush=True)
        os._exit(7)
    os._exit(0)
print("status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
{after}
"""

USES = "print(torch.arange(3).to('accel').clone().cpu().tolist(), flush=True)"
COUNTS = "torch.accel.device_count(); torch.manual_seed(1); torch.accel.get_rng_state()"


def test_before_first_use(run_python):
    done = run_python(CHILD.format(before=COUNTS, child=USES, after=USES), timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["bad False True", "[0, 1, 2]", "status 0", "[0, 1, 2]"]


def test_after_use_the_child_is_refused(run_python):
    done = run_python(CHILD.format(before=USES, child=USES, after=USES), timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["[0, 1, 2]", "bad True True"]
    assert lines[2].startswith("RuntimeError Cannot use the accel device in a forked subprocess")
    assert "spawn" in lines[2]
    assert lines[-2:] == ["status 7", "[0, 1, 2]"]


INHERITED = """
import os, torch, torch_accel
x = torch.arange(3).to("accel")
pinned = torch.arange(3).pin_memory()
stream = torch.accel.current_stream()
for use in (
    "x.cpu()",
    "x.clone()",
    "x[0].item()",
    "pinned.to('accel', non_blocking=True)",
    "torch.empty(1, device='accel')",
    "torch.accel.synchronize()",
    "torch.accelerator.synchronize()",
    "stream.synchronize()",
    "stream.query()",
    "stream.record_event()",
    "torch.accel._sleep(1)",
    "torch.accel.init()",
):
    pid = os.fork()
    if pid == 0:
        try:
            exec(use)
        except RuntimeError as error:
            os._exit(7 if "forked subprocess" in str(error) else 8)
        os._exit(9)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), use)
"""


def test_what_is_inherited_is_refused(run_python):
    done = run_python(INHERITED)
    lines = done.stdout.splitlines()
    assert len(lines) == 12, done.stderr
    assert [line for line in lines if not line.startswith("7 ")] == []


def test_what_is_inherited_can_be_dropped(run_python):
    done = run_python(
        CHILD.format(
            before="x = torch.arange(3).to('accel'); p = torch.arange(3).pin_memory()",
            child="del x, p; import gc; gc.collect(); torch.manual_seed(0); sys.exit(0)",
            after="print(x.cpu().tolist())",
        )
    )
    assert "status 0" in done.stdout and "[0, 1, 2]" in done.stdout, done.stdout + done.stderr


def test_fork_with_work_queued(run_python):
    done = run_python(
        CHILD.format(
            before="x = torch.arange(3).to('accel'); torch.accel._sleep(300); y = x.clone()",
            child="os._exit(0)",
            after="print(y.cpu().tolist())",
        )
    )
    assert "status 0" in done.stdout and "[0, 1, 2]" in done.stdout, done.stdout + done.stderr


def test_spawned_processes_work(run_python, tmp_path):
    script = tmp_path / "spawned.py"
    script.write_text(
        "import torch, torch_accel\n"
        "import torch.multiprocessing as mp\n"
        "def work(queue):\n"
        "    import torch_accel\n"
        "    queue.put(torch.arange(3).to('accel').cpu().tolist())\n"
        "if __name__ == '__main__':\n"
        "    torch.arange(2).to('accel')\n"
        "    context = mp.get_context('spawn')\n"
        "    queue = context.SimpleQueue()\n"
        "    process = context.Process(target=work, args=(queue,))\n"
        "    process.start(); print(queue.get()); process.join()\n"
        "    raise SystemExit(process.exitcode)\n"
    )
    done = run_python(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    assert done.stdout.strip() == "[0, 1, 2]" or done.returncode == 0, done.stderr
