"""Pointwise operators written out for the device: promotion, broadcasting, layouts, edge values."""

import itertools
import math
import operator
import warnings

import pytest
import torch

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INF, NAN = math.inf, math.nan


def both(function, *arguments, **keywords):
    """The function's result on the CPU and on the device (as a CPU tensor)."""

    def move(value):
        return value.to("accel") if isinstance(value, torch.Tensor) else value

    expected = function(*arguments, **keywords)
    actual = function(*map(move, arguments), **{k: move(v) for k, v in keywords.items()})
    assert actual.device == torch.device("accel", 0)
    return expected, actual.cpu()


def assert_same(function, *arguments, exact=True, **keywords):
    expected, actual = both(function, *arguments, **keywords)
    assert actual.dtype == expected.dtype
    tolerance = {"rtol": 0, "atol": 0} if exact else {}
    torch.testing.assert_close(actual, expected, equal_nan=True, **tolerance)


def values(dtype):
    """Small and extreme values of a dtype."""
    if dtype.is_floating_point:
        return torch.tensor([-INF, -3.5, -1.0, -0.0, 0.0, 0.5, 2.0, INF, NAN], dtype=dtype)
    if dtype == torch.bool:
        return torch.tensor([False, True])
    if dtype.is_complex:
        return torch.tensor([0j, 1 + 2j, -3 - 0.5j, complex(INF, 1)], dtype=dtype)
    limits = torch.iinfo(dtype)
    negatives = [limits.min, limits.min + 1, -7, -1] if limits.min < 0 else []
    return torch.tensor([*negatives, 0, 1, 2, 7, limits.max - 1, limits.max], dtype=dtype)


@pytest.mark.parametrize(
    ("left", "right"),
    list(
        itertools.product(
            [torch.bool, torch.uint8, torch.int32, *FLOATS, torch.complex64],
            repeat=2,
        )
    ),
)
def test_promotion(left, right):
    a, b = values(left)[:, None], values(right)[None, :]
    if not (left == torch.bool == right):
        assert_same(torch.maximum if not (left.is_complex or right.is_complex) else torch.eq, a, b)
    assert_same(torch.mul, a, b, exact=not (left.is_complex or right.is_complex))
    assert_same(torch.ne, a, b)
    assert_same(torch.logical_or, a, b)
    assert_same(torch.where, a != 0, a, b)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.float16, torch.float32])
@pytest.mark.parametrize("scalar", [2, 2.5, True])
def test_scalar_operands_take_part_in_promotion_as_torch_has_it(dtype, scalar):
    a = values(dtype)
    assert_same(operator.add, a, scalar)
    assert_same(operator.mul, a, scalar)
    assert_same(operator.gt, a, scalar)
    assert_same(operator.mul, a, torch.tensor(scalar, dtype=torch.float64))


def test_a_host_scalar_is_read_when_the_call_is_made():
    a = torch.ones(4, device="accel")
    scalar = torch.tensor(3.0)
    torch.accel._sleep(20)
    result = a + scalar
    scalar.fill_(100.0)
    assert result.tolist() == [4.0] * 4


def test_comparison_rounds_a_scalar_to_the_common_dtype():
    a = torch.tensor([0.1, 0.2], dtype=torch.float16)
    assert_same(torch.eq, a, 0.1)
    assert both(torch.eq, a, 0.1)[1].tolist() == [True, False]


LAYOUTS = {
    "contiguous": lambda t: t[:4, :6].contiguous(),
    "transposed": lambda t: t[:6, :4].transpose(0, 1),
    "expanded row": lambda t: t[:1, :6].expand(4, 6),
    "expanded column": lambda t: t[:4, 3:4].expand(4, 6),
    "row": lambda t: t[2, 2:],
    "sliced": lambda t: t[::2, 1:7],
    "offset": lambda t: t.flatten()[5:29].view(4, 6),
    "scalar": lambda t: t[2, 3],
}


@pytest.mark.parametrize(("left", "right"), list(itertools.product(LAYOUTS, repeat=2)))
def test_layouts(left, right):
    base = torch.arange(64.0).view(8, 8)
    device_base = base.to("accel")
    x, y = LAYOUTS[left](base), LAYOUTS[right](base * 0.5 + 1)
    dx, dy = LAYOUTS[left](device_base), LAYOUTS[right](device_base * 0.5 + 1)
    result = dx - dy
    assert result.cpu().equal(x - y)
    assert result.stride() == (x - y).stride()
    assert (dx.to(torch.int32) + dy).cpu().equal(x.to(torch.int32) + y)
    assert torch.where(dx > dy, dx, dy).cpu().equal(torch.maximum(x, y))


