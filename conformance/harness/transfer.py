"""Carry arguments from the CPU to a device, or to another dtype, with their layout intact.

``tensor.to(device)`` keeps the strides of dense tensors only: a slice arrives contiguous, offset
gone, and arguments that shared a storage no longer do. A :class:`Carrier` copies each distinct
storage once, as one dimension, and rebuilds every view on the copy: sizes, strides, offset, the
lazy conjugate and negative bits, and ``requires_grad``. What is carried several times is taken
apart once, into a :class:`Parcel`.

Only the source, which is on the CPU, is asked for its storage; the device needs a one-dimensional
copy and ``as_strided``. Where it has no ``as_strided`` the values still travel, and ``notes`` says
that the layout did not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from conformance.harness.errors import describe_exception
from conformance.harness.tree import map_leaves


class _Item(NamedTuple):
    """A distinct tensor among the arguments, detached and without lazy bits."""

    source: torch.Tensor
    storage: int | None
    """Which of the distinct storages it is a view of; None where its layout has none."""
    base: torch.Tensor | None
    """Where it is the first view of the storage: what to copy, itself if it is all of it."""
    conj: bool
    neg: bool
    requires_grad: bool


class _Slot(NamedTuple):
    """The place of a tensor in the arguments."""

    index: int


class Parcel:
    """Arguments taken apart: distinct tensors, their storages, and the places they go to.

    It shares the tensors with the arguments, which must not change while it is in use.
    """

    def __init__(self, value: Any) -> None:
        self.items: list[_Item] = []
        self._by_tensor: dict[int, _Slot] = {}
        self._by_storage: dict[tuple[int, torch.dtype], int] = {}
        self.value = value  # also keeps the tensors alive, whose ids are taken for as long
        self.contents = map_leaves(value, self._leaf)

    def _leaf(self, leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        slot = self._by_tensor.get(id(leaf))
        if slot is None:
            slot = self._by_tensor[id(leaf)] = _Slot(len(self.items))
            self.items.append(self._item(leaf))
        return slot

    def _item(self, tensor: torch.Tensor) -> _Item:
        source = tensor.detach() if tensor.requires_grad else tensor
        if source.layout is not torch.strided or source.is_quantized or source.is_nested:
            return _Item(source, None, None, False, False, tensor.requires_grad)
        conj, neg = source.is_conj(), source.is_neg()
        if conj:
            source = source.conj()
        if neg:
            source = torch._neg_view(source)
        storage = source.untyped_storage()
        key = (storage._cdata, source.dtype)
        index, base = self._by_storage.get(key), None
        if index is None:
            index = self._by_storage[key] = len(self._by_storage)
            length = storage.nbytes() // source.element_size()
            if source.numel() == length and source.is_contiguous():
                base = source
            else:
                base = source.as_strided((length,), (1,), 0)
        return _Item(source, index, base, conj, neg, tensor.requires_grad)


class Carrier:
    """Carries the arguments of one call. Use a fresh one for each call.

    ``device`` is where tensors go. ``dtypes`` maps the dtypes to convert (tensors, and
    ``torch.dtype`` arguments); those it does not name stay.
    """

    def __init__(
        self, device: torch.device, dtypes: dict[torch.dtype, torch.dtype] | None = None
    ) -> None:
        self.device = device
        self.dtypes = dtypes or {}
        self.notes: list[str] = []
        self.bases: list[torch.Tensor] = []
        """A tensor over the whole of each distinct storage on the target, in order of first use:
        reading them after the call shows what it wrote, the gaps between views included."""
        self.moved_tensors = False
        """Whether any argument was a tensor."""
        self.rewrote_device = False
        """Whether an argument said ``device=cpu`` and now says the target."""
        self._stays = device.type == "cpu"

    def carry(self, value: Any) -> Any:
        """``value``, or what the Parcel holds, with every tensor, device and dtype replaced."""
        parcel = value if isinstance(value, Parcel) else Parcel(value)
        moved = [self._tensor(item) for item in parcel.items]
        self.moved_tensors = bool(moved)
        return self._fill(parcel.contents, moved)

    def _fill(self, contents: Any, moved: list[torch.Tensor]) -> Any:
        kind = type(contents)
        if kind is _Slot:
            return moved[contents.index]
        if kind is tuple:
            return tuple([self._fill(item, moved) for item in contents])
        if kind is list:
            return [self._fill(item, moved) for item in contents]
        if kind is dict:
            return {key: self._fill(item, moved) for key, item in contents.items()}
        if isinstance(contents, tuple) and hasattr(contents, "_fields"):
            return kind(*[self._fill(item, moved) for item in contents])
        return self._other_leaf(contents)

    def _other_leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.dtype):
            return self.dtypes.get(leaf, leaf)
        if isinstance(leaf, torch.device) and leaf.type == "cpu":
            self.rewrote_device = True
            return self.device
        if isinstance(leaf, str) and leaf == "cpu":
            self.rewrote_device = True
            return str(self.device)
        return leaf

    def _tensor(self, item: _Item) -> torch.Tensor:
        if item.storage is None:
            moved = self._copy(item.source)
        else:
            moved = self._view(item)
            if item.neg:
                moved = torch._neg_view(moved)
            if item.conj:
                moved = moved.conj()
        return moved.requires_grad_(True) if item.requires_grad else moved

    def _view(self, item: _Item) -> torch.Tensor:
        source = item.source
        if item.base is not None:
            copy = self._copy(item.base)
            if item.base is source:
                self.bases.append(copy.detach())  # an operator may give the copy another shape
                return copy
            self.bases.append(copy)
        try:
            return self.bases[item.storage].as_strided(
                source.size(), source.stride(), source.storage_offset()
            )
        except RuntimeError as error:  # NotImplementedError is one
            self.notes.append(f"layout not kept on the device: {describe_exception(error)}")
            return self._copy(source)

    def _copy(self, source: torch.Tensor) -> torch.Tensor:
        dtype = self.dtypes.get(source.dtype)
        if not self._stays:
            return source.to(self.device, dtype or source.dtype)
        return source.clone() if dtype in (None, source.dtype) else source.to(dtype)
