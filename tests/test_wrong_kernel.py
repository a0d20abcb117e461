"""A wrong kernel of the bundled backend turns exactly the cells red that use it."""

from __future__ import annotations

import importlib.util

import pytest
from commands import command, outcomes, records, run

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch_accel") is None, reason="the bundled backend is not installed"
)

USING_SUB = {"sub", "rsub", "cov"}
"""Operators that reach aten::sub.Tensor on the device and whose result its operands' order decides.
(corrcoef reaches it too, but multiplies two differences of the same sign.)"""


def test_swapped_operands_of_sub(tmp_path):
    options = ["--device=accel", "--op=sub,cov,corrcoef,add,rsub,__radd__,mul,eq,abs,mm,cat,where"]
    right = run(command("run", *options, "--report-dir=right"), tmp_path)
    assert right.returncode == 0, right.stdout
    planted = ["--backend-module=wrong_sub", "--report-dir=wrong"]
    wrong = run(command("run", *options, *planted), tmp_path)
    assert wrong.returncode == 1, wrong.stdout

    assert set(outcomes(tmp_path / "right").values()) == {"pass"}
    found = outcomes(tmp_path / "wrong")
    assert found.keys() == outcomes(tmp_path / "right").keys()
    red = {cell for cell, outcome in found.items() if outcome == "fail"}
    assert red == {cell for cell in found if cell.partition("/")[0] in USING_SUB}
    assert set(found.values()) == {"pass", "fail"}
    assert all(r["path"] for r in records(tmp_path / "right"))


def test_workers_share_the_device(tmp_path):
    options = ["--device=accel:1", "--op=add,mm,nonzero", "--dtype=float32,int64", "-n2"]
    result = run(command("run", *options, "--report-dir=here"), tmp_path)
    assert result.returncode == 0, result.stdout
    found = records(tmp_path / "here")
    assert {r["device"] for r in found} == {"accel:1"}
    paths = {r["op"]: r["path"] for r in found}
    assert paths["add"] == "native" and paths["nonzero"] == "fallback"
