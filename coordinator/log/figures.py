"""Measure a partition's log for the metrics, and count what fetches were answered with."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.log.segments import LogSegments


@dataclass(slots=True)
class LogFigures:
    """Measures a log by its segments, on any thread; the broker's own counts what is read."""

    segments: LogSegments
    first_new_offset: int = 0  # where the log ended when it was opened
    bytes_out: int = 0
    records_out: int = 0

    def count_fetched(self, byte_count: int, record_count: int) -> None:
        """Count batches that a fetch was answered with."""
        self.bytes_out += byte_count
        self.records_out += record_count

    @property
    def size(self) -> int:
        """Return the bytes of all segments."""
        return sum(segment.size for segment in tuple(self.segments.all))

    @property
    def segment_count(self) -> int:
        """Return the number of segments."""
        return len(self.segments.all)

    @property
    def bytes_in(self) -> int:
        """Return the bytes that were appended since the log was opened."""
        return self.segments.appended_bytes - self.segments.recovered_bytes

    @property
    def expired_count(self) -> int:
        """Return the number of segments that retention, or DeleteRecords, has removed."""
        return self.segments.forgotten_count
