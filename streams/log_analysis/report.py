"""Analyze logs, and return what `millrace logs analyze` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from streams.log_analysis.causes import find_cause
from streams.log_analysis.events import LogEvent
from streams.log_analysis.headers import is_ambiguous_local_time
from streams.log_analysis.incidents import Incident, IncidentLog
from streams.log_analysis.patterns import EventKind
from streams.log_analysis.scanning import LogScanner
from streams.log_analysis.sources import LogSource

_INSTANT = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True)
class LogLineOutput:
    """Shows a line of a log; its time is null where none is known."""

    time: str | None
    file: str
    message: str
    code: str


@dataclass(frozen=True)
class LogHourOutput:
    """Counts the events of an hour by their kinds."""

    hour: str
    events: dict[str, int]


@dataclass(frozen=True)
class LogRunOutput:
    """Shows when the process of a log has started last, and whether it has ended since."""

    file: str
    started: str
    has_ended: bool
    process: int | None = None
    state_directory: str | None = None


@dataclass(frozen=True)
class LogIncidentOutput:
    """Shows an incident: when, of whom, what happened how often, and the likely cause."""

    begin: str | None
    end: str | None
    application: str | None
    events: dict[str, int]
    about: dict[str, list[str]]
    files: list[str]
    cause: str
    explanation: str
    page: str
    lines: list[LogLineOutput]


@dataclass(frozen=True)
class LogAnalysisOutput:
    """Shows what logs tell: incidents in the order of time, and events by hour."""

    files: list[str]
    bytes: int
    events: int
    hours: list[LogHourOutput]
    incidents: list[LogIncidentOutput]
    runs: list[LogRunOutput]


def analyze_logs(
    sources: Iterable[LogSource], on_event: Callable[[LogEvent], None] = lambda _: None
) -> LogAnalysisOutput:
    """Analyze logs one after the other; `on_event` gets each event when it is found.

    Ctrl-C ends it early, with what was found so far. Raises: ConfigError for an unreadable log.
    """
    found, names, size = IncidentLog(), [], 0
    with suppress(KeyboardInterrupt):
        for source in sources:
            names.append(source.name)
            scanner = LogScanner(source.name)
            for block in source.read_blocks():
                size += len(block)
                for event in scanner.find_events(block):
                    found.add_event(event)
                    on_event(event)
            found.close_all_incidents()
    return LogAnalysisOutput(
        names,
        size,
        found.event_count,
        [
            LogHourOutput(_format_time(hour * 3600.0, "%Y-%m-%d %H:00"), _count_by_kind_name(kinds))
            for hour, kinds in sorted(found.hours.items())
        ],
        [describe_incident(each) for each in found.list_incidents()],
        [
            LogRunOutput(
                name,
                str(format_instant(run.started_at_s)),
                run.has_ended,
                run.process,
                run.state_directory,
            )
            for name, run in found.runs.items()
        ],
    )


def describe_incident(incident: Incident) -> LogIncidentOutput:
    """Return the output row of an incident: its times, owner, subjects, sources and cause."""
    cause = find_cause(incident)
    return LogIncidentOutput(
        format_instant(incident.begin_s),
        format_instant(incident.end_s, has_zone=not incident.is_ambiguous),
        incident.owner,
        _count_by_kind_name(incident.kinds),
        {kind: list(names) for kind, names in sorted(incident.subjects.items())},
        list(incident.sources),
        cause.code,
        cause.sentence,
        f"millrace explain-error {cause.code}",
        [
            LogLineOutput(format_instant(each.at_s), each.source, each.message, each.code)
            for each in cause.lines
        ],
    )


def _count_by_kind_name(kinds: Mapping[EventKind, int]) -> dict[str, int]:
    return {str(kind): count for kind, count in sorted(kinds.items(), key=lambda item: -item[1])}


def format_instant(at_s: float | None, *, has_zone: bool = True) -> str | None:
    """Return an instant to the second in this machine's zone; None if it is not known.

    One that comes twice, when summer time ends, is shown with the offset if its log `has_zone`.
    """
    if at_s is None:
        return None
    text = _format_time(at_s, _INSTANT)
    if has_zone and is_ambiguous_local_time(datetime.fromisoformat(text)):
        offset = datetime.fromtimestamp(at_s).astimezone().strftime("%z")
        return f"{text}{offset[:3]}:{offset[3:]}"
    return text


def _format_time(at_s: float, form: str) -> str:
    """Return an instant in this machine's zone, as the logs have it."""
    return datetime.fromtimestamp(at_s).strftime(form)  # noqa: DTZ006
