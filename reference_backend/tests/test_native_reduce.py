"""Reductions, extrema with positions, and softmax on the device."""

import math
import warnings

import pytest
import torch

NAN = math.nan
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]

# Shapes and dimensions that take every way through the loops: long and short rows, reduced inside,
# outside, in the middle, two apart, all.
CASES = [
    ((7,), 0),
    ((1030,), 0),
    ((70000,), 0),
    ((3, 600), 1),
    ((600, 3), 0),
    ((600, 3), 1),
    ((40, 50), 0),
    ((3, 5, 7), 1),
    ((3, 5, 700), (0, 2)),
    ((3, 5, 7, 9), (1, 3)),
    ((20, 4, 30), (0, 1, 2)),
    ((), ()),
]


def layouts(t):
    yield t
    if t.dim() > 1:
        yield t.transpose(0, -1).contiguous().transpose(0, -1)
        yield t.repeat_interleave(2, -1)[..., 1::2]


@pytest.mark.parametrize(("shape", "dim"), CASES)
@pytest.mark.parametrize("keepdim", [False, True])
def test_sums_of_every_shape_and_layout(shape, dim, keepdim):
    t = torch.arange(math.prod(shape), dtype=torch.float64).remainder(13).view(shape)
    dim = dim if isinstance(dim, tuple) else (dim,)
    for dtype in (torch.float32, torch.int32, torch.float16):
        for host in layouts(t.to(dtype)):
            device = (
                host.to("accel").as_strided(host.size(), host.stride())
                if (host.is_contiguous())
                else strided_copy(host)
            )
            expected = host.double().sum(dim, keepdim)
            actual = device.sum(dim, keepdim, dtype=torch.float64)
            assert actual.cpu().equal(expected)
            assert device.amax(dim, keepdim).cpu().equal(host.amax(dim, keepdim))
            assert device.amin(dim, keepdim).cpu().equal(host.amin(dim, keepdim))
            if dtype != torch.int32:
                torch.testing.assert_close(
                    device.mean(dim, keepdim).cpu(), host.double().mean(dim, keepdim).to(dtype)
                )


def strided_copy(host):
    """A device tensor with the host tensor's strides and storage."""
    size = host.untyped_storage().nbytes() // host.element_size()
    flat = host.as_strided((size,), (1,), 0).to("accel")
    return flat.as_strided(host.size(), host.stride(), host.storage_offset())


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_sums_are_int64_and_wrap_around(dtype):
    limits = torch.iinfo(dtype)
    t = torch.tensor([limits.max, limits.max, 3, limits.min], dtype=dtype)
    for function in (torch.sum, torch.prod):
        actual = function(t.to("accel"))
        assert actual.dtype == torch.int64
        assert actual.cpu().equal(function(t))
    assert t.to("accel").sum(dtype=torch.int8).cpu().equal(t.sum(dtype=torch.int8))


def test_half_precision_sums_are_kept_in_higher_precision():
    t = torch.full((4096,), 1.0, dtype=torch.bfloat16, device="accel")
    assert t.sum().item() == 4096
    assert t.view(64, 64).sum(0).tolist() == [64.0] * 64
    assert torch.full((20000,), 10.0, dtype=torch.float16, device="accel").mean().item() == 10


def test_a_float_sum_is_as_exact_as_the_cpus():
    t = torch.rand(1 << 20, generator=torch.Generator().manual_seed(0)) + 1
    exact = t.double().sum().item()
    for view in (t, t.view(1024, 1024)):
        device = view.to("accel")
        total = device.sum().item() if view.dim() == 1 else device.sum(0).double().sum().item()
        host = view.sum().item() if view.dim() == 1 else view.sum(0).double().sum().item()
        assert abs(total - exact) <= max(abs(host - exact), 0.07)


def test_empty_reductions():
    t = torch.empty(0, 3, device="accel")
    assert t.sum(0).tolist() == [0, 0, 0]
    assert t.prod(0).tolist() == [1, 1, 1]
    assert t.mean(0).isnan().all().item()
    assert t.all(0).tolist() == [True] * 3
    assert t.any(0).tolist() == [False] * 3
    assert t.sum(1).shape == (0,)
    for function in (torch.amax, torch.argmax):
        with pytest.raises(IndexError):
            function(t, 0)
    with pytest.raises(RuntimeError, match="numel"):
        t.max()


def test_nan_wins_extrema():
    for position in (0, 5, 300, 999):
        t = torch.arange(1000.0)
        t[position] = NAN
        for view in (t, t.half(), t.view(10, 100), t.view(10, 100).t()):
            d = view.to("accel")
            assert d.max().isnan().item() and d.min().isnan().item()
            assert d.argmax().item() == view.argmax().item()
            for dim in range(view.dim()):
                for name in ("max", "min"):
                    expected = getattr(view, name)(dim)
                    actual = getattr(d, name)(dim)
                    torch.testing.assert_close(actual[0].cpu(), expected[0], equal_nan=True)
                    assert actual[1].cpu().equal(expected[1])


