"""Define the application of the crash matrix.

It has a store of every kind, read and written by each record, an aggregate that is mutated in
place, and a store behind a repartition topic.

What a record writes depends on what it reads, so that a record which is lost, doubled or applied to
state that was rolled back shows in all that follows it.
"""

from __future__ import annotations

from typing import Any

from state.windowed import Windowed
from streams import App, serdes
from streams.graph.materialized import Store
from streams.processor.processor import Processor
from streams.processor.record import Record

COMMIT_INTERVAL_MS = 50
WINDOW_MS = 1_000
GAP_MS = 1_500
GROUPS = 7
_KEPT_MS = 86_400_000
_KEPT: dict[str, Any] = {"key": serdes.string, "value": serdes.int64}

STORES = (
    Store.persistent("totals", **_KEPT),
    Store.in_memory("totals-in-memory", **_KEPT),
    Store.window("windows", size=WINDOW_MS, retention=_KEPT_MS, **_KEPT),
    Store.window(
        "windows-in-memory", size=WINDOW_MS, retention=_KEPT_MS, persistent=False, **_KEPT
    ),
    Store.session("sessions", retention=_KEPT_MS, **_KEPT),
    Store.session("sessions-in-memory", retention=_KEPT_MS, persistent=False, **_KEPT),
    Store.versioned("versions", history=_KEPT_MS, **_KEPT),
    Store.versioned("versions-in-memory", history=_KEPT_MS, persistent=False, **_KEPT),
)


class EveryStore(Processor[str, int, str, int]):
    """Adds the value to what each store has of the key, and forwards the total."""

    stores = STORES

    def init(self, context: Any) -> None:
        self._totals = [context.store("totals"), context.store("totals-in-memory")]
        self._windows = [context.store("windows"), context.store("windows-in-memory")]
        self._sessions = [context.store("sessions"), context.store("sessions-in-memory")]
        self._versions = [context.store("versions"), context.store("versions-in-memory")]

    def process(self, record: Record[str, int]) -> None:
        key, value, time_ms = record.key, record.value, record.timestamp_ms
        for totals in self._totals:
            total = (totals.get(key) or 0) + value
            totals.put(key, total)
        start_ms = time_ms - time_ms % WINDOW_MS
        for windows in self._windows:
            windows.put(key, (windows.fetch(key, start_ms) or 0) + value, start_ms)
        for sessions in self._sessions:
            self._join(sessions, key, value, time_ms)
        for versions in self._versions:
            version = versions.get(key)
            versions.put(key, (0 if version is None else version.value) + value, time_ms)
        self.context.forward(record.with_value(total))

    @staticmethod
    def _join(sessions: Any, key: str, value: int, time_ms: int) -> None:
        """Merge all sessions that the record connects into one."""
        start_ms = end_ms = time_ms
        for session, held in list(sessions.find_sessions(key, time_ms - GAP_MS, time_ms + GAP_MS)):
            start_ms, end_ms = min(start_ms, session.start_ms), max(end_ms, session.end_ms)
            value += held
            sessions.remove(session)
        sessions.put(Windowed(key, start_ms, end_ms), value)


def append(key: str, value: int, seen: list[int]) -> list[int]:
    """Append to the aggregate in place.

    So one sees what a rolled-back transaction left in an object.
    """
    seen.append(value)
    return seen


def build(application_id: str, source: str, target: str, **settings: Any) -> App:
    """Build the application.

    The totals go to `target`, the counts by remainder to another topic beside it.
    """
    app = App(application_id, **settings)
    stream = app.stream(source, key=serdes.string, value=serdes.int64)
    stream.process(EveryStore).to(target, key=serdes.string, value=serdes.int64)
    stream.group_by_key().aggregate(list, append, value=serdes.json, store="seen")
    regrouped = stream.group_by(lambda key, value: str(value % GROUPS), key=serdes.string)
    regrouped.count(store="regrouped").to_stream().to(f"{target}-regrouped")
    return app
