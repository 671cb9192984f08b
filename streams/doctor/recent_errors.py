"""Look at the logs of workers for incidents, as `millrace logs analyze` finds them.

Recent is what ended within the last hour, and what has happened since the last start of a worker
that runs no more: so its log ends with the reason, however long ago that was.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from state.directory import LOCK_FILE
from state.errors import DirectoryLocked
from state.locks import exclude_owner, read_holder
from streams.command_lines import format_command
from streams.common.counted import format_count
from streams.doctor.durations import format_duration
from streams.doctor.findings import (
    DoctorFinding,
    create_fine_finding,
    create_unknown_finding,
    create_warning_finding,
)
from streams.log_analysis.headers import is_ambiguous_local_time
from streams.log_analysis.printing import format_counts
from streams.log_analysis.report import (
    LogAnalysisOutput,
    LogIncidentOutput,
    LogRunOutput,
    analyze_logs,
)
from streams.log_analysis.sources import LogSource

RECENT_ERRORS = "recent errors"
RECENT_S = 3600.0
_REPEATED_S = 3600.0
"""The time that is repeated when summer time ends, in nearly all zones."""
_INCIDENTS_SHOWN = 3


def check_logs(paths: Sequence[Path], now_s: float | None = None) -> Iterator[DoctorFinding]:
    """Analyze the logs at these paths, and name their last incidents that are recent."""
    if not paths:
        yield create_unknown_finding(
            RECENT_ERRORS,
            "where the workers log is not known: "
            f"{format_command('doctor', '--logs', 'FILE')}, the option once for each log",
        )
        return
    analysis = analyze_logs(LogSource(str(path)) for path in paths)
    yield from check_incidents(analysis, time.time() if now_s is None else now_s)


def check_incidents(analysis: LogAnalysisOutput, now_s: float) -> Iterator[DoctorFinding]:
    """Name the last incidents that are recent, each with its age, its likely cause and its code."""
    command = format_command("logs analyze", *analysis.files)
    runs = {run.file: run for run in analysis.runs}
    recent = [each for each in analysis.incidents if _is_recent(each, runs, now_s)]
    earlier = len(analysis.incidents) - len(recent[-_INCIDENTS_SHOWN:])
    if not recent:
        what = f"no incident in {format_count(len(analysis.files), 'log')} in the last hour"
        if analysis.incidents:
            age = _describe_age(analysis.incidents[-1], now_s)
            what += f"; {earlier} before that, the last {age}: {command} shows them"
        yield create_fine_finding(RECENT_ERRORS, what)
        return
    for each in reversed(recent[-_INCIDENTS_SHOWN:]):
        before = "" if not earlier else f" ({format_count(earlier, 'earlier incident')})"
        warning = create_warning_finding(
            RECENT_ERRORS,
            f"{_describe_age(each, now_s)}{_describe_run(each, runs, now_s)}: "
            f"{format_counts(each.events)}{before}",
            f"likely cause: {each.explanation}",
            f"{command} shows the lines",
        )
        yield replace(warning, code=each.cause)


def _is_recent(incident: LogIncidentOutput, runs: dict[str, LogRunOutput], now_s: float) -> bool:
    """Return whether an incident ended a while ago only, or is of the last run of an ended worker.

    One without a time is recent, as nobody knows.
    """
    end_s = _parse_instant(incident.end)
    if end_s is None or now_s - end_s <= RECENT_S:
        return True
    if _is_ambiguous_time(incident.end) and now_s - end_s <= RECENT_S + _REPEATED_S:
        return True
    ended = (runs[file] for file in incident.files if file in runs and has_ended(runs[file]))
    return any(end_s >= (_parse_instant(run.started) or 0.0) for run in ended)


def _describe_age(incident: LogIncidentOutput, now_s: float) -> str:
    """Return when an incident ended, and how long ago that was: "12 min ago (09:41:00)".

    In the hour that comes twice, where the log has no zone, it may be an hour less: "about".
    """
    end_s = _parse_instant(incident.end)
    if end_s is None:
        return "at an unknown time"
    about = "about " if _is_ambiguous_time(incident.end) else ""
    return f"{about}{format_duration(now_s - end_s)} ago ({incident.end})"


def _describe_run(incident: LogIncidentOutput, runs: dict[str, LogRunOutput], now_s: float) -> str:
    """Say that a worker has been started after an incident, if so: it may be mended."""
    end_s = _parse_instant(incident.end)
    of_files = [runs[file] for file in incident.files if file in runs]
    if end_s is None or not of_files:
        return ""
    started_s = max(_parse_instant(run.started) or 0.0 for run in of_files)
    if started_s <= end_s:
        return ""
    return f", before the worker's last start {format_duration(now_s - started_s)} ago"


def has_ended(run: LogRunOutput) -> bool:
    """Return whether the worker of a log runs no more, by its log or by its slot on this machine.

    One that SIGKILL has ended logs nothing of it, and leaves its process id in the lock of its
    slot, which is free then. It is not known, so False, of a slot that another process has taken,
    or that a worker of another machine has or had: a disk that both share need not share locks.
    """
    if run.has_ended or run.process is None or run.state_directory is None:
        return run.has_ended
    for lock in Path(run.state_directory).glob(f"process-*/{LOCK_FILE}"):
        if read_holder(lock) == (run.process, True):
            return _is_unlocked(lock)
    return False


def _is_unlocked(lock: Path) -> bool:
    """Return whether no process has a lock."""
    try:
        with exclude_owner(lock):
            return True
    except DirectoryLocked:
        return False


def _is_ambiguous_time(text: str | None) -> bool:
    """Return whether an instant is shown without an offset, and comes twice."""
    return text is not None and is_ambiguous_local_time(datetime.fromisoformat(text))


def _parse_instant(text: str | None) -> float | None:
    """Return an instant as the analysis shows it, in this machine's zone, in s since 1970."""
    return None if text is None else datetime.fromisoformat(text).timestamp()
