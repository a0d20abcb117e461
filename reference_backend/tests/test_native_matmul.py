"""Matrix products on the device: shapes around the blocks' edges, strides, scaling, overlap."""

import math

import pytest
import torch

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64]
DTYPES += [torch.complex128, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


def matrix(rows, columns, dtype, seed=0):
    """Small integers, so that every dtype holds products and sums exactly."""
    generator = torch.Generator().manual_seed(seed + 31 * rows + columns)
    low = 0 if dtype == torch.uint8 else -2
    t = torch.randint(low, 3, (rows, columns), generator=generator)
    if dtype.is_complex:
        return torch.complex(t.double(), t.flip(0).double()).to(dtype)
    return t.to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(1, 1, 1), (5, 7, 3), (6, 16, 32), (7, 17, 33), (1, 50, 40), (40, 50, 1), (97, 130, 65)],
)
def test_products_are_exact(dtype, m, k, n):
    a, b = matrix(m, k, dtype), matrix(k, n, dtype, 1)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    expected = (a.to(wide) @ b.to(wide)).to(torch.int64 if not dtype.is_complex else wide)
    actual = torch.mm(a.to("accel"), b.to("accel"))
    assert actual.dtype == dtype
    assert actual.cpu().equal(expected.to(dtype))


def test_more_than_one_block_of_every_dimension():
    a, b = matrix(200, 600, torch.float32), matrix(600, 1100, torch.float32, 1)
    assert torch.mm(a.to("accel"), b.to("accel")).cpu().equal(a @ b)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("transpose_out", [False, True])
def test_strides(transpose_a, transpose_b, transpose_out):
    a, b = matrix(20, 30, torch.float32), matrix(30, 40, torch.float32, 1)
    da = a.t().contiguous().to("accel").t() if transpose_a else a.to("accel")
    db = b.t().contiguous().to("accel").t() if transpose_b else b.to("accel")
    base = torch.full((90, 90), 7.0, device="accel")
    view = base[3:83:2, 1:61:3] if transpose_out else base[3:43:2, 1:81:2]
    out = view.t() if transpose_out else view
    strides = out.stride()
    torch.mm(da, db, out=out)
    assert out.stride() == strides
    assert out.cpu().equal(a @ b)
    assert int((base != 7.0).sum()) == int((out != 7.0).sum())
    assert torch.mm(da[::2, 5:], db[5:, ::3]).cpu().equal(a[::2, 5:] @ b[5:, ::3])
    ones = torch.ones(1, 1, device="accel").expand(6, 20)
    assert torch.mm(ones, da).cpu().equal(torch.ones(6, 20) @ a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scaling(dtype):
    a, b, c = matrix(6, 8, dtype), matrix(8, 5, dtype, 1), matrix(6, 5, dtype, 2)
    da, db, dc = (t.to("accel") for t in (a, b, c))
    assert (
        torch.addmm(dc, da, db, beta=2, alpha=3).cpu().equal(torch.addmm(c, a, b, beta=2, alpha=3))
    )
    assert torch.addmm(dc[0], da, db).cpu().equal(torch.addmm(c[0], a, b))
    assert (
        torch.addmv(dc[:, 0], da, db[:, 0], alpha=2)
        .cpu()
        .equal(torch.addmv(c[:, 0], a, b[:, 0], alpha=2))
    )
    assert (
        torch.baddbmm(dc[None], da.expand(3, 6, 8), db.expand(3, 8, 5), beta=2)
        .cpu()
        .equal(torch.baddbmm(c[None], a.expand(3, 6, 8), b.expand(3, 8, 5), beta=2))
    )
    inplace = dc.clone()
    assert inplace.addmm_(da, db, alpha=2).cpu().equal(torch.addmm(c, a, b, alpha=2))
    assert torch.dot(da[0], db[:, 0]).cpu().equal(torch.dot(a[0], b[:, 0]))
    assert torch.vdot(da[0], db[:, 0]).cpu().equal(torch.vdot(a[0], b[:, 0]))


def test_beta_zero_ignores_what_is_there():
    nan = torch.full((2, 2), math.nan, device="accel")
    ones = torch.ones(2, 2, device="accel")
    assert torch.addmm(nan, ones, ones, beta=0).tolist() == [[2, 2], [2, 2]]
    assert torch.addmv(nan[0], ones, ones[0], beta=0).tolist() == [2, 2]
    assert torch.baddbmm(nan[None], ones[None], ones[None], beta=0).tolist() == [[[2, 2], [2, 2]]]


def test_empty_dimensions():
    a = torch.ones(2, 0, device="accel")
    assert torch.mm(a, a.t()).tolist() == [[0, 0], [0, 0]]
    assert torch.addmm(torch.ones(2, device="accel"), a, a.t(), beta=3).tolist() == [[3, 3], [3, 3]]
    assert torch.mm(a.t(), a).shape == (0, 0)
    assert torch.bmm(a.expand(3, 2, 0), a.t().expand(3, 0, 2)).abs().sum().item() == 0
    assert torch.dot(a[0], a[0]).item() == 0


def test_batches_of_any_layout():
    a = torch.randint(-3, 4, (4, 6, 5)).float()
    b = torch.randint(-3, 4, (5, 4, 7)).float().transpose(0, 1)
    assert torch.bmm(a.to("accel"), b.to("accel")).cpu().equal(torch.bmm(a, b))
    out = torch.empty(6, 4, 7, device="accel").transpose(0, 1)
    torch.bmm(a.to("accel"), b.contiguous().to("accel"), out=out)
    assert out.cpu().equal(torch.bmm(a, b))


def test_half_precision_sums_are_kept_in_float():
    a = torch.ones(4, 4096, dtype=torch.bfloat16, device="accel")
    assert torch.mm(a, a.t()).tolist() == [[4096.0] * 4] * 4
    assert torch.dot(a[0], a[0]).item() == 4096


def test_the_output_may_be_a_factor():
    a = torch.arange(9.0).view(3, 3)
    d = a.to("accel")
    torch.mm(d, d, out=d)
    assert d.cpu().equal(a @ a)


def test_nan_and_infinity_spread():
    a = torch.tensor([[1.0, math.inf], [math.nan, 0.0]])
    b = torch.tensor([[0.0, 1.0], [0.0, 2.0]])
    torch.testing.assert_close((a.to("accel") @ b.to("accel")).cpu(), a @ b, equal_nan=True)


def test_errors():
    a = torch.ones(2, 3, device="accel")
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch.mm(a, a)
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.mm(a, a.t().double())
    with pytest.raises(RuntimeError, match="same device"):
        torch.mm(a, torch.ones(3, 2))
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        torch.mm(a.bool(), a.t().bool())
    with pytest.raises(RuntimeError, match="1D tensors expected"):
        torch.dot(a, a)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.mm(a, a.t(), out=torch.zeros(1, device="accel").expand(2, 2))


def test_gradients():
    a, b = torch.randn(3, 4, dtype=torch.float64), torch.randn(4, 2, dtype=torch.float64)
    x, y = (t.to("accel").requires_grad_() for t in (a, b))
    assert torch.autograd.gradcheck(lambda x, y: (x @ y).sum(0), (x, y))


def test_products_return_while_their_input_is_pending():
    a = torch.ones(64, 64, device="accel")
    torch.accel._sleep(200)
    result = torch.addmm(a, a, a) @ a[0]
    assert not torch.accel.current_stream().query()
    assert result.tolist() == [65.0 * 64] * 64