@pytest.mark.parametrize("inner", [1, 3, 511, 512, 513, 1030])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_every_element_of_long_and_short_rows(inner, dtype):
    a = torch.arange(5 * 2 * inner, dtype=torch.float32).view(5, 2 * inner).remainder(97).to(dtype)
    b = a[:, ::2]
    expected = b * 2 + 1
    d = a.to("accel")[:, ::2]
    assert (d * 2 + 1).cpu().equal(expected)
    out = torch.zeros(5, 3 * inner, dtype=torch.float32, device="accel")
    torch.mul(d, 2, out=out[:, ::3])
    host = out.cpu()
    assert host[:, ::3].equal((b * 2).float())
    assert not host[:, 1::3].any() and not host[:, 2::3].any()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic_wraps_around(dtype):
    a, b = values(dtype)[:, None], values(dtype)[None, :]
    for function in (torch.add, torch.sub, torch.mul, torch.bitwise_xor, torch.maximum):
        assert_same(function, a, b)
    assert_same(torch.add, a, b, alpha=3)
    assert_same(torch.neg, a)
    assert_same(torch.abs, a)
    assert_same(torch.sign, a)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division(dtype):
    a = values(dtype)[:, None]
    b = values(dtype)[None, :]
    b = b[(b != 0) & (b != -1)][None, :] if dtype.is_signed else b[b != 0][None, :]
    for mode in ("trunc", "floor"):
        assert_same(torch.div, a, b, rounding_mode=mode)
    assert_same(torch.remainder, a, b)
    assert_same(torch.fmod, a, b)
    assert_same(torch.floor_divide, a, b)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