def test_the_first_of_equal_extrema_is_found():
    t = torch.tensor([[1, 5, 5], [5, 1, 5]], dtype=torch.int32, device="accel")
    assert t.argmax().item() == 1
    assert t.argmax(1).tolist() == [1, 0]
    assert t.argmin(0).tolist() == [0, 1, 0]
    assert torch.zeros(2000, device="accel").argmax().item() == 0


@pytest.mark.parametrize(("shape", "dim"), [c for c in CASES if isinstance(c[1], int)])
def test_positions_of_every_shape_and_layout(shape, dim):
    t = torch.arange(math.prod(shape)).mul(7919).remainder(1009).view(shape).float()
    for host in layouts(t):
        device = strided_copy(host)
        for keepdim in (False, True):
            assert device.argmax(dim, keepdim).cpu().equal(host.argmax(dim, keepdim))
            values, indices = device.min(dim, keepdim)
            assert values.cpu().equal(host.amin(dim, keepdim))
            assert host.gather(
                dim, indices.cpu() if keepdim else indices.cpu().unsqueeze(dim)
            ).equal(host.amin(dim, True))


def test_truth():
    t = torch.zeros(40, 50)
    t[3, 7] = NAN
    t[5] = 1
    d = t.to("accel")
    for dim in (0, 1):
        assert d.any(dim).cpu().equal(t.any(dim))
        assert d.all(dim).cpu().equal(t.all(dim))
    assert d.any().item() and not d.all().item()
    octets = torch.tensor([2, 0, 3], dtype=torch.uint8, device="accel")
    assert octets.any().dtype == torch.uint8 and octets.any().item() == 1


def test_strided_and_resized_outputs():
    t = torch.arange(12.0).view(3, 4)
    d = t.to("accel")
    out = torch.full((8,), -1.0, device="accel")
    torch.sum(d, 0, out=out[::2])
    assert out.tolist() == [12, -1, 15, -1, 18, -1, 21, -1]
    with pytest.warns(UserWarning, match="was resized"):
        torch.amax(d, 1, out=out)
    assert out.tolist() == [3, 7, 11]
    values = torch.empty(4, 2, device="accel")[:, 0]
    indices = torch.empty(8, dtype=torch.int64, device="accel")[::2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.max(d, 0, out=(values, indices))
    assert values.tolist() == [8, 9, 10, 11] and indices.tolist() == [2] * 4


def test_reductions_return_while_their_input_is_pending():
    d = torch.ones(100, 100, device="accel")
    torch.accel._sleep(200)
    results = [d.sum(), d.mean(0), d.argmax(1), d.softmax(0), d.max(1).values]
    assert not torch.accel.current_stream().query()
    assert results[0].item() == 10000


# ---- softmax -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("shape", "dim"), [((5,), 0), ((3, 1000), 1), ((1000, 3), 0), ((70, 90), 0), ((2, 9, 5), 1)]
)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_forward_and_backward(name, shape, dim, dtype):
    generator = torch.Generator().manual_seed(1)
    t = torch.randn(shape, generator=generator, dtype=torch.float64).mul(3).to(dtype)
    weight = torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
    for host in layouts(t):
        x = host.double().requires_grad_()
        y = getattr(torch, name)(x, dim)
        (gradient,) = torch.autograd.grad(y, x, weight.double())
        dx = strided_copy(host).requires_grad_()
        dy = getattr(torch, name)(dx, dim)
        (device_gradient,) = torch.autograd.grad(dy, dx, weight.to("accel"))
        low = dtype.itemsize == 2
        tolerance = {"rtol": 2e-2, "atol": 6e-2} if low else {"rtol": 1e-5, "atol": 1e-5}
        torch.testing.assert_close(dy.detach().cpu(), y.detach().to(dtype), **tolerance)
        torch.testing.assert_close(device_gradient.cpu(), gradient.to(dtype), **tolerance)


def test_softmax_of_infinities():
    t = torch.tensor([[0.0, math.inf, 1.0], [-math.inf, 0.0, 0.0], [-math.inf] * 3, [NAN, 0, 1]])
    for x in (t, t.t().contiguous()):
        for dim in (0, 1):
            torch.testing.assert_close(
                x.to("accel").softmax(dim).cpu(), x.softmax(dim), equal_nan=True
            )
            torch.testing.assert_close(
                x.to("accel").log_softmax(dim).cpu(), x.log_softmax(dim), equal_nan=True
            )


def test_softmax_refuses_integers():
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        torch.ones(3, dtype=torch.int64, device="accel").softmax(0)
