"""Carry arguments from the CPU to a device, or to another dtype, with their layout intact.

``tensor.to(device)`` keeps the strides of dense tensors only: a slice arrives contiguous, offset
gone, and arguments that shared a storage no longer do. A :class:`Carrier` copies each distinct
storage once, as one dimension, and rebuilds every view on the copy: sizes, strides, offset, the
lazy conjugate and negative bits, and ``requires_grad``.

Only the source, which is on the CPU, is asked for its storage; the device needs a one-dimensional
copy and ``as_strided``. Where it has no ``as_strided`` the values still travel, and ``notes`` says
that the layout did not.
"""

from __future__ import annotations

from typing import Any

import torch

from conformance.harness.errors import describe_exception
from conformance.harness.tree import map_leaves


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
        self.rewrote_device = False
        """Whether an argument said ``device=cpu`` and now says the target."""
        self._by_storage: dict[tuple[int, torch.dtype], torch.Tensor] = {}
        self._by_tensor: dict[int, torch.Tensor] = {}
        self._alive: list[torch.Tensor] = []

    @property
    def moved_tensors(self) -> bool:
        """Whether any argument was a tensor."""
        return bool(self._by_tensor)

    def carry(self, value: Any) -> Any:
        """``value`` with every tensor, device and dtype in it replaced."""
        return map_leaves(value, self._leaf)

    def _leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return self._tensor(leaf)
        if isinstance(leaf, torch.dtype):
            return self.dtypes.get(leaf, leaf)
        if isinstance(leaf, torch.device) and leaf.type == "cpu":
            self.rewrote_device = True
            return self.device
        if isinstance(leaf, str) and leaf == "cpu":
            self.rewrote_device = True
            return str(self.device)
        return leaf

    def _tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        known = self._by_tensor.get(id(tensor))
        if known is not None:
            return known
        self._alive.append(tensor)  # an id stays taken for as long as its tensor lives
        source = tensor.detach() if tensor.requires_grad else tensor
        if source.layout is not torch.strided or source.is_quantized or source.is_nested:
            moved = self._copy(source)
        else:
            moved = self._strided(source)
        if tensor.requires_grad:
            moved.requires_grad_(True)
        self._by_tensor[id(tensor)] = moved
        return moved

    def _copy(self, source: torch.Tensor) -> torch.Tensor:
        moved = source.to(self.device, self.dtypes.get(source.dtype, source.dtype))
        return moved.clone() if moved is source else moved

    def _strided(self, source: torch.Tensor) -> torch.Tensor:
        conj, neg = source.is_conj(), source.is_neg()
        if conj:
            source = source.conj()
        if neg:
            source = torch._neg_view(source)
        moved = self._view_of_copied_storage(source)
        if neg:
            moved = torch._neg_view(moved)
        return moved.conj() if conj else moved

    def _view_of_copied_storage(self, source: torch.Tensor) -> torch.Tensor:
        storage = source.untyped_storage()
        key = (storage._cdata, source.dtype)
        base = self._by_storage.get(key)
        if base is None:
            length = storage.nbytes() // source.element_size()
            if source.numel() == length and source.is_contiguous():
                moved = self._copy(source)
                self._remember(key, moved.detach())
                return moved
            base = self._copy(source.as_strided((length,), (1,), 0))
            self._remember(key, base)
        try:
            return base.as_strided(source.size(), source.stride(), source.storage_offset())
        except RuntimeError as error:  # NotImplementedError is one
            self.notes.append(f"layout not kept on the device: {describe_exception(error)}")
            return self._copy(source)

    def _remember(self, key: tuple[int, torch.dtype], base: torch.Tensor) -> None:
        self._by_storage[key] = base
        self.bases.append(base)
