"""``run.json``: of which build and with which options the records in a report directory are.

Two lots of records belong into one report only where these are the same. A build is told by what is
in its files, not by the version that it claims: one is rebuilt many times between two versions.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.report.environment import (
    commit,
    distributions,
    registering_modules,
    version,
)
from conformance.report.text import parse_json
from conformance.report.write import replace_files

NAME = "run.json"
_NOT_COMPARED = ("build.harness.commit", "build.harness.modified")
_CODE = (".py", ".pyi", *importlib.machinery.EXTENSION_SUFFIXES, ".so", ".dylib", ".dll", ".pyd")
_SHOWN = 4


class IdentityError(Exception):
    """A run.json that cannot be read; the message says which and why."""


def identify(
    device_type: str, modules: Sequence[str], options: Mapping[str, Any]
) -> dict[str, Any]:
    """What ``run.json`` holds, JSON values only. The device is not touched.

    ``modules`` are those imported to register the backend; those that torch autoloads are found
    here. ``options`` are all that decide which cells run, and how.
    """
    import torch

    build: dict[str, Any] = {
        "torch": {
            "version": torch.__version__,
            "git": torch.version.git_version,
            "cuda": torch.version.cuda,
            "hip": torch.version.hip,
        },
        "python": ".".join(platform.python_version_tuple()[:2]),
        "harness": {
            "version": version("torch-conformance"),
            "sha256": fingerprint("conformance"),
            **commit(),
        },
        "backend": {
            module: {"sha256": fingerprint(module), "distributions": _distributions(module)}
            for module in registering_modules(device_type, modules)
        },
    }
    return {"build": build, "options": {"device": device_type, **options}}


def _distributions(module: str) -> dict[str, str | None]:
    return {name: version(name) for name in distributions(module)}


def fingerprint(module: str) -> str | None:
    """SHA-256 over the code of the package that a module is in: Python files, shared libraries.

    None where there is no such package. Nothing is imported. Names count as well as contents, but
    not where the package is installed.
    """
    top = module.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    total = hashlib.sha256()
    found = False
    for name, path in _files(spec):
        found = True
        total.update(name.encode("utf-8", "surrogateescape") + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest() if found else None


def _files(spec: importlib.machinery.ModuleSpec) -> Iterator[tuple[str, Path]]:
    folders = spec.submodule_search_locations
    if folders is None:
        if spec.origin is not None and Path(spec.origin).is_file():
            yield Path(spec.origin).name, Path(spec.origin)
        return
    for folder in map(Path, folders):
        found = (path for path in folder.rglob("*") if _is_code(path))
        yield from sorted((path.relative_to(folder).as_posix(), path) for path in found)


def _is_code(path: Path) -> bool:
    # libdriver.so.2 is a shared library too
    return (path.suffix in _CODE or ".so." in path.name) and path.is_file()


def write_identity(report_dir: str | os.PathLike[str], identity: Mapping[str, Any]) -> None:
    """Write run.json, whole or not at all. Raises ReportDirError."""
    replace_files(report_dir, {NAME: render_identity(identity)})


def render_identity(identity: Mapping[str, Any]) -> bytes:
    """The bytes of run.json."""
    return (json.dumps(identity, indent=1) + "\n").encode("ascii")


def read_identity(report_dir: str | os.PathLike[str]) -> dict[str, Any]:
    """What the run.json of a report directory holds. Raises :class:`IdentityError`."""
    path = Path(report_dir, NAME)
    try:
        values = parse_json(path.read_bytes())
    except OSError as error:
        raise IdentityError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise IdentityError(f"{path} is not a whole JSON file ({error})") from error
    if not _is_identity(values):
        raise IdentityError(f"{path} does not say which build and options it is of")
    return values


def _is_identity(values: Any) -> bool:
    if not isinstance(values, dict):
        return False
    build, options = values.get("build"), values.get("options")
    if not (isinstance(build, dict) and isinstance(options, dict)):
        return False
    return {"torch", "python", "harness"} <= set(build) and "device" in options


def differences(
    one: Mapping[str, Any],
    other: Mapping[str, Any],
    names: tuple[str, str],
    ignore: Sequence[str] = (),
) -> list[str]:
    """What differs between two runs, a phrase each; empty where records of both may be joined.

    ``names`` says what the two are called, ``ignore`` names dotted keys that do not count.
    """
    left, right = _flat(one), _flat(other)
    phrases = []
    for key in sorted(set(left) | set(right)):
        if left.get(key) != right.get(key) and key not in (*_NOT_COMPARED, *ignore):
            label = key.partition(".")[2].replace(".sha256", " contents (sha256)")
            phrases.append(
                f"{label}: {_shown(left.get(key), key)} {names[0]}, "
                f"{_shown(right.get(key), key)} {names[1]}"
            )
    return phrases


def describe_differences(phrases: Sequence[str]) -> str:
    """The first differences in one text, and how many more there are."""
    text = "; ".join(phrases[:_SHOWN])
    more = len(phrases) - _SHOWN
    return f"{text}; and {more} more" if more > 0 else text


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _shown(value: Any, key: str) -> str:
    if value is None:
        return "none"
    if key.endswith(("sha256", "git")):
        return str(value)[:12]
    return str(value)
