"""What an exception says about the backend: a clean refusal or a failure, and a signature of it.

Backends raise all sorts of types with all sorts of texts, so a refusal counts as clean only when
it says that something is not implemented or not supported and a reader learns what: the error is a
NotImplementedError, or its message names the operator or the dtype.
"""

from __future__ import annotations

import re

from conformance.harness.outcomes import Outcome

_REFUSAL = re.compile(
    r"not (?:yet |currently )?(?:implemented|supported)|(?:does|do)(?: not|n't) (?:yet )?support"
    r"|\bunsupported\b|\bunimplemented\b|no (?:kernel|implementation) (?:found )?for",
    re.IGNORECASE,
)

# The names by which messages know each dtype: torch's own, and c10's, which TORCH_CHECK prints.
_DTYPE_NAMES = {
    "bool": ("Bool",),
    "uint8": ("Byte",),
    "int8": ("Char",),
    "int16": ("Short",),
    "int32": ("Int",),
    "int64": ("Long",),
    "float16": ("Half",),
    "bfloat16": ("BFloat16",),
    "float32": ("Float",),
    "float64": ("Double",),
    "complex32": ("ComplexHalf",),
    "complex64": ("ComplexFloat",),
    "complex128": ("ComplexDouble",),
    "uint16": ("UInt16",),
    "uint32": ("UInt32",),
    "uint64": ("UInt64",),
    "float8_e4m3fn": ("Float8_e4m3fn",),
    "float8_e5m2": ("Float8_e5m2",),
}
_ANY_DTYPE = re.compile(
    r"(?<!\w)(?:torch\.)?(?:"
    + "|".join(sorted({n for k, v in _DTYPE_NAMES.items() for n in (k, *v)}, key=len)[::-1])
    + r")(?!\w)"
)


def message_of(error: BaseException) -> str:
    """``str(error)``, or what there is instead where that raises."""
    try:
        return str(error)
    except Exception as second:
        return f"(its message cannot be had: {type(second).__name__})"


def first_line(error: BaseException) -> str:
    """The first line of the error's message that has any text."""
    for line in message_of(error).splitlines():
        if line.strip():
            return line.strip()
    return ""


def describe_exception(error: BaseException, limit: int = 300) -> str:
    """``Type: first line of the message``, cut to ``limit`` characters."""
    text = first_line(error)
    name = type(error).__name__
    return shorten(f"{name}: {text}" if text else name, limit)


def describe_chain(error: BaseException) -> str:
    """The error and its causes, one a line, from the outermost to the first."""
    lines = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        lead = "  " if not lines else "  caused by "
        lines.append(lead + describe_exception(current, 500))
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )
    return "\n".join(lines)


def shorten(text: str, limit: int) -> str:
    """``text`` cut to ``limit`` characters, with a mark where something was cut."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def classify(error: BaseException, op: str) -> Outcome:
    """``UNSUPPORTED`` for a clean refusal of ``op`` (OpInfo's name), else ``FAIL``."""
    if isinstance(error, NotImplementedError):
        return Outcome.UNSUPPORTED
    message = message_of(error)
    if isinstance(error, (RuntimeError, TypeError, ValueError)) and _REFUSAL.search(message):
        names_op = op.rsplit(".", 1)[-1].rstrip("_") in message
        if names_op or "aten::" in message or _ANY_DTYPE.search(message):
            return Outcome.UNSUPPORTED
    return Outcome.FAIL


def normalise(text: str) -> str:
    """``text`` without what differs between two occurrences of one error.

    Addresses, shapes and lists of numbers, device indices and numbers become placeholders.
    """
    text = re.sub(r"0x[0-9a-fA-F]+", "0x?", text)
    text = re.sub(r"[\[(]\s*-?\d+(?:\s*,\s*-?\d+)*\s*,?\s*[\])]", "[?]", text)
    text = re.sub(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])", "?", text)
    text = re.sub(r"(?<=\w):\d+", ":?", text)
    return " ".join(text.split())


def signature(error: BaseException) -> str:
    """A key under which occurrences of the same error group."""
    return shorten(f"{type(error).__name__}: {normalise(first_line(error))}", 200)
