"""Small records that the tests of the reports share."""

from __future__ import annotations

from conformance.harness.cells import Cell
from conformance.report import Record


def cell(op: str = "add", dtype: str = "float32", variant: str = "", check="correctness") -> Cell:
    return Cell("opinfo", check, op, variant, dtype)


def record(of: Cell | None = None, outcome: str = "pass", **known: object) -> Record:
    of = of or cell()
    return Record(of.area, of.check, of.op, of.variant, of.dtype, "accel:0", outcome, **known)


def small_run() -> tuple[list[Record], list[Cell]]:
    """Records of every outcome and path, and their plan, in which one cell more stands."""
    records = [
        record(
            cell("add"),
            path="native",
            samples=7,
            max_abs_error=0.0,
            max_rel_error=0.0,
            max_ulp_error=0.0,
            duration_s=0.25,
        ),
        record(
            cell("add", "int64"), path="composite", samples=7, max_abs_error=0.0, duration_s=0.05
        ),
        record(
            cell("sum"),
            path="fallback",
            samples=12,
            max_abs_error=2e-6,
            max_rel_error=float("inf"),
            duration_s=0.1,
        ),
        record(
            cell("sub"),
            "fail",
            path="native",
            samples=3,
            max_abs_error=float("nan"),
            reason="sample 2: values differ\nexpected 1, got 2",
            signature="values differ",
            duration_s=0.1,
        ),
        record(cell("sub", "int64"), "fail", path="native", signature="values differ"),
        record(cell("div", variant="floor_rounding"), "crash", reason="died of SIGSEGV"),
        record(cell("mm"), "timeout", reason="no answer within 60 s"),
        record(
            cell("mm", "bfloat16"), "unsupported", signature='"mm" not implemented for BFloat16'
        ),
        record(cell("linalg.qr"), "error", reason="the sample generator raised `ValueError`"),
        record(cell("randn"), "inconclusive", reason="too few values"),
        record(cell("jiterator_unary"), "not_applicable", reason="only for CUDA"),
    ]
    return records, [r.cell for r in records] + [cell("sum", "bfloat16")]
