"""Print an analysis for people: events by hour, and each incident with its cause and time line."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streams.common.counted import format_count
from streams.log_analysis.events import LogEvent
from streams.log_analysis.patterns import NO_FAULTS, UNCOUNTED_KINDS
from streams.log_analysis.report import LogAnalysisOutput, LogIncidentOutput, format_instant

HOURS_MAX, INCIDENTS_MAX = 48, 20
_MEGABYTE = 1_000_000
_BAR_CHARS = 40


def print_analysis(analysis: LogAnalysisOutput, console: Console) -> None:
    """Print all of it; of many hours and incidents the last ones."""
    if not analysis.incidents:
        console.print(
            f"no incident in {analysis.bytes / _MEGABYTE:,.1f} MB; "
            f"{analysis.events} lines tell of restarts, rebalances and restores"
        )
        return
    _print_hours(analysis, console)
    left_out = len(analysis.incidents) - INCIDENTS_MAX
    if left_out > 0:
        console.print(f"{left_out} earlier incidents are left out: --json has them\n")
    for each in analysis.incidents[-INCIDENTS_MAX:]:
        _print_incident(each, console)
    incidents = format_count(len(analysis.incidents), "incident")
    logs = format_count(len(analysis.files), "log")
    console.print(f"{incidents} in {logs}, {analysis.bytes / _MEGABYTE:,.1f} MB")


def _print_hours(analysis: LogAnalysisOutput, console: Console) -> None:
    """Print how many events each hour has, with a bar."""
    shown = analysis.hours[-HOURS_MAX:]
    most = max((sum(each.events.values()) for each in shown), default=1)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("hour", "events", "", "of which"):
        table.add_column(column, overflow="fold")
    for each in shown:
        count = sum(each.events.values())
        bar = "█" * max(1, round(_BAR_CHARS * count / most)) if console.is_terminal else ""
        table.add_row(each.hour, str(count), bar, format_counts(each.events))
    console.print(table)
    console.print()


def _print_incident(incident: LogIncidentOutput, console: Console) -> None:
    """Print when an incident was, its cause, what happened, and the lines that show it."""
    when = incident.begin or "at an unknown time"
    until = (
        f" to {incident.end.split()[1]}" if incident.end and incident.end != incident.begin else ""
    )
    owner = f", {incident.application}" if incident.application else ""
    console.print(Text(f"{when}{until}{owner}: {format_counts(incident.events)}", "bold"))
    console.print(Text(f"  likely cause: {incident.explanation} ({incident.page})"))
    for kind, names in incident.about.items():
        console.print(Text(f"  {kind}: {', '.join(names)}", "dim"))
    for line in incident.lines:
        at = (line.time or "?").rpartition(" ")[2]
        place = f" {Path(line.file).name}" if len(incident.files) > 1 else ""
        console.print(Text(f"  {at}{place} {line.code} {line.message}"))
    console.print()


def format_counts(events: Mapping[str, int]) -> str:
    """Return counts by kinds as a text: `3 fencing, 1 rebalance, 2 failed records`."""
    return ", ".join(
        f"{count} {kind}" if kind in UNCOUNTED_KINDS else format_count(count, kind)
        for kind, count in events.items()
    )


def print_event_if_fault(event: LogEvent, console: Console) -> None:
    """Print an event of a log that is followed, if it is a fault."""
    if event.pattern.kind in NO_FAULTS:
        return
    code = event.pattern.code
    hint = f" (millrace explain-error {code})" if code else ""
    console.print(
        Text(f"{format_instant(event.at_s) or '?'} {event.pattern.kind}: {event.message}{hint}")
    )
    console.file.flush()  # also into a pipe, which is read as the log grows


class ScanProgress:
    """Shows on standard error how far a log was read: each second on a terminal, else seldom."""

    def __init__(self, name: str, size: int | None) -> None:
        self._name, self._size = name, size
        self._is_terminal = sys.stderr.isatty()
        self._interval_s = 1.0 if self._is_terminal else 10.0
        self._began_s = self._shown_s = time.monotonic()

    def show_bytes(self, done: int) -> None:
        """Show the progress, if it was not shown for a while."""
        now_s = time.monotonic()
        if now_s - self._shown_s < self._interval_s:
            return
        self._shown_s = now_s
        share = f" of {self._size / _MEGABYTE:,.0f} MB" if self._size else ""
        rate = done / _MEGABYTE / (now_s - self._began_s)
        text = f"{self._name}: {done / _MEGABYTE:,.0f}{share or ' MB'}, {rate:,.0f} MB/s"
        sys.stderr.write(f"\r{text}\x1b[K" if self._is_terminal else f"{text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Remove what is shown on a terminal."""
        if self._is_terminal and self._shown_s > self._began_s:
            sys.stderr.write("\r\x1b[K")
