"""Count what a shard has loaded and appended, for the metrics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ShardCounters:
    """Counts what a shard has loaded and appended, and the time that it took.

    The clock counts whole milliseconds: of a short append its share of one, so that sums are right
    though single values are not.
    """

    loaded: int = 0  # records and markers, when the log was replayed
    unknown: int = 0  # of a type or version that this broker lacks; they are kept
    load_ms: int = 0
    appended: int = 0  # records and markers, since then
    appends: int = 0
    append_ms: int = 0
    append_ms_max: int = 0

    def count_append(self, record_count: int, elapsed_ms: int) -> None:
        """Add one append of so many records to the counters."""
        self.appended += record_count
        self.appends += 1
        self.append_ms += elapsed_ms
        if elapsed_ms > self.append_ms_max:
            self.append_ms_max = elapsed_ms
