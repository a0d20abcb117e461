"""matrix.md: what it shows, that odd text cannot break it, and that it stays small."""

from __future__ import annotations

import fnmatch

import pytest
import torch
from expecttest import assert_expected_inline
from report_samples import cell, record, small_run
from torch.testing._internal.common_methods_invocations import foreach_unary_op_db, op_db

from conformance.harness.cells import Cell
from conformance.harness.outcomes import Outcome
from conformance.report import build_report
from conformance.report.matrix import _SYMBOLS, DTYPES, render_matrix
from conformance.report.opgroups import GROUPS, UNGROUPED, group_of, groups_of
from conformance.report.records import PATHS

NAMES = {op.name for op in op_db}
HOST_LIMIT = 500_000


def test_every_operator_is_in_exactly_one_group():
    assert {op: groups_of(op) for op in NAMES if len(groups_of(op)) != 1} == {}


def test_every_pattern_of_the_groups_is_needed():
    names = NAMES | {op.name for op in foreach_unary_op_db}
    patterns = [pattern for text in GROUPS.values() for pattern in text.split()]
    assert [pattern for pattern in patterns if not fnmatch.filter(names, pattern)] == []


def test_groups_by_example():
    assert group_of("add") == "Pointwise"
    assert group_of("nn.functional.conv2d") == "nn.functional: convolution"
    assert group_of("a_new_operator") == UNGROUPED


def test_dtypes_are_abbreviated_as_torch_does():
    for op in op_db:
        for dtype in op.dtypes:
            assert DTYPES[str(dtype).removeprefix("torch.")] == dtype.abbr
    for name, short in DTYPES.items():
        assert not name or getattr(torch, name).abbr == short


def test_every_outcome_and_path_has_its_own_symbol():
    assert {outcome.value for outcome in Outcome} | {f"pass {path}" for path in PATHS} | {
        "missing"
    } == set(_SYMBOLS)
    assert len({symbol for symbol, _ in _SYMBOLS.values()}) == len(_SYMBOLS)


def test_matrix_of_a_small_run():
    environment = {
        "torch": {"version": "2.13.0"},
        "device": {"name": "accel:0"},
        "backend": [{"module": "torch_accel", "distribution": "torch-accel", "version": "0.1.0"}],
        "python": "3.11.7",
        "options": {"profile": "full", "dtype": None},
    }
    text = render_matrix(build_report(*small_run(), environment))
    for state, (symbol, _) in _SYMBOLS.items():  # expecttest writes ASCII only.
        text = text.replace(symbol, f"({state})")
    assert_expected_inline(
        text,
        """\
# Conformance of accel:0 (torch-accel 0.1.0) on torch 2.13.0

> **1 planned cell has no record, e.g. opinfo/correctness/sum//bfloat16.**

## Summary

12 planned cells, 11 recorded, 29 samples.

|Outcome|Cells|Share|
|:--|--:|--:|
|pass|3|27.3%|
|fail|2|18.2%|
|unsupported|1|9.1%|
|crash|1|9.1%|
|timeout|1|9.1%|
|inconclusive|1|9.1%|
|not applicable|1|9.1%|
|error|1|9.1%|

|Path|Cells|Share|
|:--|--:|--:|
|native|3|60.0%|
|composite|1|20.0%|
|fallback|1|20.0%|

|Largest error in passed cells|Value|Cell|
|:--|--:|--:|
|abs|2e-06|`opinfo/correctness/sum//float32`|
|rel|inf|`opinfo/correctness/sum//float32`|
|ulp|0|`opinfo/correctness/add//float32`|

|Largest error in failed cells|Value|Cell|
|:--|--:|--:|
|abs|nan|`opinfo/correctness/sub//float32`|

|Area and check|pass|fail|unsupported|crash|timeout|inconclusive|not applicable|error|
|:--|--:|--:|--:|--:|--:|--:|--:|--:|
|opinfo/correctness|3|2|1|1|1|1|1|1|

|Dtype|pass|fail|unsupported|crash|timeout|inconclusive|not applicable|error|
|:--|--:|--:|--:|--:|--:|--:|--:|--:|
|float32|2|1||1|1|1|1|1|
|bfloat16|||1||||||
|int64|1|1|||||||

<details><summary>Environment</summary>

|Environment|Value|
|:--|:--|
|torch|version 2.13.0|
|device|name accel:0|
|backend|module torch_accel, distribution torch-accel, version 0.1.0|
|python|3.11.7|
|options|profile full|

</details>

## Operators

- (crash) the process died
- (timeout) no answer in time
- (error) the harness failed
- (missing) planned, did not run
- (fail) wrong
- (inconclusive) could not be judged
- (unsupported) refused cleanly
- (not_applicable) has no meaning here
- (pass fallback) right, by falling back to the CPU
- (pass composite) right, composed by torch of other operators of the device
- (pass native) right, by a kernel of the device

An empty place is not planned: OpInfo does not claim that dtype.
Where several checks cover an operator and dtype, the worst result is shown.
Dtypes are abbreviated as `torch.dtype.abbr` does: f32 is float32, bf16 bfloat16,
c64 complex64, i64 int64, u8 uint8, b8 bool.

### Random sampling

1 operator, 0 of 1 cell pass.

|Operator|f32|
|:--|:-:|
|`randn`|(inconclusive)|

### Pointwise

4 operators, 2 of 6 cells pass.

|Operator|f32|i64|
|:--|:-:|:-:|
|`add`|(pass native)|(pass composite)|
|`div.floor_rounding`|(crash)||
|`jiterator_unary`|(not_applicable)||
|`sub`|(fail)|(fail)|

### Reduction

1 operator, 1 of 2 cells pass.

|Operator|f32|bf16|
|:--|:-:|:-:|
|`sum`|(pass fallback)|(missing)|

### BLAS and LAPACK

1 operator, 0 of 2 cells pass.

|Operator|f32|bf16|
|:--|:-:|:-:|
|`mm`|(timeout)|(unsupported)|

### torch.linalg

1 operator, 0 of 1 cell pass.

|Operator|f32|
|:--|:-:|
|`linalg.qr`|(error)|

## Crash

1 cell, 1 signature.

- **1** `died of SIGSEGV`: `div.floor_rounding` (f32)

## Timeout

1 cell, 1 signature.

- **1** `no answer within 60 s`: `mm` (f32)

## Error

1 cell, 1 signature.

- **1** `` the sample generator raised `ValueError` ``: `linalg.qr` (f32)

## Failures

2 cells, 1 signature.

- **2** `values differ`: `sub` (f32, i64)

## Inconclusive

<details><summary>1 cell, 1 signature</summary>

- **1** `too few values`: `randn` (f32)

</details>

## Unsupported

<details><summary>1 cell, 1 signature</summary>

- **1** `"mm" not implemented for BFloat16`: `mm` (bf16)

</details>

## Not applicable

<details><summary>1 cell, 1 signature</summary>

- **1** `only for CUDA`: `jiterator_unary` (f32)

</details>

## Planned but not run

1 cell: `sum` (bf16)
""",
    )


