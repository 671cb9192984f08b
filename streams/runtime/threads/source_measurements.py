"""Measure the sizes and latencies of the records of a source, by some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streams.common.timings import Timing
from streams.graph.step_measurements import RECORD_OVERHEAD_BYTES, measure_headers_bytes
from streams.operators.timestamp_extraction import find_message_time_ms

SAMPLE_RECORDS = 16
"""The records of a slice that are looked at: all of a slice of no more."""
_SAMPLE_INTERVAL_S = 0.005
"""The seconds between two samples while large slices follow each other."""


class SourceMeasurements:
    """Holds what was measured of the records that a task has read of one topic.

    While slices follow each other fast, records of one in some milliseconds are looked at.
    """

    def __init__(self, topic: str, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._overhead_bytes = RECORD_OVERHEAD_BYTES + len(topic)
        self.records = 0
        """The records that were handed to the source step."""
        self.bytes = 0
        """The bytes of the records as Kafka Streams counts them, estimated."""
        self.latency = Timing(monotonic_s)
        """Seconds from a record's time until its slice began: of the first and the last record
        of a slice."""
        self._average_bytes = 0.0
        self._sampled_at_s = -_SAMPLE_INTERVAL_S

    def count_and_sample_run(self, messages: Sequence[Any], began_at_ms: float) -> Sequence[Any]:
        """Add the records of a slice that began at a wall-clock time.

        Returns the records that were looked at; none if the last look was a moment ago.
        """
        now_s, count = self._monotonic_s(), len(messages)
        sample: Sequence[Any] = ()
        self.records += count
        if count <= SAMPLE_RECORDS or now_s - self._sampled_at_s >= _SAMPLE_INTERVAL_S:
            self._sampled_at_s = now_s
            sample = sample_records(messages)
            self._average_bytes = sum(map(_measure_bytes, sample)) / len(sample)
            for message in (messages[0], messages[-1])[:count]:
                timestamp_ms = find_message_time_ms(message)
                if timestamp_ms >= 0:  # a record may have none
                    latency_s = max(began_at_ms - timestamp_ms, 0.0) / 1_000
                    self.latency.observe(latency_s, now_s)
        self.bytes += round(count * (self._average_bytes + self._overhead_bytes))
        return sample


def sample_records(messages: Sequence[Any]) -> Sequence[Any]:
    """Return records that are evenly spread over a slice, the first one among them."""
    count = len(messages)
    return messages if count <= SAMPLE_RECORDS else messages[:: -(-count // SAMPLE_RECORDS)]


def _measure_bytes(message: Any) -> int:
    """Return the bytes of key, value and headers of a record."""
    headers = message.headers()
    return (
        len(message.value() or b"")
        + len(message.key() or b"")
        + (measure_headers_bytes(headers) if headers else 0)
    )
