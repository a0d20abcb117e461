"""What an earlier run left in a report directory, for ``--resume`` to go on with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.report import identity as identities
from conformance.report.records import JournalError, read_journal

_AFRESH = "Run without --resume to start afresh, which drops those records, or give another "


class ResumeError(Exception):
    """A run that cannot be gone on with; the message says why and what to do."""


def done_before(
    report_dir: str | os.PathLike[str], identity: Mapping[str, Any]
) -> frozenset[str] | None:
    """Ids of the cells that the journal in a report directory holds; None where it holds none.

    ``identity`` is what the run.json of this run will say. Changes nothing. Raises
    :class:`ResumeError` for a journal that cannot be read or is of another build or other options.
    """
    journal = Path(report_dir, "records.jsonl")
    if not journal.exists():
        return None
    try:
        records = read_journal(journal).records
    except JournalError as error:
        raise ResumeError(f"--resume: {error}. {_AFRESH}--report-dir") from error
    if not records:
        return None
    try:
        before = identities.read_identity(report_dir)
    except identities.IdentityError as error:
        raise ResumeError(
            f"--resume: {error}, so nothing says which build the {len(records)} records in "
            f"{journal} are of. {_AFRESH}--report-dir"
        ) from error
    found = identities.differences(before, identity, ("then", "now"))
    if found:
        raise ResumeError(
            f"--resume: the {len(records)} records in {journal} are of another build or other "
            f"options: {identities.describe_differences(found)}. {_AFRESH}--report-dir"
        )
    return frozenset(record.cell.id for record in records)
