"""What looks at operators sees the caller's, not what runs in the workers."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def test_profiler_sees_no_kernel_of_a_worker():
    x = torch.arange(64.0).reshape(8, 8).to("accel")
    torch.accel.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        y = x.t().to(torch.float64)  # a strided, casting copy: the CPU's copy_ in the worker
        torch.accel.synchronize()
    copies = [e for e in profile.events() if e.name == "aten::copy_"]
    assert len(copies) == 1
    assert torch.equal(y.cpu(), torch.arange(64.0, dtype=torch.float64).reshape(8, 8).t())


def test_dispatch_mode_sees_no_kernel_of_a_worker():
    seen = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.arange(6.0).reshape(2, 3).to("accel")
    with Recorder():
        x.t().clone(memory_format=torch.contiguous_format)
        torch.accel.synchronize()
    assert seen == ["aten.t.default", "aten.clone.default"]


def test_memory_is_reported_to_the_profiler():
    with torch.profiler.profile(profile_memory=True) as profile:
        torch.empty(1 << 20, dtype=torch.uint8, device="accel")
    names = {e.name for e in profile.events()}
    assert "[memory]" in names or any(e.self_device_memory_usage for e in profile.key_averages())
