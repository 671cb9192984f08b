"""Look at the logs of workers for incidents, as `millrace logs analyze` finds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from streams.command_lines import format_command
from streams.common.counted import format_count
from streams.doctor.findings import DoctorFinding, find_fine, find_unknown, find_warning
from streams.log_analysis.printing import format_counts
from streams.log_analysis.report import LogIncidentOutput, analyze_logs
from streams.log_analysis.sources import LogSource

RECENT_ERRORS = "recent errors"
_INCIDENTS_SHOWN = 3


def check_logs(paths: Sequence[Path]) -> Iterator[DoctorFinding]:
    """Analyze the logs at these paths, and name their last incidents."""
    if not paths:
        yield find_unknown(RECENT_ERRORS, "where the workers log is not known: give --logs FILE")
        return
    analysis = analyze_logs(LogSource(str(path)) for path in paths)
    yield from check_incidents(analysis.incidents, [str(path) for path in paths])


def check_incidents(
    incidents: Sequence[LogIncidentOutput], logs: Sequence[str]
) -> Iterator[DoctorFinding]:
    """Name the last incidents of some logs, with the likely cause of each."""
    if not incidents:
        yield find_fine(RECENT_ERRORS, f"no incident in {format_count(len(logs), 'log')}")
        return
    first = len(incidents) - _INCIDENTS_SHOWN
    earlier = f" ({first} earlier ones)" if first > 0 else ""
    for each in reversed(incidents[-_INCIDENTS_SHOWN:]):
        yield find_warning(
            RECENT_ERRORS,
            f"{each.begin or 'at an unknown time'}: {format_counts(each.events)}{earlier}",
            f"likely cause: {each.explanation} ({each.cause})",
            f"{format_command('logs analyze', *logs)} shows the lines",
        )