def test_the_worst_of_several_checks_is_shown():
    cells = [cell(check=check) for check in ("one", "two", "three")]
    records = [
        record(cells[0], path="native"),
        record(cells[1], "unsupported", reason="no"),
        record(cells[2], path="fallback"),
    ]
    text = render_matrix(build_report(records, cells, {}))
    assert "|`add`|🚫|" in text
    assert "`opinfo/two add` (f32)" in text
    text = render_matrix(build_report(records[::2], cells[::2], {}))
    assert "|`add`|○|" in text


def test_cells_without_operator_have_their_place():
    cells = [Cell("streams", "query", "", "", ""), Cell("streams", "order", "event", "", "")]
    text = render_matrix(build_report([record(c, path="native") for c in cells], cells, {}))
    assert "### Others, of area streams" in text
    assert "|Operator|no dtype|" in text
    assert "|`query`|●|" in text
    assert "|`event`|●|" in text


def test_odd_text_stays_inside_its_code_span():
    nasty = "a `b` ``c`` | </details> \x00 \x1b[0m\n\n# heading\n<script>"
    report = build_report([record(outcome="fail", signature=nasty)], [cell()], {"a|b": "c|d"})
    text = render_matrix(report)
    assert "``` a `b` ``c`` | </details> \\x00 \\x1b[0m # heading <script> ```" in text
    assert "\n# heading" not in text
    assert "c\\|d" in text


@pytest.mark.parametrize(
    ("kind", "checks"),
    [("pass", 1), ("missing", 1), ("same failure", 1), ("every failure differs", 3)],
)
def test_a_code_host_shows_the_whole_of_it(kind, checks):
    plan = [
        Cell("opinfo", f"check{i}", op.name, op.variant_test_name, str(dtype)[6:])
        for i in range(checks)
        for op in op_db
        for dtype in op.dtypes
    ]
    records = []
    if kind == "pass":
        records = [record(c, path="native") for c in plan]
    elif kind != "missing":
        text = "{c.id} " * 20 if kind == "every failure differs" else "the same" * 50
        records = [record(c, "fail", signature=text.format(c=c)) for c in plan]
    text = render_matrix(build_report(records, plan, {}))
    assert len(text.encode()) < HOST_LIMIT
    for op in ("add", "nn.functional.relu"):
        assert f"|`{op}`|" in text
