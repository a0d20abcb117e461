"""Operators of the device that move elements: cat, index_select, gather, scatter, embedding."""

import pytest
import torch

DTYPES = [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32, torch.complex128]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat(dtype, dim):
    a = torch.arange(24).view(2, 3, 4).to(dtype)
    parts = [a, a.flip(0), a.transpose(0, 1).contiguous().transpose(0, 1)]
    actual = torch.cat([p.to("accel") for p in parts], dim)
    assert actual.cpu().equal(torch.cat(parts, dim))
    assert actual.stride() == torch.cat(parts, dim).stride()


def test_cat_promotes_and_skips_empty_vectors():
    a, b = torch.arange(3, dtype=torch.int32), torch.tensor([[0.5], [1.5], [2.5]])
    mixed = torch.cat([torch.empty(0), a[:, None].bfloat16(), a[:, None], b], 1)
    device = [t.to("accel") for t in (torch.empty(0), a[:, None].bfloat16(), a[:, None], b)]
    assert torch.cat(device, 1).cpu().equal(mixed)
    out = torch.full((6, 3), -1.0, dtype=torch.float64, device="accel")
    torch.cat(device, 1, out=out[::2])
    assert out[::2].cpu().equal(mixed.double()) and (out[1::2] == -1).all().item()
    with pytest.raises(RuntimeError, match="same device"):
        torch.cat([device[3], b])
    with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
        torch.cat([device[3], device[3][:2]], 1)


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_index_select(dim, index_dtype):
    a = torch.arange(60.0).view(3, 4, 5)
    index = torch.tensor([2, 0, 2, 1], dtype=index_dtype)
    device_index = torch.stack([index, index], 1).to("accel")[:, 0]
    expected = a.index_select(dim, index)
    assert a.to("accel").index_select(dim, device_index).cpu().equal(expected)
    turned = a.transpose(0, 2)
    assert (
        turned.to("accel")
        .index_select(dim, device_index)
        .cpu()
        .equal(turned.index_select(dim, index))
    )
    out = torch.empty(*expected.shape[:-1], 2 * expected.shape[-1], device="accel")[..., ::2]
    torch.index_select(a.to("accel"), dim, device_index, out=out)
    assert out.cpu().equal(expected)


@pytest.mark.parametrize("bad", [-1, 3])
def test_an_index_out_of_range_is_raised_at_the_next_synchronisation(bad):
    a = torch.ones(3, 2, device="accel")
    index = torch.tensor([[0, bad]], device="accel")
    for call in (
        lambda: a.index_select(0, index[0]),
        lambda: a.gather(0, index),
        lambda: a.clone().scatter_(0, index, 1.0),
        lambda: a.clone().scatter_add_(0, index, a),
    ):
        call()
        with pytest.raises(RuntimeError, match=r"out of (range|bounds)"):
            torch.accel.synchronize()
        assert (a + 1).tolist() == [[2.0, 2.0]] * 3


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1])
def test_gather_and_scatter(dtype, dim):
    a = torch.arange(20).view(4, 5).to(dtype)
    index = torch.tensor([[0, 2, 1], [3, 0, 3]]).remainder(a.size(dim))
    d, i = a.to("accel"), index.to("accel")
    assert d.gather(dim, i).cpu().equal(a.gather(dim, index))
    turned = a.t().contiguous()
    assert d.t().scatter(dim, i, d).cpu().equal(turned.scatter(dim, index, a))
    assert d.scatter(dim, i, 1).cpu().equal(a.scatter(dim, index, 1))
    assert d.scatter_add(dim, i, d).cpu().equal(a.scatter_add(dim, index, a))
    inplace = d.clone()
    inplace[:, :].scatter_(dim, i, d)
    assert inplace.cpu().equal(a.scatter(dim, index, a))


def test_embedding_forward_and_backward():
    weight = torch.randn(7, 3)
    index = torch.tensor([[0, 6, 2], [2, 2, 5]])
    for options in ({}, {"padding_idx": 2}, {"scale_grad_by_freq": True}):
        host = weight.clone().requires_grad_()
        device = weight.to("accel").requires_grad_()
        expected = torch.nn.functional.embedding(index, host, **options)
        actual = torch.nn.functional.embedding(index.to("accel"), device, **options)
        assert actual.detach().cpu().equal(expected.detach())
        expected.sum().backward()
        actual.sum().backward()
        torch.testing.assert_close(device.grad.cpu(), host.grad)


def test_they_return_while_their_input_is_pending():
    a = torch.arange(6.0, device="accel").view(3, 2)
    index = torch.tensor([2, 0], device="accel")
    torch.accel._sleep(200)
    b = torch.cat([a, a.index_select(0, index)])
    assert not torch.accel.current_stream().query()
    assert b.tolist() == [[0, 1], [2, 3], [4, 5], [4, 5], [0, 1]]
