"""Text that others wrote, made fit to be sent, stored and shown: a dying device prints anything."""

from __future__ import annotations

import json
import re
from typing import Any


def parse_json(data: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError for whatever is none."""
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def as_unicode(text: str) -> str:
    r"""The text with halves of surrogate pairs, which no encoding takes, as escapes: ``\udc80``."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def printable(text: str) -> str:
    """The text with escapes for all that is no printable character, but for line ends and tabs."""
    return _PERHAPS_NOT.sub(_escaped, text)


_PERHAPS_NOT = re.compile(r"[^\n\t -~]")


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def shorten(text: str, width: int) -> str:
    """The text in one line of at most ``width`` characters, unprintable ones escaped."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 3] + "..."
