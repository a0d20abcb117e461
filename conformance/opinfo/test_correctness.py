"""Forward correctness: every operator, every dtype, every sample input.

For each sample the arguments are carried to the device with their layouts and shared storages, the
operator is called there and on the CPU, and the two are compared: values by the two-sided rule of
``harness.compare``, structure, shape, dtype, device and strides, and the arguments' storages after
the call, which must hold what they hold on the CPU: unchanged, or changed in place to the same
values. Operators that draw random numbers are judged by their distribution (``harness.random``),
``empty`` and its kin by metadata.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from conformance.harness import compare, device, golden, plan, random, samples, ties, tolerance
from conformance.harness.compare import Comparison, Problem
from conformance.harness.oncall import DeviceCall, OnDevice, stage
from conformance.harness.path import Path
from conformance.harness.testcase import ConformanceTestCase
from conformance.harness.transfer import Carrier
from conformance.harness.tree import map_leaves, tensors
from conformance.harness.verdict import SampleVerdicts


class TestCorrectness(ConformanceTestCase):
    """One test for each (op, dtype) that OpInfo claims for the CPU."""

    @plan.opinfo_cells("opinfo", "correctness")
    def test_correctness(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        """All samples of the op at the dtype."""
        checker = SampleChecker(op, dtype)
        verdicts = SampleVerdicts(self.cell_run, op)
        inputs = samples.sample_inputs(op, dtype)
        for index, sample in enumerate(inputs):
            reference = golden.reference(op, sample, dtype)
            with verdicts.sample(index, sample):
                verdicts.add(checker.check(sample, reference))
        if checker.on_device.declares_fallback(op, inputs):
            verdicts.add_path(Path.FALLBACK)
        verdicts.finish()


class SampleChecker:
    """Judges samples of one op at one dtype on the device under test."""

    def __init__(self, op: OpInfo, dtype: torch.dtype) -> None:
        self.op, self.dtype = op, dtype
        self.on_device = OnDevice(device.current())
        self.tolerance = tolerance.for_op(op, dtype, self.on_device.device.type)
        self.uninitialised = random.is_uninitialised(op.name)
        self.has_ties = ties.choose_among_equals(op.name)
        self.drew = 0

    def check(
        self, sample: SampleInput, reference: golden.Reference
    ) -> tuple[DeviceCall, Comparison]:
        """Run the sample on the device and compare it with the reference.

        Raises StageError where the device raised.
        """
        called = self.on_device.call(self.op, sample)
        by_value = not (reference.drew or self.uninitialised)
        with stage("reading the result"):
            result = compare.compare(
                called.outputs,
                reference.outputs,
                device=self.on_device.torch_device,
                tolerance=self.tolerance,
                golden=reference.golden,
                meta=lambda: self._on_meta(sample),
                values=by_value,
            )
            if result.problems and self._is_tie(sample, called, reference, result):
                result.problems.clear()
        with stage("reading the arguments after the call"):
            result.problems += self._changed_arguments(sample, called, reference)
        if reference.drew and not self.uninitialised and not result.problems:
            self.drew += 1
            if self.drew <= random.JUDGED_SAMPLES:
                result.problems += self._draws(sample)
        return called, result

    def _is_tie(
        self,
        sample: SampleInput,
        called: DeviceCall,
        reference: golden.Reference,
        result: Comparison,
    ) -> bool:
        if not self.has_ties or any(p.kind != "wrong value" for p in result.problems):
            return False
        got = map_leaves(called.outputs, _tensor_to_cpu)
        return ties.equally_right(self.op.name, sample, got, reference.outputs)

    def _on_meta(self, sample: SampleInput) -> Any:
        meta = Carrier(torch.device("meta"))
        return samples.call(self.op, meta.carry(samples.parcel(sample)))

    def _changed_arguments(
        self, sample: SampleInput, called: DeviceCall, reference: golden.Reference
    ) -> list[Problem]:
        """Arguments must hold after the call what they hold on the CPU after it."""
        problems: list[Problem] = []
        for index, (mine, theirs) in enumerate(zip(called.bases, reference.bases, strict=True)):
            got = compare.to_cpu(mine)
            if compare.bit_equal(got, theirs):
                continue
            untouched = Carrier(torch.device("cpu"))
            untouched.carry(samples.parcel(sample))
            where = f"storage {index} of the arguments"
            if compare.bit_equal(untouched.bases[index], theirs):
                problems.append(Problem("argument changed", f"{where} was written to"))
            elif not reference.drew:
                result = Comparison()
                compare.compare_values(result, where, got, theirs, None, self.tolerance)
                problems += result.problems
        return problems

    def _draws(self, sample: SampleInput) -> list[Problem]:
        """Compare the distributions of the two sides, and repeat a seed."""
        seed_device = random.device_seeder(self.on_device.device.module)

        def on_device(seed: int) -> list[torch.Tensor]:
            with random.seeded(seed, seed_device):
                outputs = self.on_device.call(self.op, sample).outputs
                return [compare.to_cpu(tensor) for tensor in tensors(outputs)]

        def on_cpu(seed: int) -> list[torch.Tensor]:
            with random.seeded(seed):
                args = Carrier(torch.device("cpu")).carry(samples.parcel(sample))
                return list(tensors(samples.call(self.op, args)))

        with stage("drawing repeatedly"):
            found = random.judge_draws(on_device, on_cpu, seedable=seed_device is not None)
        return [Problem("wrong distribution", text) for text in found]


def _tensor_to_cpu(leaf: Any) -> Any:
    return compare.to_cpu(leaf) if isinstance(leaf, torch.Tensor) else leaf


plan.instantiate(TestCorrectness, globals())
