"""Measure a step: how late records reach it, what it writes and emits.

Counts are of every record. The latency is that of the first record after `is_due` was set, which
the thread does after a slice of records, so that reading the clock costs nothing for a record.
Where slices follow each other fast, it does so after one in some milliseconds, and at a commit.
So is the size of what a sink writes to a topic; records after it count as equally large. What a
suppression emits is added to its figure at the same moments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.common.timings import Timing

RECORD_OVERHEAD_BYTES = 20
"""The bytes that Kafka Streams adds to each record: timestamp, offset and partition."""


class TopicCounts:
    """Counts the records that were written to, or read from, one topic, and their bytes."""

    __slots__ = (
        *("_bytes", "_sampled_at", "_sampled_bytes"),
        *("is_due", "overhead_bytes", "records"),
    )

    def __init__(self, topic: str) -> None:
        self.records = 0
        self.is_due = True
        """True if the next record is to be measured."""
        self._bytes = 0
        """The bytes of keys, values and headers up to the record whose number is `_sampled_at`."""
        self._sampled_at = self._sampled_bytes = 0
        self.overhead_bytes = RECORD_OVERHEAD_BYTES + len(topic.encode())

    def measure_last_record(self, key: bytes | None, value: bytes | None, headers: Any) -> None:
        """Measure the record that was counted last; those before it were as large as the former.

        So the bytes never become fewer. `headers` are pairs of names and values, or None.
        """
        self._bytes += (self.records - 1 - self._sampled_at) * self._sampled_bytes
        size = len(key or b"") + len(value or b"") + measure_headers_bytes(headers or ())
        self._bytes += size
        self._sampled_at, self._sampled_bytes = self.records, size

    @property
    def total_bytes(self) -> int:
        """Return the bytes of all records as Kafka Streams counts them, with the topic's name."""
        since = self.records - self._sampled_at
        return self._bytes + since * self._sampled_bytes + self.records * self.overhead_bytes


class StepMeasurements:
    """Holds the measurements of one step of a task; they outlive a rollback of the task."""

    def __init__(self, now_ms: Callable[[], int], monotonic_s: Callable[[], float]) -> None:
        self._now_ms = now_ms
        self.monotonic_s = monotonic_s
        """The clock of what is measured, and of nothing that a step does."""
        self.is_due = True
        """True if the latency of the next record is to be measured."""
        self.latency = Timing(monotonic_s)
        """Seconds from a record's timestamp until it had been processed here."""
        self.written: dict[str, TopicCounts] = {}
        """By topic what the step has written."""
        self.suppression_emits: Timing | None = None
        """The updates that a suppression has emitted up to the last slice; None for other steps."""
        self.emitted_count = 0
        """The number of all these updates so far."""
        self.final_emits: Timing | None = None
        """The seconds of each emission of closed windows; None for steps that don't wait for it."""
        self.final_records: Timing | None = None
        """The results of each of these emissions."""

    def request_next_measurement(self) -> None:
        """Let the next record be measured, and observe what a suppression has emitted."""
        self.is_due = True
        for counts in self.written.values():
            counts.is_due = True
        emits = self.suppression_emits
        if emits is not None and (count := self.emitted_count - emits.total):
            emits.observe_calls(count, 1.0, 1.0, self.monotonic_s())

    def measure_written(
        self,
        counts: TopicCounts,
        key: bytes | None,
        value: bytes | None,
        headers: Any,
        timestamp_ms: int,
    ) -> None:
        """Measure the record that a sink has written last, as `request_next_measurement` asks.

        It is the first of its topic since; its latency is measured if it is the step's first, too.
        """
        counts.measure_last_record(key, value, headers)
        counts.is_due = False
        if self.is_due:
            self.observe_latency(timestamp_ms)

    def observe_latency(self, timestamp_ms: int) -> None:
        """Measure the latency of a record that has been processed."""
        self.is_due = False
        if timestamp_ms >= 0:  # a record may have none
            latency_s = max(self._now_ms() - timestamp_ms, 0) / 1_000
            self.latency.observe(latency_s, self.monotonic_s())

    def get_or_add_topic_counts(self, topic: str) -> TopicCounts:
        """Return the counts of what the step writes to a topic: the same object each time."""
        counts = self.written.get(topic)
        if counts is None:
            counts = self.written[topic] = TopicCounts(topic)
        return counts

    def enable_suppression_timing(self) -> None:
        """Begin to time the updates that a suppression emits, which `emitted_count` counts.

        It is brought up to date after each slice: an update reads no clock.
        """
        self.suppression_emits = self.suppression_emits or Timing(self.monotonic_s)

    def create_final_emit_recorder(self) -> Callable[[float, int], None]:
        """Return a function that adds an emission of closed windows: when it began, and results."""
        emits = self.final_emits = self.final_emits or Timing(self.monotonic_s)
        records = self.final_records = self.final_records or Timing(self.monotonic_s)

        def add_emission(began_at_s: float, count: int) -> None:
            now_s = self.monotonic_s()
            emits.observe(now_s - began_at_s, now_s)
            records.observe(count, now_s)

        return add_emission


def measure_headers_bytes(headers: Any) -> int:
    """Return the bytes of names and values of a record's headers."""
    return sum(len(name) + len(value or b"") for name, value in headers)
