"""Progress lines: what they say and how often."""

from __future__ import annotations

from conformance.report import Progress
from conformance.report.progress import format_seconds


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_a_line_at_most_every_interval():
    clock = Clock()
    progress = Progress(total=100, interval=10, clock=clock)
    lines = []
    for i in range(50):
        clock.now += 1
        lines.append(progress.add("fail" if i == 3 else "pass"))
    due = [i for i, line in enumerate(lines) if line]
    assert due == [9, 19, 29, 39, 49]
    assert lines[9] == "10/100 cells (10%): 9 pass, 1 fail; 1.0/s, 1 min 30 s left"


def test_nothing_done_and_nothing_planned():
    clock = Clock()
    assert Progress(total=5, clock=clock).line() == "0/5 cells (0%); 0.0/s"
    assert Progress(total=0, clock=clock).line() == "0/0 cells (100%); 0.0/s"


def test_seconds_as_people_write_them():
    assert [format_seconds(s) for s in (-1, 0.4, 59.4, 59.6, 185, 7620)] == [
        "0 s",
        "0 s",
        "59 s",
        "1 min 00 s",
        "3 min 05 s",
        "2 h 07 min",
    ]
