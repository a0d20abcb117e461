"""Arguments keep layouts and shared storage on their way."""

from __future__ import annotations

import pytest
import torch

from conformance.harness.transfer import Carrier

CPU = torch.device("cpu")


def base():
    return torch.arange(24, dtype=torch.float32).view(4, 6)


LAYOUTS = {
    "contiguous": lambda: base(),
    "transposed": lambda: base().t(),
    "step on rows": lambda: base()[::2],
    "step on columns": lambda: base()[:, ::2],
    "offset": lambda: base()[1:, 2:],
    "offset and step": lambda: base()[1::2, 1::3],
    "expanded": lambda: torch.tensor([[1.0], [2.0]]).expand(2, 5),
    "0-dim view": lambda: base()[2, 3],
    "middle select": lambda: torch.arange(24.0).view(2, 3, 4)[:, 1],
    "channels_last": lambda: torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "empty": lambda: torch.empty(0, 3),
    "overlapping": lambda: torch.arange(5.0).as_strided((3, 3), (1, 1)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_kept(layout):
    source = LAYOUTS[layout]()
    moved = Carrier(CPU).carry(source)
    assert moved.equal(source)
    assert moved.stride() == source.stride()
    assert moved.storage_offset() == source.storage_offset()
    assert moved.untyped_storage().data_ptr() != source.untyped_storage().data_ptr() or (
        source.numel() == 0
    )


def test_conjugate_and_negative_bits_are_kept():
    source = torch.tensor([1 + 2j, 3 - 4j])
    conj, neg = Carrier(CPU).carry([source.conj(), source.conj().imag])
    assert conj.is_conj() and conj.resolve_conj().equal(source.conj().resolve_conj())
    assert neg.is_neg() and neg.equal(source.conj().imag)


def test_storage_is_shared_as_before():
    whole = base()
    moved, part, other = Carrier(CPU).carry([whole, whole[1:3], base()])
    part.fill_(-1)
    assert moved[1:3].eq(-1).all() and moved[0].equal(whole[0])
    assert other.equal(base())
    assert whole.equal(base()), "the source was written to"


def test_one_tensor_stays_one_tensor():
    tensor = base()
    first, second = Carrier(CPU).carry((tensor, tensor))
    assert first is second


def test_bases_show_what_is_between_the_views():
    whole = base()
    carrier = Carrier(CPU)
    view = carrier.carry(whole[:, ::2])
    view.as_strided((24,), (1,), 0).fill_(9)
    assert carrier.bases[0].eq(9).all()


def test_requires_grad_is_kept():
    moved = Carrier(CPU).carry(base().requires_grad_())
    assert moved.requires_grad and moved.is_leaf


def test_higher_precision_converts_tensors_and_dtype_arguments():
    carrier = Carrier(CPU, {torch.float32: torch.float64})
    args = carrier.carry((base().t(), torch.tensor([1]), {"dtype": torch.float32, "dim": 0}))
    assert args[0].dtype is torch.float64 and args[0].stride() == base().t().stride()
    assert args[1].dtype is torch.int64
    assert args[2] == {"dtype": torch.float64, "dim": 0}


def test_device_arguments_are_rewritten():
    carrier = Carrier(torch.device("meta"))
    args = carrier.carry({"device": "cpu", "other": CPU, "text": "sum", "shape": (2, 3)})
    assert args == {
        "device": "meta", "other": torch.device("meta"), "text": "sum", "shape": (2, 3)
    }  # fmt: skip
    assert carrier.rewrote_device


def test_a_device_without_as_strided_gets_the_values(monkeypatch):
    def refuse(*_args):
        raise NotImplementedError("as_strided: not implemented")

    source = base()[:, ::2]
    expected = source.clone()

    class WithoutStrides(torch.Tensor):
        as_strided = refuse

    carrier = Carrier(CPU)
    copy = carrier._copy
    monkeypatch.setattr(carrier, "_copy", lambda t: copy(t).as_subclass(WithoutStrides))
    moved = carrier.carry(source)
    assert torch.equal(moved.as_subclass(torch.Tensor), expected)
    assert "layout not kept" in carrier.notes[0]
