"""Generate the records of the input topics: which keys, values and timestamps, from a number alone.

A value begins with ten digits of the record's number and ten of its key's number. Ten records have
the same millisecond, so that of 10,000 keys each returns after a second, in an order that is not
that of the keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

RECORDS_PER_MS = 10
PAUSE_MS = 10_000
CLOSE_MS = 60_000
_STRIDE = 611_953
"""A prime: consecutive records have distant keys, and each key comes once in as many records."""
_NUMBER_DIGITS = 10


class InputRecord(NamedTuple):
    """Holds a record to write; `partition` is set where its key does not choose it."""

    key: str
    value: str
    timestamp_ms: int
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Feed:
    """Describes the records of an input topic.

    `every`: only one of so many numbers has a record, and `records` is how many there are.
    `delay_ms` shifts the timestamps. With `burst_records` there is a pause after each so many. If
    `is_closed`, a late record in each partition lets the windows before it close.
    """

    records: int
    keys: int
    every: int = 1
    delay_ms: int = 0
    burst_records: int = 0
    is_closed: bool = False
    value_bytes: int = 100

    def generate_records(self, begin_ms: int, partitions: int) -> Iterator[InputRecord]:
        """Yield the records in their order, from `begin_ms` on."""
        filler = "v" * (self.value_bytes - 2 * _NUMBER_DIGITS)
        at_ms = begin_ms + self.delay_ms
        timestamp_ms = at_ms
        for number in range(0, self.records * self.every, self.every):
            key_number = number * _STRIDE % self.keys
            timestamp_ms = at_ms + number // RECORDS_PER_MS
            if self.burst_records:
                timestamp_ms += number // self.burst_records * PAUSE_MS
            value = f"{number:010d}{key_number:010d}{filler}"
            yield InputRecord(f"key-{key_number:07d}", value, timestamp_ms)
        if self.is_closed:
            for partition in range(partitions):
                yield InputRecord(f"end-{partition}", "end", timestamp_ms + CLOSE_MS, partition)
