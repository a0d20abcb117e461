"""What an exception from a device counts as."""

from __future__ import annotations

import pytest

from conformance.harness import errors
from conformance.harness.outcomes import Outcome


@pytest.mark.parametrize(
    "error",
    [
        NotImplementedError("Could not run 'aten::foo' with arguments from the 'x' backend"),
        RuntimeError("\"softmax_kernel\" not implemented for 'Half'"),
        RuntimeError("softmax is not supported on this device"),
        TypeError("Cannot convert: the backend doesn't support float64"),
        RuntimeError("unsupported dtype torch.bfloat16"),
    ],
)
def test_clean_refusals(error):
    assert errors.classify(error, "nn.functional.softmax") is Outcome.UNSUPPORTED


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("device lost"),
        RuntimeError("this is not supported"),
        IndexError("index 7 is out of bounds"),
        AttributeError("'NoneType' object does not support softmax"),
    ],
)
def test_anything_else_is_a_failure(error):
    assert errors.classify(error, "nn.functional.softmax") is Outcome.FAIL


class Wordless(RuntimeError):
    def __str__(self):
        raise KeyError("text")


def test_an_error_without_a_message_is_a_failure_all_the_same():
    assert errors.classify(Wordless(), "add") is Outcome.FAIL
    text = "Wordless: (its message cannot be had: KeyError)"
    assert errors.describe_exception(Wordless()) == errors.signature(Wordless()) == text


def test_signatures_group_what_differs_in_numbers_only():
    first = RuntimeError("shape [2, 3] at 0x7fe1 of acc:0 took 1.5 ms\nmore")
    second = RuntimeError("shape [4] at 0xabc0 of acc:1 took 20 ms")
    assert errors.signature(first) == errors.signature(second)
    assert errors.signature(first) != errors.signature(ValueError(str(second)))
    assert errors.signature(first) != errors.signature(RuntimeError("stride [4] of acc:1"))


def test_dtype_names_survive_normalisation():
    assert errors.normalise("conv2d not implemented for float16") == (
        "conv2d not implemented for float16"
    )


def test_chain_names_every_cause():
    try:
        try:
            raise KeyError("a")
        except KeyError as cause:
            raise RuntimeError("b") from cause
    except RuntimeError as error:
        text = errors.describe_chain(error)
    assert text.splitlines() == ["  RuntimeError: b", "  caused by KeyError: 'a'"]
