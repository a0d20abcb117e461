"""The rule by which results are right or wrong."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from conformance.harness import compare, measure, tolerance
from conformance.harness.compare import Comparison

CPU = torch.device("cpu")


def judge(actual, expected, golden=None, meta=None, device=CPU, limit=None):
    limit = limit or tolerance.default(torch.float32)
    return compare.compare(
        actual, expected, device=device, tolerance=limit, golden=golden, meta=meta
    )


def kinds(result: Comparison):
    return [problem.kind for problem in result.problems]


def test_equal_values_pass_and_their_error_is_cpus():
    golden = torch.tensor([1.0, 1 / 3], dtype=torch.float64)
    value = golden.float()
    result = judge(value.clone(), value, golden)
    assert not result.problems
    assert result.figures.abs == result.figures.reference == pytest.approx(9.93e-9, rel=1e-2)
    assert 0 < result.figures.ulp <= 0.5


def test_a_rounded_value_passes():
    value = torch.tensor([1.0, 2.0])
    result = judge(value * (1 + 2**-22), value)
    assert not result.problems
    assert result.figures.ulp == 2


def test_a_wrong_value_fails_and_is_told():
    result = judge(torch.tensor([1.0, 2.5]), torch.tensor([1.0, 2.0]))
    assert kinds(result) == ["wrong value"]
    assert "1 of 2 elements" in str(result.problems[0])
    assert "[1]: got 2.5, expected 2.0" in str(result.problems[0])
    assert result.figures.abs == 0.5


def test_no_farther_than_cpu_is_from_the_golden_passes():
    golden = torch.tensor([100.0, 100.0], dtype=torch.float64)
    cpu = torch.tensor([100.02, 100.0])
    assert not judge(torch.tensor([100.0, 99.94]), cpu, golden).problems
    assert kinds(judge(torch.tensor([100.0, 99.8]), cpu, golden)) == ["wrong value"]


def test_a_golden_that_answers_another_question_excuses_nothing():
    golden = torch.tensor([1e30, 1.0], dtype=torch.float64)
    cpu = torch.tensor([5.0, 1.0])
    assert not judge(cpu.clone(), cpu, golden).problems
    assert kinds(judge(torch.tensor([6.0, 1.0]), cpu, golden)) == ["wrong value"]


@pytest.mark.parametrize(
    ("got", "want"),
    [(math.nan, 1.0), (1.0, math.nan), (math.inf, 1e38), (math.inf, -math.inf), (0.0, math.inf)],
)
def test_special_values_must_match(got, want):
    assert kinds(judge(torch.tensor([got]), torch.tensor([want]))) == ["wrong value"]
    assert not judge(torch.tensor([want]), torch.tensor([want])).problems


def test_nan_equals_nan_and_zeros_of_both_signs_are_equal():
    assert not judge(torch.tensor([math.nan, -0.0]), torch.tensor([math.nan, 0.0])).problems


def test_integers_are_exact():
    big = torch.tensor([2**53 + 1])
    assert not judge(big.clone(), big).problems
    assert kinds(judge(big - 1, big)) == ["wrong value"]
    assert kinds(judge(torch.tensor([True]), torch.tensor([False]))) == ["wrong value"]


def test_an_index_that_higher_precision_gives_is_right():
    cpu, golden = torch.tensor([3]), torch.tensor([4])
    assert not judge(torch.tensor([4]), cpu, golden).problems
    assert judge(torch.tensor([5]), cpu, golden).problems


def test_complex_values():
    value = torch.tensor([1 + 2j, 3 - 4j])
    assert not judge(value * (1 + 1e-7), value).problems
    assert kinds(judge(value.conj().resolve_conj(), value)) == ["wrong value"]
    assert not judge(value.conj(), value.conj().resolve_conj()).problems


def test_half_precision_complex_is_compared():
    value = torch.tensor([1 + 2j]).to(torch.complex32)
    assert not judge(value.clone(), value).problems
    assert kinds(judge((value.to(torch.complex64) * 2).to(torch.complex32), value))


def test_metadata_must_match():
    value = torch.zeros(2, 3)
    assert kinds(judge(value.double(), value)) == ["wrong dtype"]
    assert kinds(judge(value.t(), value)) == ["wrong shape"]
    assert kinds(judge(value.to_sparse(), value)) == ["wrong layout"]
    assert kinds(judge(value.clone(), value, device=torch.device("meta"))) == ["wrong device"]
    assert kinds(judge(value, (value,))) == ["wrong structure"]
    assert kinds(judge((value,), (value, value))) == ["wrong structure"]
    assert kinds(judge(3.0, value)) == ["wrong structure"]
    assert kinds(judge(None, value)) == ["wrong structure"]


def test_strides_count_where_cpu_and_meta_agree():
    value, other = torch.rand(2, 3), torch.rand(3, 2).t()
    other.copy_(value)
    assert kinds(judge(other, value, meta=lambda: value.to("meta"))) == ["wrong strides"]
    assert not judge(other, value, meta=lambda: other.to("meta")).problems

    def no_meta():
        raise NotImplementedError

    assert not judge(other, value, meta=no_meta).problems


def test_strides_of_single_elements_mean_nothing():
    value = torch.rand(1, 3)
    other = value.as_strided((1, 3), (17, 1))
    assert not judge(other, value, meta=lambda: value.to("meta")).problems


def test_python_values():
    assert not judge(3, 3).problems
    assert not judge([1.0, None], (1.0 + 1e-9, None)).problems
    assert kinds(judge(3, 4)) == ["wrong value"]
    assert kinds(judge(3.0, 3)) == ["wrong value"]


def test_sparse_results_are_compared_by_value():
    value = torch.eye(3).to_sparse()
    assert not judge(value.clone(), value).problems
    assert kinds(judge(value * 2, value)) == ["wrong value"]


def test_spacing_is_one_unit_in_the_last_place():
    import numpy

    sizes = numpy.array([1.0, 1.5, 2.0, 3e38, 1e-45])
    expected = numpy.spacing(sizes.astype(numpy.float32)).astype(numpy.float64)
    assert measure.spacing(sizes, torch.float32).tolist() == expected.tolist()


def test_figures_ignore_a_golden_that_answers_another_question():
    value = torch.tensor([1.0, -2.0])  # a singular vector, say: its sign is free
    result = judge(value.clone(), value, -value.double())
    assert not result.problems
    assert result.figures.abs == 0
    assert result.figures.reference is None


def test_precision_that_torch_chooses_by_device_is_granted_off_the_cpu_alone():
    op = next(op for op in op_db if op.name == "nn.functional.linear_cross_entropy")
    off, on = (tolerance.for_op(op, torch.bfloat16, kind) for kind in ("privateuseone", "cpu"))
    assert off.atol == 2.0**-4 > on.atol
    assert tolerance.for_op(op, torch.float32, "privateuseone").atol < 1e-3
