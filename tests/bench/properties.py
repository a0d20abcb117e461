"""The properties that are timed on both sides, by the suite's area and check.

Each names the class in upstream_style.py that tests the same property of the same operators and
dtypes; its test method is named after the check, so that tests of one operator and dtype have the
same name on both sides.
"""

from __future__ import annotations

PROPERTIES: dict[tuple[str, str], str] = {
    ("opinfo", "correctness"): "Correctness",
}
