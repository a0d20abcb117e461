"""The device under test."""

from __future__ import annotations

import types

from conformance.harness.device import Device


def test_draining_drops_every_pending_error(monkeypatch):
    pending = [RuntimeError("first"), RuntimeError("second")]
    calls = []

    def synchronize():
        calls.append(None)
        if pending:
            raise pending.pop(0)

    module = types.SimpleNamespace(synchronize=synchronize)
    monkeypatch.setattr(Device, "module", property(lambda _: module))
    Device("toy", 0).drain()
    assert not pending
    assert len(calls) == 3  # the last one saw no error
