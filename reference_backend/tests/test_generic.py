"""The generic mechanism: CPU kernels in the stream, for operators without a kernel of their own."""

import time
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

DELAY_MS = 200
# A call that waits for the delay takes DELAY_MS; half of it leaves room for a loaded machine.
QUICK_S = DELAY_MS / 2000


def enqueue_seconds(call) -> float:
    """Time that `call` takes with DELAY_MS of work before it on the stream."""
    call()  # the metadata is cached from here on
    torch.accel.synchronize()
    torch.accel._sleep(DELAY_MS)
    start = time.perf_counter()
    call()
    elapsed = time.perf_counter() - start
    assert not torch.accel.current_stream().query()
    torch.accel.synchronize()
    return elapsed


def test_generic_and_fallback_ops_are_disjoint_and_registered():
    generic, fallback = torch.accel.generic_ops(), torch.accel.fallback_ops()
    assert len(generic) > 400
    assert not set(generic) & set(fallback)
    for name in (*generic, *fallback):
        assert torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1")
        assert "Generic" in torch._C._dispatch_dump(name)


def test_ops_written_by_hand_are_not_generic():
    served = {*torch.accel.generic_ops(), *torch.accel.fallback_ops()}
    for name in ("add.out", "mm.out", "sum.IntList_out", "_softmax.out", "cat.out"):
        assert f"aten::{name}" not in served
    # Their functional forms would hide the hand-written kernel if they were generic.
    assert "aten::add.Tensor" not in served
    assert "aten::mm" not in served


# ---- metadata ------------------------------------------------------------------------------------


def test_metadata_is_cached():
    x = torch.randn(7, 9, device="accel")
    torch.cumsum(x, 0)
    before = torch.accel.metadata_cache_counters()
    torch.cumsum(x, 0)
    after = torch.accel.metadata_cache_counters()
    assert after["misses"] == before["misses"]
    assert after["hits"] == before["hits"] + 1


def test_cache_is_bounded():
    x = torch.randn(2000, device="accel")
    torch.cumsum(x, 0)
    before = torch.accel.metadata_cache_counters()["size"]
    for n in range(1, 1200):
        torch.cumsum(x[:n], 0)
    assert torch.accel.metadata_cache_counters()["size"] - before <= 512
    assert_close(torch.cumsum(x[:3], 0).cpu(), torch.cumsum(x[:3].cpu(), 0))