def test_lowest_integer_divided_by_minus_one(dtype):
    lowest = torch.iinfo(dtype).min
    a = torch.tensor([lowest, lowest + 1, 5], dtype=dtype, device="accel")
    minus_one = torch.tensor([-1], dtype=dtype, device="accel")
    assert torch.div(a, minus_one, rounding_mode="trunc").tolist() == [lowest, -lowest - 1, -5]
    assert (a // minus_one).tolist() == [lowest, -lowest - 1, -5]
    assert torch.remainder(a, minus_one).tolist() == [0, 0, 0]
    assert torch.fmod(a, minus_one).tolist() == [0, 0, 0]


@pytest.mark.parametrize("function", [torch.floor_divide, torch.remainder, torch.fmod])
def test_integer_division_by_zero_is_raised_at_the_next_synchronisation(function):
    a = torch.ones(3, dtype=torch.int32, device="accel")
    result = function(a, torch.zeros_like(a))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        result.cpu()
    assert (a + 1).tolist() == [2, 2, 2]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_out_of_range(dtype):
    width = torch.iinfo(dtype).bits
    counts = [0, 1, width - 1, width, width + 1, 100]
    counts += [-1] if dtype.is_signed else []
    b = torch.tensor(counts, dtype=dtype)[None, :]
    a = values(dtype)[:, None]
    assert_same(torch.bitwise_left_shift, a, b)
    assert_same(torch.bitwise_right_shift, a, b)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_integer_power(dtype):
    a = values(dtype)[:, None]
    exponents = [0, 1, 2, 3, 5] + ([-1, -2, -3] if dtype.is_signed else [])
    assert_same(torch.pow, a, torch.tensor(exponents, dtype=dtype)[None, :])
    assert_same(torch.pow, a, 3)
    with pytest.raises(RuntimeError, match="negative integer powers"):
        torch.pow(a.to("accel"), -1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(dtype):
    a, b = values(dtype)[:, None], values(dtype)[None, :]
    exact = [torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum]
    exact += [torch.fmax, torch.fmin, torch.fmod, torch.eq, torch.lt, torch.ge, torch.copysign]
    exact += [torch.remainder, torch.floor_divide]
    for function in exact:
        assert_same(function, a, b)
    for function in (torch.pow, torch.atan2):
        assert_same(function, a, b, exact=False)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "name",
    [
        "neg",
        "abs",
        "sign",
        "signbit",
        "isnan",
        "isposinf",
        "isneginf",
        "floor",
        "ceil",
        "round",
        "trunc",
        "frac",
        "sqrt",
        "rsqrt",
        "reciprocal",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "sigmoid",
        "erf",
        "erfc",
        "relu",
        "angle",
        "logical_not",
    ],
)
def test_unary_special_values(name, dtype):
    a = torch.cat([values(dtype), torch.tensor([1.5, 2.5, -2.5, 1e-4, 0.999], dtype=dtype)])
    assert_same(getattr(torch, name), a, exact=False)
    # Long enough for vectorised loops, with a remainder.
    assert_same(getattr(torch, name), a.repeat(7)[:-1], exact=False)


def test_nan_passes_through_clamping():
    a = torch.tensor([NAN, -5.0, 0.5, 5.0])
    assert_same(torch.clamp, a, -1, 1)
    assert_same(torch.clamp, a, min=0)
    assert_same(torch.clamp, a, torch.tensor([0.0, 0.0, NAN, 0.0]), torch.tensor(1.0))
    assert_same(torch.clamp, torch.tensor([1, 2, 3]), 1.5, 2)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_gelu_forward_and_backward(approximate, dtype):
    a = torch.linspace(-8, 8, 101).to(dtype)

    def forward_and_backward(x):
        x = x.detach().requires_grad_()
        y = torch.nn.functional.gelu(x, approximate=approximate)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        return torch.stack([y.detach(), gradient])

    expected = forward_and_backward(a.double())
    actual = forward_and_backward(a.to("accel")).cpu()
    torch.testing.assert_close(
        actual,
        expected.to(dtype),
        rtol=2e-2 if dtype.itemsize == 2 else 1e-5,
        atol=1e-3 if dtype.itemsize == 2 else 1e-6,
    )


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex(dtype):
    a = torch.tensor([1 + 2j, -0.5 - 3j, 2j, -4 + 0j], dtype=dtype)
    for name in [
        "neg",
        "abs",
        "sgn",
        "exp",
        "log",
        "sqrt",
        "sin",
        "tanh",
        "reciprocal",
        "sigmoid",
        "conj_physical",
        "angle",
    ]:
        assert_same(getattr(torch, name), a, exact=False)
    assert_same(torch.mul, a.conj(), a, exact=False)
    assert_same(torch.div, a, a.flip(0), exact=False)
    assert_same(torch.add, a, a, alpha=2 - 1j, exact=False)


# ---- outputs -------------------------------------------------------------------------------------


def test_out_is_resized_with_a_warning():
    a = torch.ones(3, 4, device="accel")
    out = torch.empty(2, device="accel")
    with pytest.warns(UserWarning, match="output with one or more elements was resized"):
        torch.add(a, 1, out=out)
    assert out.cpu().equal(torch.full((3, 4), 2.0))
    empty = torch.empty(0, device="accel")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.add(a, 1, out=empty)
    assert empty.shape == (3, 4)


def test_out_of_another_dtype_and_layout():
    a = torch.arange(6, device="accel").view(2, 3)
    out = torch.full((3, 2), -1.0, dtype=torch.float64, device="accel")
    torch.add(a, 1, out=out.t())
    assert out.tolist() == [[1, 4], [2, 5], [3, 6]]
    flags = torch.zeros(2, 3, dtype=torch.float32, device="accel")
    torch.gt(a, 2, out=flags)
    assert flags.tolist() == [[0, 0, 0], [1, 1, 1]]
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        torch.mul(a, 0.5, out=torch.empty(2, 3, dtype=torch.int64, device="accel"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.float16])
def test_inplace_writes_its_view_only(dtype):
    base = torch.arange(1, 41, dtype=dtype).view(5, 8)
    device = base.to("accel")
    for t in (base, device):
        t[1:4, 2:7:2].mul_(2).add_(1)
        t[:, 0].neg_()
        t[0, 1:3].fill_(0)
    assert device.cpu().equal(base)


def test_overlapping_writes_are_refused():
    a = torch.zeros(8, device="accel")
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        a[:1].expand(4).add_(1)
    with pytest.raises(RuntimeError, match="some elements of the input tensor"):
        a[1:].add_(a[:-1])


def test_inplace_must_keep_dtype_and_shape():
    a = torch.ones(3, dtype=torch.int32, device="accel")
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        a.mul_(0.5)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        a.add_(torch.ones(2, 3, dtype=torch.int32, device="accel"))


def test_operands_on_two_devices_are_refused():
    a = torch.ones(3, device="accel:0")
    with pytest.raises(RuntimeError, match="on the same device"):
        a + torch.ones(3, device="accel:1")
    with pytest.raises(RuntimeError, match="on the same device"):
        a + torch.ones(3)


def test_unsupported_dtypes_are_named():
    flags = torch.ones(3, dtype=torch.bool, device="accel")
    with pytest.raises(RuntimeError, match="bool"):
        flags - flags
    z = torch.ones(3, dtype=torch.complex64, device="accel")
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
        torch.atan2(z, z)
    with pytest.raises(NotImplementedError, match="not implemented for 'Float'"):
        torch.bitwise_and(z.real, z.real)


def test_operators_return_while_their_input_is_pending():
    a = torch.ones(1000, device="accel")
    stream = torch.accel.current_stream()
    torch.accel._sleep(200)
    b = ((a + 1) * 2).sqrt_().sum()
    assert not stream.query()
    assert b.item() == 2000.0


def test_the_result_lives_on_its_operands_device():
    a = torch.ones(3, device="accel:1")
    assert torch.accel.current_device() == 0
    assert (a + 1).device == torch.device("accel:1")
    assert (a + 1).tolist() == [2.0] * 3


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4)])
def test_empty(shape):
    a = torch.ones(shape, device="accel")
    assert (a + 1).shape == shape
    assert torch.exp(a, out=torch.empty(shape, device="accel")).shape == shape


def test_fill():
    for dtype in [torch.bool, *INTEGERS, *FLOATS, torch.complex64, torch.complex128]:
        t = torch.empty(3, 5, dtype=dtype, device="accel").fill_(1)
        assert t.cpu().equal(torch.ones(3, 5, dtype=dtype))
        t[:, 1::2].zero_()
        assert t.cpu().equal(torch.tensor([1, 0, 1, 0, 1], dtype=dtype).expand(3, 5))
    value = torch.tensor(7.0, device="accel")
    assert torch.empty(2, device="accel").fill_(value).tolist() == [7.0, 7.0]
