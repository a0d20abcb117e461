"""Spare the garbage collector what lives as long as the process.

torch, its operator database and the collected tests are half a million objects that are never
garbage. Walking them again and again takes a second of a process's start and more of its run, and
in a forked process it copies their memory.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


def pause(config: pytest.Config) -> None:
    """Collect no garbage until the tests are collected, then leave out what is there by then."""
    if gc.isenabled():
        gc.disable()
        config.add_cleanup(gc.enable)
        config.pluginmanager.register(_ResumeAfterCollection(), "conformance-garbage")


class _ResumeAfterCollection:
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Iterator[None]:
        result = yield
        gc.freeze()
        gc.enable()
        return result
