"""From the verdicts on samples to the outcome of a cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from conformance.harness import device, errors, path
from conformance.harness.compare import Comparison
from conformance.harness.oncall import DeviceCall, StageError
from conformance.harness.outcomes import Outcome
from conformance.harness.run import CellRun, progress
from conformance.harness.samples import describe


class SampleVerdicts:
    """Collects what became of each sample and concludes the cell.

    Any wrong sample makes the cell ``fail``; else any refused one makes it ``unsupported``. No
    sample at all is an ``error``: a cell that judged nothing must not look like a pass.
    """

    def __init__(self, run: CellRun, op: OpInfo) -> None:
        self._run, self._op = run, op
        self._path: path.Path | None = None
        self._counts: Counter[Outcome] = Counter()
        self._first: dict[Outcome, tuple[str, str]] = {}
        self._notes: dict[str, None] = {}
        self._where: tuple[int, SampleInput] | None = None

    @contextmanager
    def sample(self, index: int, sample: SampleInput) -> Iterator[None]:
        """Judge one sample inside; what the device raises there is a verdict on it."""
        self._run.samples += 1
        self._where = index, sample
        progress(f"sample {index}", lambda: describe(sample))
        try:
            yield
        except StageError as error:
            device.current().drain()
            outcome = errors.classify(error.error, self._op.name)
            self._count(
                outcome,
                f"{error.stage} raised {errors.describe_exception(error.error)}",
                errors.signature(error.error),
            )

    def add(self, judged: tuple[DeviceCall, Comparison]) -> None:
        """Add the verdict on the sample that is being judged."""
        called, comparison = judged
        self.add_path(called.path)
        self._run.figures.merge(comparison.figures)
        self._notes.update(dict.fromkeys(called.notes))
        if comparison.problems:
            text = "; ".join(map(str, comparison.problems))
            self._count(Outcome.FAIL, text, comparison.problems[0].kind)
        else:
            self._counts[Outcome.PASS] += 1

    def add_path(self, taken: path.Path | None) -> None:
        """Add the path that some call took, where it is known."""
        self._path = path.worst(self._path, taken)

    def _count(self, outcome: Outcome, text: str, signature: str) -> None:
        self._counts[outcome] += 1
        if outcome not in self._first:
            index, sample = self._where
            self._first[outcome] = f"sample {index} {describe(sample)}: {text}", signature

    def finish(self) -> None:
        """Conclude the cell and end its test."""
        run, total = self._run, self._counts.total()
        run.path = str(self._path) if self._path else None
        if not total:
            run.conclude(Outcome.ERROR, "OpInfo gave no sample inputs", "no samples")
        else:
            self._conclude(total)
        run.finish()

    def _conclude(self, total: int) -> None:
        for outcome, verb in ((Outcome.FAIL, "failed"), (Outcome.UNSUPPORTED, "were refused")):
            if outcome in self._first:
                text, signature = self._first[outcome]
                reason = f"{self._counts[outcome]} of {total} samples {verb}; first: {text}"
                self._run.conclude(outcome, reason, signature)
                return
        self._run.conclude(Outcome.PASS, "; ".join(self._notes) or None)