# Calls that differ in one argument only: the second must not be served by the plan of the first.
CALLS = {
    "float": lambda x: [F.softplus(x, beta=b) for b in (1, 3)],
    "string": lambda x: [F.gelu(x, approximate=a) for a in ("none", "tanh")],
    "int": lambda x: [torch.cumsum(x, d) for d in (0, 1)],
    "int list": lambda x: [torch.roll(x, s, (0, 1)) for s in ((1, 2), (2, 1))],
    "bool": lambda x: [torch.var(x, 1, keepdim=k) for k in (False, True)],
    "dtype": lambda x: [torch.cumsum(x, 0, dtype=d) for d in (torch.float32, torch.float64)],
    "optional": lambda x: [F.layer_norm(x, (6,), w) for w in (None, x[0])],
    "number": lambda x: [torch.lerp(x, 2 * x, w) for w in (0.25, 0.75)],
    "sizes": lambda x: [torch.tril(y) for y in (x, x[1:])],
    "strides": lambda x: [torch.cumsum(y, 0) for y in (x, x.t().contiguous().t())],
    "tensor dtype": lambda x: [torch.igamma(x.abs(), y.abs()) for y in (x, x.double())],
    "list length": lambda x: [torch.block_diag(*y) for y in ([x], [x, x])],
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_cache_key_is_complete(call):
    x = torch.linspace(-2, 2, 36).view(6, 6)
    expected = call(x)
    for result, right in zip(call(x.to("accel")), expected, strict=True):
        assert result.stride() == right.stride()
        assert_close(result.cpu(), right)


def test_cache_key_tells_how_arguments_overlap():
    """The same sizes and strides, at another distance in one storage: an error, as on the CPU."""
    flat = torch.zeros(64, device="accel")
    apart, partly = flat[32:48], flat[8:24]
    torch.heaviside(flat[:16], flat[:16], out=apart)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.heaviside(flat[:16], flat[:16], out=partly)
    torch.heaviside(flat[:16], flat[:16], out=apart)


def test_cache_key_holds_the_default_dtype():
    x = torch.arange(4, device="accel")
    assert torch.erf(x).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        result = torch.erf(x)
    finally:
        torch.set_default_dtype(torch.float32)
    assert result.dtype == torch.float64
    assert torch.erf(x).dtype == torch.float32


def test_queued_kernel_keeps_the_default_dtype_of_its_call():
    x = torch.arange(4, device="accel")
    torch.set_default_dtype(torch.float64)
    try:
        right = torch.special.i1(x.cpu())
        torch.accel._sleep(DELAY_MS)
        result = torch.special.i1(x)
    finally:
        torch.set_default_dtype(torch.float32)
    assert_close(result.cpu(), right, rtol=0, atol=0)


def test_outputs_have_the_cpu_strides():
    x = torch.randn(2, 3, 5, 5).to(memory_format=torch.channels_last)
    for op in (lambda t: F.avg_pool2d(t, 2), lambda t: torch.cummax(t, 0)[0], torch.erfinv):
        assert op(x.to("accel")).stride() == op(x).stride()


# ---- asynchrony ----------------------------------------------------------------------------------

ASYNCHRONOUS = {
    "structured": lambda x: torch.cumsum(x, 0),
    "meta": lambda x: F.layer_norm(x, (8,)),
    "in place": lambda x: x.erfinv_(),
    "out": lambda x: torch.heaviside(x, x, out=torch.empty_like(x)),
    "list": lambda x: torch.cartesian_prod(x[0], x[1]),
    "several outputs": lambda x: torch.sort(x),
    "random": lambda x: torch.poisson(x.abs()),
    "convolution": lambda x: F.conv1d(x[None], x[:, :, None]),
    "dry run": lambda x: F.batch_norm(x, None, None, training=True),
    "linear algebra": lambda x: torch.linalg.qr(x),
}


@pytest.mark.parametrize("call", ASYNCHRONOUS.values(), ids=ASYNCHRONOUS)
def test_call_does_not_wait_for_the_stream(call):
    x = torch.randn(8, 8, device="accel")
    assert enqueue_seconds(lambda: call(x)) < QUICK_S


def test_first_call_with_a_shape_does_not_wait():
    x = torch.randn(5, 13, device="accel")
    torch.special.i0e(x)
    torch.accel.synchronize()
    y = torch.randn(3, 11, device="accel")
    torch.accel._sleep(DELAY_MS)
    start = time.perf_counter()
    result = torch.special.i0e(y)
    assert time.perf_counter() - start < QUICK_S
    assert_close(result.cpu(), torch.special.i0e(y.cpu()))


def test_host_scalars_are_read_at_the_call():
    zeros = torch.zeros(4, device="accel")
    at_zero = torch.tensor(2.0)
    torch.accel._sleep(DELAY_MS)
    result = torch.heaviside(zeros, at_zero)
    at_zero.fill_(100)
    assert_close(result.cpu(), torch.full((4,), 2.0))


# ---- errors --------------------------------------------------------------------------------------


def test_index_out_of_range_is_raised_at_synchronisation():
    x = torch.arange(4.0, device="accel")
    indices = torch.tensor([1, 9], device="accel")
    result = torch.take(x, indices)  # data is not looked at here
    with pytest.raises(RuntimeError, match=r"take.*out of range"):
        result.cpu()
    assert_close(torch.take(x, indices[:1]).cpu(), torch.tensor([1.0]))  # the device is usable


def same_error(call):
    """Asserts that `call` raises on the device, when called, what it raises on the CPU."""
    with pytest.raises(Exception) as expected:
        call("cpu")
    with pytest.raises(type(expected.value)) as raised:
        call("accel")
    torch.accel.synchronize()  # nothing is left pending
    assert str(raised.value).splitlines()[0] == str(expected.value).splitlines()[0]


ARGUMENT_ERRORS = {
    "dimension": lambda d: torch.cumsum(torch.ones(2, device=d), 3),
    "shapes": lambda d: torch.dot(torch.ones(2, device=d), torch.ones(3, device=d)),
    "structured": lambda d: torch.heaviside(torch.ones(2, device=d), torch.ones(3, device=d)),
    "dtype": lambda d: torch.linalg.qr(torch.ones(2, 2, dtype=torch.int64, device=d)),
    "dtype of the kernel": lambda d: torch.erfinv(torch.ones(2, dtype=torch.complex64, device=d)),
    "value": lambda d: torch.multinomial(torch.ones(3, device=d), 4),
    "convolution": lambda d: F.conv1d(
        torch.ones(1, 1, 4, device=d), torch.ones(1, 1, 2, device=d), dilation=0
    ),
    "out dtype": lambda d: torch.heaviside(
        torch.ones(2, device=d),
        torch.ones(2, device=d),
        out=torch.ones(2, dtype=torch.int64, device=d),
    ),
    "overlap": lambda d: torch.heaviside(
        torch.ones(2, device=d), torch.ones(2, device=d), out=torch.ones(1, device=d).expand(2)
    ),
    "in-place shape": lambda d: torch.ones(1, device=d).heaviside_(torch.ones(3, device=d)),
}


@pytest.mark.parametrize("call", ARGUMENT_ERRORS.values(), ids=ARGUMENT_ERRORS)
def test_argument_error_is_raised_at_the_call(call):
    same_error(call)
    same_error(call)  # the same when the failure has been seen before


# ---- devices -------------------------------------------------------------------------------------

MIXED = "Expected all tensors to be on the same device"


def test_cpu_tensor_with_a_device_tensor_is_refused():
    x = torch.ones(3, device="accel")
    with pytest.raises(RuntimeError, match=f"{MIXED}.*cpu.*accel:0"):
        torch.heaviside(x, torch.ones(3))
    with pytest.raises(RuntimeError, match=MIXED):
        torch.heaviside(torch.ones(3), x)
    with pytest.raises(RuntimeError, match=MIXED):
        torch.heaviside(x, x, out=torch.ones(3))
    with pytest.raises(RuntimeError, match=MIXED):
        F.layer_norm(x, (3,), torch.ones(3))


def test_tensor_of_another_index_is_refused():
    with pytest.raises(RuntimeError, match=f"{MIXED}.*accel:1.*accel:0"):
        torch.heaviside(torch.ones(3, device="accel:0"), torch.ones(3, device="accel:1"))


def test_cpu_scalar_tensor_is_welcome():
    zeros = torch.zeros(3, device="accel")
    assert_close(torch.heaviside(zeros, torch.tensor(4.0)).cpu(), torch.full((3,), 4.0))
    with pytest.raises(RuntimeError, match=MIXED):
        torch.tensor(4.0).heaviside_(zeros[0])  # written: must be on the device


def test_cpu_indices_are_welcome():
    x = torch.arange(6.0, device="accel")
    index = torch.tensor([4, 1])
    assert_close(x[index].cpu(), torch.tensor([4.0, 1.0]))
    x[index] = torch.tensor([7.0, 8.0], device="accel")
    assert_close(x.cpu(), torch.tensor([0.0, 8.0, 2.0, 3.0, 7.0, 5.0]))


def test_kernel_runs_on_the_device_of_its_arguments():
    x = torch.linspace(0, 1, 5, device="accel:1")
    assert torch.accel.current_device() == 0
    result = torch.erfinv(x)
    assert result.device == x.device
    assert torch.accel.current_device() == 0
    assert_close(result.cpu(), torch.erfinv(x.cpu()))


# ---- the fallback --------------------------------------------------------------------------------


def test_fallback_is_declared_and_counted():
    assert "aten::nonzero" in torch.accel.fallback_ops()
    x = torch.tensor([0, 3, 0, 4], device="accel")
    before = torch.accel.fallback_calls().get("aten::nonzero", 0)
    result = torch.nonzero(x)
    assert torch.accel.fallback_calls()["aten::nonzero"] == before + 1
    assert result.device == x.device
    assert_close(result.cpu(), torch.tensor([[1], [3]]))


def test_fallback_follows_what_is_queued():
    x = torch.zeros(4, device="accel")
    torch.accel._sleep(DELAY_MS)
    x.fill_(1)
    assert torch.nonzero(x).shape == (4, 1)


def test_fallback_writes_out_and_resizes_it():
    x = torch.tensor([0, 3, 0, 4], device="accel")
    out = torch.empty(0, dtype=torch.int64, device="accel")
    assert torch.nonzero(x, out=out) is out
    assert_close(out.cpu(), torch.tensor([[1], [3]]))


def test_other_ops_are_not_counted():
    before = torch.accel.fallback_calls()
    torch.cumsum(torch.ones(3, device="accel"), 0)
    torch.linalg.qr(torch.ones(2, 2, device="accel"))
    assert torch.accel.fallback_calls() == before


# ---- arguments of every kind ---------------------------------------------------------------------


def test_views_queue_nothing():
    x = torch.randn(4, 2, device="accel")
    before = torch.accel.launch_counters()
    view = torch.view_as_complex(x)
    assert torch.accel.launch_counters() == before
    assert view._base is x
    assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    x.fill_(2)
    assert_close(view.cpu(), torch.full((4,), 2 + 2j))


def test_out_is_resized_with_a_warning():
    x = torch.linspace(0, 1, 6, device="accel")
    out = torch.ones(2, device="accel")
    for _ in range(2):  # with and without cached metadata
        out.resize_(2)
        with pytest.warns(UserWarning, match="output with one or more elements was resized"):
            torch.erfinv(x, out=out)
        assert_close(out.cpu(), torch.erfinv(x.cpu()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.erfinv(x, out=out)
        torch.erfinv(x, out=torch.empty(0, device="accel"))


def test_out_keeps_its_layout_and_surroundings():
    canvas = torch.full((6, 8), 7.0, device="accel")
    out = canvas[1:4, 1:7:2].t()
    x = torch.randn(3, 3, device="accel")
    torch.erfinv(x.tanh(), out=out)
    expected = torch.full((6, 8), 7.0)
    torch.erfinv(x.cpu().tanh(), out=expected[1:4, 1:7:2].t())
    assert_close(canvas.cpu(), expected)


def test_kernels_that_resize_their_out_write_back():
    x, y = torch.randn(4, 5, device="accel"), torch.randn(4, 5, device="accel")
    out = torch.empty((), device="accel")
    torch._C._nn.huber_loss(x, y, 1, 1.0, out=out)
    assert_close(out.cpu(), F.huber_loss(x.cpu(), y.cpu()))


def test_lists_are_written_back():
    def run(device):
        p = [torch.linspace(1, 2, n, device=device) for n in (3, 5)]
        g = [torch.linspace(-1, 1, n, device=device) for n in (3, 5)]
        m = [torch.zeros(n, device=device) for n in (3, 5)]
        v = [torch.zeros(n, device=device) for n in (3, 5)]
        step = [torch.ones((), device=device) for _ in p]
        torch._fused_adam_(
            p,
            g,
            m,
            v,
            [],
            step,
            lr=0.1,
            beta1=0.9,
            beta2=0.99,
            weight_decay=0.01,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )
        return [t.cpu() for t in (*p, *m, *v)]

    for result, right in zip(run("accel"), run("cpu"), strict=True):
        assert_close(result, right, rtol=0, atol=0)


def test_optional_tensors_in_lists():
    x = torch.arange(24.0).view(2, 3, 4)
    index = torch.tensor([2, 0])
    d = x.to("accel")
    assert_close(d[:, index.to("accel")].cpu(), x[:, index])
    d[:, index.to("accel")] = -1.0
    x[:, index] = -1.0
    assert_close(d.cpu(), x)


def test_conjugated_and_negated_arguments():
    x = torch.randn(3, 3, dtype=torch.complex64)
    d = x.to("accel")
    assert_close(torch.linalg.qr(d.mH)[1].cpu(), torch.linalg.qr(x.mH)[1])
    assert_close(torch.cumsum(d.conj().imag, 0).cpu(), torch.cumsum(x.conj().imag, 0))


def test_zero_tensors_without_memory():
    zeros = torch._efficientzerotensor((3,), device="accel")
    assert_close(
        torch.heaviside(zeros, torch.full((3,), 2.0, device="accel")).cpu(), torch.full((3,), 2.0)
    )
    x = torch.tensor([1.0, -2.0], device="accel", requires_grad=True)
    (gradient,) = torch.autograd.grad(torch.sgn(x).sum(), x)
    assert_close(gradient.cpu(), torch.zeros(2))


def test_many_tensors_in_one_call():
    parts = [torch.full((2,), float(i)) for i in range(100)]
    stacked = torch.block_diag(*[p.to("accel") for p in parts])
    assert_close(stacked.cpu(), torch.block_diag(*parts))


def test_random_ops_repeat_with_the_seed_and_do_not_touch_the_cpu_generator():
    rates = torch.full((100,), 4.0, device="accel")
    state = torch.get_rng_state()
    draws = []
    for seed in (1, 1, 2):
        torch.accel.manual_seed(seed)
        draws.append(torch.poisson(rates).cpu())
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert torch.equal(torch.get_rng_state(), state)


def test_random_ops_take_a_generator():
    generator = torch.Generator("accel").manual_seed(3)
    rates = torch.full((50,), 4.0, device="accel")
    first = torch.poisson(rates, generator).cpu()
    assert not torch.equal(first, torch.poisson(rates, generator).cpu())
    generator.manual_seed(3)
    assert torch.equal(first, torch.poisson(rates, generator).cpu())
    with pytest.raises(RuntimeError, match="generator"):
        torch.poisson(rates, torch.Generator())


def test_autograd_through_generic_ops():
    def run(device):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3),
            torch.nn.BatchNorm2d(4),
            torch.nn.ELU(),
            torch.nn.MaxPool2d(2),
            torch.nn.Flatten(),
            torch.nn.LayerNorm(36),
        ).to(device)
        x = torch.linspace(-1, 1, 2 * 3 * 8 * 8).view(2, 3, 8, 8).to(device)
        model(x).pow(3).sum().backward()
        return [p.grad.cpu() for p in model.parameters()]

    for result, right in zip(run("accel"), run("cpu"), strict=True):
        assert_close(result, right)


@pytest.mark.parametrize("cell", [torch.nn.LSTM, torch.nn.GRU])
def test_recurrent_cells(cell):
    def run(device):
        torch.manual_seed(0)
        model = cell(3, 4, num_layers=2, bidirectional=True).to(device)
        x = torch.linspace(-1, 1, 30).view(5, 2, 3).to(device).requires_grad_()
        output, _ = model(x)
        output.sin().sum().backward()
        return [t.detach().cpu() for t in (output, x.grad, *(p.grad for p in model.parameters()))]

    for result, right in zip(run("accel"), run("cpu"), strict=True):
        assert_close(result, right)
