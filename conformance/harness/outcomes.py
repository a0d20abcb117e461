"""The outcomes a cell can end in, and how each appears in pytest's own terms."""

from __future__ import annotations

import enum


class Outcome(str, enum.Enum):
    """How a cell ended. Every planned cell ends in exactly one of these."""

    PASS = "pass"
    """Ran, compared, right."""
    FAIL = "fail"
    """Wrong value, metadata, side effect, or wrong kind of error."""
    UNSUPPORTED = "unsupported"
    """Refused cleanly: the error says that the op or dtype is not implemented."""
    CRASH = "crash"
    """The process died of a signal."""
    TIMEOUT = "timeout"
    """No answer in the time allowed."""
    INCONCLUSIVE = "inconclusive"
    """The precondition of the probe could not be established. Never counted as a pass."""
    NOT_APPLICABLE = "not_applicable"
    """OpInfo or a capability says that the cell has no meaning here."""
    ERROR = "error"
    """The harness or a sample generator failed: not the backend's fault."""

    def __str__(self) -> str:
        return self.value

    @property
    def is_red(self) -> bool:
        """Whether pytest reports the cell as failed."""
        return self in _RED

    @property
    def letter(self) -> str:
        """The one character that pytest prints for the cell while the run goes on."""
        return _LETTERS[self]

    @property
    def word(self) -> str:
        """The word that ``pytest -v`` prints for the cell."""
        return self.value.upper().replace("_", " ")


_RED = frozenset({Outcome.FAIL, Outcome.CRASH, Outcome.TIMEOUT, Outcome.ERROR})
_LETTERS = {
    Outcome.PASS: ".",
    Outcome.FAIL: "F",
    Outcome.UNSUPPORTED: "u",
    Outcome.CRASH: "C",
    Outcome.TIMEOUT: "T",
    Outcome.INCONCLUSIVE: "i",
    Outcome.NOT_APPLICABLE: "n",
    Outcome.ERROR: "E",
}
