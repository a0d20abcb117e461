"""Whether the device works at all: a copy there and back, and an addition.

Asked when a process starts, which initialises the device, and again after each cell: a cell may
leave the device in a state in which nothing works, and is then the one to blame.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from conformance.harness.device import Device
from conformance.harness.errors import describe_exception


class DeviceProbe:
    """Asks for what worked when it was made."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._values = torch.arange(4.0)
        self._ask: Callable[[], None] | None = None
        self.problem: str | None = None
        """What did not work at the start, if anything."""
        for question in (self._copy, self._add):
            try:
                question()
            except Exception as error:
                self.problem = self.problem or describe_exception(error)
            else:
                self._ask = question  # the second asks for the first as well

    def ask(self) -> str | None:
        """None if all still works, else what went wrong, in a line."""
        try:
            if self._ask is not None:
                self._ask()
        except Exception as error:
            return describe_exception(error)
        return None

    def _copy(self) -> None:
        self._compare(self._on_device(), self._values, "a copy to the device and back")

    def _add(self) -> None:
        values = self._on_device()
        self._compare(values + values, self._values + self._values, "an addition on the device")

    def _on_device(self) -> torch.Tensor:
        device = self._device.torch_device
        return torch.empty(4, device=device).copy_(self._values)

    def _compare(self, got: torch.Tensor, wanted: torch.Tensor, what: str) -> None:
        back = torch.empty(4).copy_(got)
        self._device.synchronize()
        if not torch.equal(back, wanted):
            raise RuntimeError(f"{what} gave {back.tolist()} in place of {wanted.tolist()}")
