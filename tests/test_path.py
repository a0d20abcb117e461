"""Finding out how the device computed a call."""

from __future__ import annotations

import torch

from conformance.harness.path import AtenCall, DeclaredFallbacks, Path, Trace, path_of, worst


def traced(function, *args):
    trace = Trace()
    with trace.record():
        function(*args)
    return trace.calls


def test_a_kernel_of_its_own_is_native():
    calls = traced(torch.mm, torch.rand(2, 3), torch.rand(3, 2))
    assert [call.name for call in calls] == ["aten::mm"]
    assert path_of(calls, "cpu") is Path.NATIVE


def test_a_composition_is_composite():
    calls = traced(torch.kron, torch.rand(2, 2), torch.rand(2, 2))
    assert path_of(calls, "cpu") is Path.COMPOSITE


def test_the_out_kernel_of_a_structured_operator_is_native():
    kernel = AtenCall("aten::linspace", 4)  # linspace.out, which the CPU has
    assert path_of([AtenCall("aten::linspace", 7)], "cpu") is Path.COMPOSITE
    assert path_of([AtenCall("aten::linspace", 7, [kernel])], "cpu") is Path.NATIVE


def test_a_trace_ends_with_its_block():
    trace = Trace()
    try:
        with trace.record():
            torch.ones(2)
            raise ValueError
    except ValueError:
        pass
    torch.zeros(2)
    assert {call.name for call in trace.calls} == {"aten::ones"}


def test_a_copy_to_the_cpu_is_a_fallback():
    calls = [AtenCall("aten::mm", 2, [AtenCall("aten::_to_cpu", 1), AtenCall("aten::mm", 2)])]
    assert path_of(calls, "cuda") is Path.FALLBACK


def test_the_same_operator_on_cpu_memory_beside_copies_is_a_fallback():
    again = AtenCall("aten::mm", 2, cpu_bytes=64)
    copy = AtenCall("aten::to", 4, [AtenCall("aten::_to_copy", 7, [AtenCall("aten::copy_", 3)])])
    assert path_of([AtenCall("aten::mm", 2, [copy, again])], "cuda") is Path.FALLBACK
    assert path_of([AtenCall("aten::mm", 2, [again, copy])], "cuda") is Path.FALLBACK
    assert path_of([AtenCall("aten::mm", 2, [again])], "cuda") is not Path.FALLBACK
    again.cpu_bytes = 0
    assert path_of([AtenCall("aten::mm", 2, [copy, again])], "cuda") is not Path.FALLBACK


def test_scopes_of_the_profiler_are_looked_through():
    calls = [AtenCall("my_block", 0, [AtenCall("aten::mm", 2)])]
    assert path_of(calls, "cpu") is Path.NATIVE
    assert path_of([], "cpu") is None


def test_the_worst_path_counts():
    assert worst(Path.NATIVE, Path.COMPOSITE) is Path.COMPOSITE
    assert worst(Path.FALLBACK, Path.COMPOSITE) is Path.FALLBACK
    assert worst(None, Path.NATIVE) is Path.NATIVE
    assert worst(None, None) is None


def test_a_backend_may_declare_its_fallbacks():
    counts = {"aten::unique": 2}

    class Module:
        @staticmethod
        def fallback_calls():
            return counts

    declared = DeclaredFallbacks(Module)
    declared.start()
    assert declared.since_start() == {}
    counts["aten::nonzero"] = 1
    assert declared.since_start() == {"aten::nonzero": 1}


def test_a_declaration_that_fails_says_nothing():
    class Module:
        @staticmethod
        def fallback_calls():
            raise RuntimeError

    declared = DeclaredFallbacks(Module)
    declared.start()
    assert declared.since_start() == {}
    assert DeclaredFallbacks(None).since_start() == {}
