"""Cells that fail alike in a row: run again where the device is to blame, left alone where not."""

from __future__ import annotations

from types import SimpleNamespace

from conformance.harness.cells import Cell
from conformance.plugin.isolation.streaks import Held, Streak
from conformance.plugin.planning import PLANNED
from conformance.plugin.recorder import RECORD


def held(op, outcome="pass", signature=None, duration=0.01):
    planned = SimpleNamespace(cell=Cell("opinfo", "correctness", op, "", "float32"))
    record = {"outcome": outcome, "signature": signature, "duration_s": duration}
    return Held(
        SimpleNamespace(stash={PLANNED: planned}, op=op), [SimpleNamespace(**{RECORD: record})]
    )


class Device:
    """Answers the streak's questions."""

    def __init__(self, *, broken, breaker="", silent=""):
        self.broken, self.breaker, self.silent = broken, breaker, silent
        self.asked: list[str] = []
        self.again: list[tuple[str, str]] = []
        self.suspects: list[tuple[str, str]] = []

    def is_broken(self, canary):
        self.asked.append(canary.op)
        return self.broken

    def blame(self, suspect, canary):
        self.suspects.append((suspect.item.op, canary.op))
        if suspect.item.op == self.silent:
            return held(suspect.item.op, "fail", "broke the device").reports
        return suspect.reports

    def run_again(self, held_back, after):
        self.again.append((held_back.item.op, after))
        if held_back.item.op == self.breaker:
            return held_back.reports
        return held(held_back.item.op).reports


def run(device, *cells):
    """Feed cells one by one; gives the ops logged after each."""
    streak = Streak(device.is_broken, device.run_again, device.blame)
    logged = []
    for index, cell in enumerate(cells):
        ready = streak.add(cell, is_last=index == len(cells) - 1)
        logged.append([(h.item.op, h.record("outcome")) for h in ready])
    return logged


def lost(op):
    return held(op, "fail", "device lost")


def test_cells_on_a_broken_device_run_again():
    device = Device(broken=True)
    logged = run(device, held("a"), held("b"), lost("c"), lost("d"), lost("e"), held("f"))
    assert logged == [
        [],
        [("a", "pass")],
        [],
        [],
        [("b", "pass"), ("c", "pass"), ("d", "pass"), ("e", "pass")],
        [("f", "pass")],
    ]
    assert device.asked == ["a"] and device.suspects == [("b", "a")]
    before = "opinfo/correctness/b//float32"
    assert device.again == [("c", before), ("d", before), ("e", before)]


def test_a_working_device_is_asked_once_per_signature():
    device = Device(broken=False)
    cells = [held("a"), *map(lost, "bcdefgh"), held("i")]
    logged = run(device, *cells)
    assert [entry for step in logged for entry in step] == [
        (cell.item.op, cell.record("outcome")) for cell in cells
    ]
    assert logged[3] == [("a", "pass"), ("b", "fail"), ("c", "fail"), ("d", "fail")]
    assert logged[4] == [("e", "fail")]
    assert device.asked == ["a"] and device.again == device.suspects == []


def test_other_outcomes_and_signatures_end_a_streak():
    device = Device(broken=True)
    other = held("c", "fail", "wrong value")
    logged = run(device, held("a"), lost("b"), other, held("d", "unsupported"), lost("e"))
    assert logged[1:] == [
        [],
        [("a", "pass"), ("b", "fail")],
        [("c", "fail"), ("d", "unsupported")],
        [("e", "fail")],
    ]
    assert device.asked == []


def test_two_alike_and_another_that_goes_wrong_are_enough():
    device = Device(broken=True)
    other = held("d", "fail", "wrong value")
    logged = run(device, held("a"), lost("b"), lost("c"), other, held("e"))
    assert logged[3:] == [
        [("a", "pass"), ("b", "pass"), ("c", "pass"), ("d", "pass")],
        [("e", "pass")],
    ]
    device = Device(broken=True)
    crashed = held("d", "crash", "SIGSEGV")
    logged = run(device, held("a"), lost("b"), lost("c"), crashed, held("e"))
    assert logged[3:] == [
        [("a", "pass"), ("b", "pass"), ("c", "pass"), ("d", "crash")],
        [("e", "pass")],
    ]
    device = Device(broken=True)
    logged = run(device, held("a"), lost("b"), lost("c"), held("d"))
    assert logged[3:] == [[("a", "pass"), ("b", "fail"), ("c", "fail"), ("d", "pass")]]


def test_the_cell_that_breaks_the_device_fails_again_and_is_blamed():
    device = Device(broken=True, breaker="b")
    logged = run(device, held("a"), lost("b"), lost("c"), lost("d"))
    assert logged[3] == [("a", "pass"), ("b", "fail"), ("c", "pass"), ("d", "pass")]
    blamed = "opinfo/correctness/b//float32"
    assert device.again == [("b", "opinfo/correctness/a//float32"), ("c", blamed), ("d", blamed)]


def test_cells_that_are_known_to_have_broken_the_device_keep_their_verdicts():
    def judged(op):
        found = lost(op)
        found.ended_process = True
        return found

    device = Device(broken=True)
    logged = run(device, held("a"), judged("b"), judged("c"), judged("d"), held("e"))
    assert [entry for step in logged for entry in step] == [
        ("a", "pass"), ("b", "fail"), ("c", "fail"), ("d", "fail"), ("e", "pass"),
    ]  # fmt: skip
    assert device.asked == device.again == []
    logged = run(device, held("a"), lost("b"), lost("c"), judged("d"), held("e"))
    assert logged[3] == [("a", "pass"), ("b", "pass"), ("c", "pass"), ("d", "fail")]
    logged = run(device, held("a"), lost("b"), judged("c"), lost("d"), held("e"))
    assert logged[2] == [("a", "pass"), ("b", "fail"), ("c", "fail")]


def test_errors_in_a_row_count_as_well():
    device = Device(broken=True)
    bad = [held(op, "error", "closed file") for op in "bcd"]
    logged = run(device, held("a"), *bad, held("e"))
    assert logged[3] == [("a", "pass"), ("b", "pass"), ("c", "pass"), ("d", "pass")]


def test_nothing_stays_held_at_the_end():
    device = Device(broken=False)
    end = [("a", "pass"), ("b", "fail")]
    assert run(device, held("a"), lost("b"))[-1] == end
    assert run(device, held("a"), lost("b"), lost("c"))[-1] == [*end, ("c", "fail")]
    assert device.asked == ["a"]
    assert run(device, held("a"), held("b"))[-1] == [("a", "pass"), ("b", "pass")]


def test_without_a_cell_that_passed_nothing_is_held():
    device = Device(broken=True)
    slow = held("a", duration=5.0)
    logged = run(device, slow, *map(lost, "bcd"))
    assert logged[1:] == [[("a", "pass"), ("b", "fail")], [("c", "fail")], [("d", "fail")]]


def test_a_cell_that_passes_and_breaks_the_device_turns_red():
    device = Device(broken=True, silent="b")
    logged = run(device, held("a"), held("b"), *map(lost, "cde"))
    assert logged[4] == [("b", "fail"), ("c", "pass"), ("d", "pass"), ("e", "pass")]
    device = Device(broken=True, silent="b")
    cells = [held("a"), held("b"), held("x", "unsupported"), *map(lost, "cde")]
    assert run(device, *cells)[1:3] == [[("a", "pass")], [("b", "pass"), ("x", "unsupported")]]
    assert device.suspects == []
