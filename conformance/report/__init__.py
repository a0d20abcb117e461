"""Records of cells, and the reports made of them. Reads records, never areas of checks."""

from conformance.report.build import build_report
from conformance.report.environment import collect_environment
from conformance.report.progress import Progress
from conformance.report.records import Journal, JournalError, Record, read_journal
from conformance.report.summary import terminal_summary
from conformance.report.write import ReportDirError, check_writable, write_reports

__all__ = [
    "Journal",
    "JournalError",
    "Progress",
    "Record",
    "ReportDirError",
    "build_report",
    "check_writable",
    "collect_environment",
    "read_journal",
    "terminal_summary",
    "write_reports",
]
