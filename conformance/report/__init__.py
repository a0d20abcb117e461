"""Records of cells, and the reports made of them. Reads records, never areas of checks."""

from conformance.report.build import build_report, is_red
from conformance.report.durations import Durations, DurationsError, recorded_durations
from conformance.report.environment import collect_environment
from conformance.report.identity import IdentityError, identify, read_identity, write_identity
from conformance.report.lock import DirLock
from conformance.report.plan_file import Plan, PlanError, read_plan, write_plan
from conformance.report.progress import Progress
from conformance.report.records import Journal, JournalError, Record, read_journal
from conformance.report.resume import ResumeError, done_before
from conformance.report.summary import terminal_summary
from conformance.report.write import ReportDirError, check_writable, remove_files, write_reports

__all__ = [
    "DirLock",
    "Durations",
    "DurationsError",
    "IdentityError",
    "Journal",
    "JournalError",
    "Plan",
    "PlanError",
    "Progress",
    "Record",
    "ReportDirError",
    "ResumeError",
    "build_report",
    "check_writable",
    "collect_environment",
    "done_before",
    "identify",
    "is_red",
    "read_identity",
    "read_journal",
    "read_plan",
    "recorded_durations",
    "remove_files",
    "terminal_summary",
    "write_identity",
    "write_plan",
    "write_reports",
]
