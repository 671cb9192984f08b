"""Count the records that a shard has loaded and appended, for the metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator.histogram import Histogram, RecentMax

_NS_PER_MS = 1_000_000


@dataclass(slots=True)
class ShardCounters:
    """Counts a shard's loaded and appended records, and the time that this took.

    An event is an append with what follows it: its records are applied to the state.
    """

    loaded: int = 0  # records and markers, when the log was replayed
    unknown: int = 0  # of a type or version that this broker lacks; they are kept
    load_ms: int = 0
    appended: int = 0  # records and markers, since then
    append_times: Histogram = field(default_factory=Histogram)
    event_times: Histogram = field(default_factory=Histogram)
    append_max_ns: RecentMax = field(default_factory=RecentMax)  # of those of a ms or more

    def count_append(self, record_count: int, begin_ns: int, appended_ns: int, end_ns: int) -> None:
        """Count an append and its records, by when it began, was in the log, and was applied."""
        self.appended += record_count
        elapsed_ns = appended_ns - begin_ns
        self.append_times.record_ns(elapsed_ns)
        self.event_times.record_ns(end_ns - begin_ns)
        if elapsed_ns >= _NS_PER_MS:  # nearly all are shorter
            self.append_max_ns.record_value(elapsed_ns, end_ns // _NS_PER_MS)
