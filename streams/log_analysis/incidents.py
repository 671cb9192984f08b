"""Group events that belong together into incidents, in bounded memory.

Events belong together that are of one application or group, about a minute apart at most, and of
one fault: one may follow from the other, and they are not about different topics, stores or
functions (`chains`). An event that names no fault, such as a rebalance, joins the last incident of
its log. Incidents of several logs that belong together are one. An incident keeps counts of all its
events, and the first lines of each code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from streams.log_analysis.chains import Fault, choose_cause, find_fault
from streams.log_analysis.events import LogEvent
from streams.log_analysis.patterns import NO_FAULTS, EventKind

GAP_S = 70.0
"""Outages that last are logged each minute, and some seconds late."""
CAUSE_LATE_S = 30.0
"""The time by which a cause may be logged after what followed from it."""
LINES_MAX = 3
"""The lines that an incident keeps of each code."""
SUBJECTS_MAX = 5
"""The names that an incident keeps of each kind."""
OPEN_MAX = 50
"""The incidents at one time; with more of them the oldest ends."""
MERGE_LOOK_BACK = 50
"""The incidents before one of another log that it may belong to."""
_ENDED_BY_SIGNAL, _STARTED_AGAIN = " was ended by SIG", "started again"
_STATE_DIRECTORY = re.compile(r"; state in ([^;]+)")
INCIDENTS_MAX = 10_000
"""With more of them, the shortest gap between two is closed by merging."""


@dataclass(frozen=True, slots=True)
class IncidentLine:
    """Holds a line that shows an incident."""

    at_s: float | None
    source: str
    message: str
    code: str


@dataclass(slots=True)
class Incident:
    """Holds what is known of one incident; instants are in s since 1970, None if not known."""

    begin_s: float | None
    end_s: float | None
    owner: str | None
    fault: Fault | None = None
    """The fault that explains the others."""
    kinds: Counter[EventKind] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    lines: dict[str, list[IncidentLine]] = field(default_factory=dict)
    subjects: dict[str, dict[str, None]] = field(default_factory=dict)
    sources: dict[str, None] = field(default_factory=dict)
    is_ambiguous: bool = False
    """True if the end may be an hour later: its time comes twice when summer time ends."""

    @property
    def is_fault(self) -> bool:
        """Return whether something went wrong, and not only a rebalance or a restore was seen."""
        return any(kind not in NO_FAULTS for kind in self.kinds)

    def add_event(self, event: LogEvent) -> None:
        """Add an event, of which the line is kept if its code has few yet."""
        if event.at_s is not None:
            self.begin_s = event.at_s if self.begin_s is None else min(self.begin_s, event.at_s)
            if self.end_s is None or event.at_s >= self.end_s:
                self.end_s, self.is_ambiguous = event.at_s, event.is_ambiguous
        self.owner = self.owner or event.owner
        self.fault = choose_cause((self.fault, find_fault(event)))
        self.kinds[event.pattern.kind] += 1
        code = event.pattern.code
        if code:
            self.codes[code] += 1
            kept = self.lines.setdefault(code, [])
            if len(kept) < LINES_MAX and all(each.message != event.message for each in kept):
                kept.append(IncidentLine(event.at_s, event.source, event.message, code))
        for kind, name in event.about:
            names = self.subjects.setdefault(kind, {})
            if len(names) < SUBJECTS_MAX:
                names[name] = None
        if len(self.sources) < SUBJECTS_MAX:
            self.sources[event.source] = None

    def may_include_event(self, at_s: float | None, owner: str | None, fault: Fault | None) -> bool:
        """Return whether what happened at an instant, to an application, may belong to this."""
        if None not in (self.owner, owner) and self.owner != owner:
            return False
        if self.fault is None or fault is None or fault.may_follow(self.fault):
            return self.is_near(at_s)
        return self.fault.may_follow(fault) and self.is_near(at_s, CAUSE_LATE_S)

    def is_near(self, at_s: float | None, gap_s: float = GAP_S) -> bool:
        """Return whether an instant is within the incident, or less than a time from it."""
        if at_s is None or self.begin_s is None or self.end_s is None:
            return True
        return self.begin_s - gap_s <= at_s <= self.end_s + gap_s

    def absorb_incident(self, other: Incident) -> None:
        """Take over what another incident has."""
        instants = [each for each in (self.begin_s, other.begin_s) if each is not None]
        self.begin_s = min(instants, default=None)
        if other.end_s is not None and (self.end_s is None or other.end_s > self.end_s):
            self.end_s, self.is_ambiguous = other.end_s, other.is_ambiguous
        self.owner = self.owner or other.owner
        self.fault = choose_cause((self.fault, other.fault))
        self.kinds.update(other.kinds)
        self.codes.update(other.codes)
        for code, lines in other.lines.items():
            kept = [*self.lines.get(code, []), *lines]
            self.lines[code] = sorted(kept, key=lambda each: each.at_s or 0.0)[:LINES_MAX]
        for kind, names in other.subjects.items():
            merged = {**self.subjects.get(kind, {}), **names}
            self.subjects[kind] = dict.fromkeys(list(merged)[:SUBJECTS_MAX])
        self.sources = dict.fromkeys([*self.sources, *other.sources][:SUBJECTS_MAX])


@dataclass(slots=True)
class LoggedRun:
    """Holds when the process of a log has started last, and whether it has ended since.

    `process` and `state_directory` are what its first line says, where it does.
    """

    started_at_s: float
    has_ended: bool = False
    process: int | None = None
    state_directory: str | None = None


class IncidentLog:
    """Groups the events of one log after the other into incidents, and counts them by hour."""

    def __init__(self) -> None:
        self.event_count = 0
        self.runs: dict[str, LoggedRun] = {}
        """The last run of the process, by its log."""
        self.hours: dict[int, Counter[EventKind]] = {}
        """The number of events of each kind, by hours since 1970."""
        self._open: list[Incident] = []
        self._closed: list[Incident] = []

    def add_event(self, event: LogEvent) -> None:
        """Add an event to the incident that it belongs to, or begin one with it."""
        self.event_count += 1
        kind = event.pattern.kind
        if event.at_s is not None:
            self.hours.setdefault(int(event.at_s // 3600), Counter())[kind] += 1
            self._close_incidents_before(event.at_s)
        if kind is EventKind.START or kind is EventKind.END:
            self._record_start_or_end(event)
            return
        if _ENDED_BY_SIGNAL in event.message and _STARTED_AGAIN not in event.message:
            self._mark_run_ended(event.source)
        fault = find_fault(event)
        found = _choose_incident(self._open, event.at_s, event.owner, fault)
        if found is None:
            found = Incident(event.at_s, event.at_s, event.owner)
            self._close_incidents(self._open[: 1 - OPEN_MAX])
            self._open.append(found)
        found.add_event(event)

    def _record_start_or_end(self, event: LogEvent) -> None:
        """Note that the process of a log has started or ended."""
        if event.pattern.kind is EventKind.END:
            self._mark_run_ended(event.source)
        elif event.at_s is not None:
            directory = _STATE_DIRECTORY.search(event.message)
            self.runs[event.source] = LoggedRun(
                event.at_s,
                process=event.process,
                state_directory=directory[1] if directory else None,
            )

    def _mark_run_ended(self, source: str) -> None:
        """Note that the process of a log has ended; a signal that kills it lets it log nothing."""
        if source in self.runs:
            self.runs[source].has_ended = True

    def close_all_incidents(self) -> None:
        """Close all incidents, at the end of a log."""
        self._close_incidents(list(self._open))

    def list_incidents(self) -> list[Incident]:
        """Return the incidents in the order of time, merged where those of several logs overlap."""
        self.close_all_incidents()
        merged: list[Incident] = []
        for each in sorted(self._closed, key=lambda incident: incident.begin_s or 0.0):
            near = merged[-MERGE_LOOK_BACK:]
            found = _choose_incident(near, each.begin_s, each.owner, each.fault)
            if found is None:
                merged.append(each)
            else:
                found.absorb_incident(each)
        return [each for each in merged if each.is_fault]

    def _close_incidents_before(self, now_s: float) -> None:
        """Close the incidents that nothing can join any more."""
        self._close_incidents([each for each in self._open if not each.is_near(now_s)])

    def _close_incidents(self, ended: Iterable[Incident]) -> None:
        for each in ended:
            self._open.remove(each)
            if each.is_fault:
                self._closed.append(each)
        if len(self._closed) > INCIDENTS_MAX:
            self._closed = _merge_neighbours(self._closed)


def _choose_incident(
    incidents: Iterable[Incident], at_s: float | None, owner: str | None, fault: Fault | None
) -> Incident | None:
    """Return the incident that an event belongs to: rather one with its code, then the last one."""
    code = fault and fault.code

    def rate_incident(each: Incident) -> tuple[bool, float]:
        return (each.fault is not None and each.fault.code == code, each.end_s or 0.0)

    near = [each for each in incidents if each.may_include_event(at_s, owner, fault)]
    return max(near, key=rate_incident, default=None)


def _merge_neighbours(incidents: list[Incident]) -> list[Incident]:
    """Merge each incident of odd number into the one before, so that half of them are left."""
    ordered = sorted(incidents, key=lambda incident: incident.begin_s or 0.0)
    for first, second in zip(ordered[::2], ordered[1::2], strict=False):
        first.absorb_incident(second)
    return ordered[::2]
