"""Rebuild a store from its changelog: the last value of each key, or each of its versions.

Pure: batches of records in the order of their offsets go in, and batches of rows come out. All keys
of one partition are in memory, each with its last record; deletions too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, TypeVar

from state.keys import TIME_BYTES, unpack_time
from streams.spark.serdes.window_keys import Layout
from streams.spark.source.fetching import RawBatch
from streams.spark.source.options import Serdes, Windowed

T = TypeVar("T")

_ROWS = 10_000


class Last(NamedTuple):
    """Represents a record without its key."""

    value: bytes | None
    offset: int
    timestamp_ms: int


class Rows(NamedTuple):
    """Represents rows of a store as a batch.

    `validity`, of versions only: from when and until when (None: until now) each is valid, in ms.
    """

    batch: RawBatch
    valid: tuple[list[int], list[int | None]] | None = None


@dataclass(slots=True)
class Table:
    """Keeps the last record of each key of a changelog partition."""

    topic: str
    partition: int
    last: dict[bytes, Last]
    records: int = 0
    time_ms: int = -1
    """The largest timestamp."""

    def add(self, batch: RawBatch) -> None:
        """Add a batch: each record replaces the one of its key; those without a key are skipped."""
        self.records += len(batch)
        self.time_ms = max(self.time_ms, *batch.timestamps)
        records = map(Last._make, zip(batch.values, batch.offsets, batch.timestamps, strict=True))
        if None in batch.keys:
            pairs = zip(batch.keys, records, strict=True)
            self.last.update((key, record) for key, record in pairs if key is not None)
        else:
            self.last.update(zip(batch.keys, records, strict=True))  # type: ignore[arg-type]

    def rows(self, serdes: Serdes, retention_ms: int | None) -> Iterator[Rows]:
        """Yield in batches the rows that are neither deleted nor expired.

        A row has expired that is `retention_ms` or more behind the largest time, which for windowed
        stores is that of a window and otherwise of a record.
        """
        is_live = _expiry(self, serdes, retention_ms)
        alive = (
            (key, last)
            for key, last in self.last.items()
            if last.value is not None and is_live(key, last)
        )
        for some in _some(alive):
            yield Rows(self._batch(some))

    def _batch(self, rows: Iterable[tuple[bytes, Last]]) -> RawBatch:
        keys, records = zip(*rows, strict=True)
        values, offsets, timestamps = zip(*records, strict=True)
        return RawBatch(
            self.topic,
            self.partition,
            list(keys),
            list(values),
            list(offsets),
            list(timestamps),
            None,
        )


def _expiry(
    table: Table, serdes: Serdes, retention_ms: int | None
) -> Callable[[bytes, Last], bool]:
    """Create the function that says whether a key's last record has not expired."""
    if retention_ms is None or not table.last:
        return lambda key, last: True
    if serdes.windowed is None:
        live_after_ms = table.time_ms - retention_ms
        return lambda key, last: last.timestamp_ms > live_after_ms
    layout = Layout.SESSION if serdes.windowed is Windowed.SESSION else Layout.SEQUENCED
    begin = -layout.size  # the key's suffix begins with a window's start or a session's end
    end = begin + TIME_BYTES
    if any(len(key) < layout.size for key in table.last):
        return lambda key, last: True  # decoding these keys will say that they have no windows
    (time_ms,) = unpack_time(max(key[begin : end or None] for key in table.last))
    live_after_ms = time_ms - retention_ms
    return lambda key, last: unpack_time(key[begin : end or None])[0] > live_after_ms


@dataclass(slots=True)
class Versions:
    """Keeps the versions of each key of a changelog partition by their timestamps.

    A second version of the same time replaces the first. One that is older than `retention_ms`
    behind the largest time is not kept.
    """

    topic: str
    partition: int
    retention_ms: int | None
    last: dict[bytes, dict[int, Last]]
    records: int = 0
    time_ms: int = -1

    def add(self, batch: RawBatch) -> None:
        """Add a batch of records as versions; those that are too old or have no key are skipped."""
        self.records += len(batch)
        for key, value, offset, timestamp_ms in zip(
            batch.keys, batch.values, batch.offsets, batch.timestamps, strict=True
        ):
            if key is None:
                continue
            if self.retention_ms is not None and timestamp_ms < self.time_ms - self.retention_ms:
                continue
            self.time_ms = max(self.time_ms, timestamp_ms)
            self.last.setdefault(key, {})[timestamp_ms] = Last(value, offset, timestamp_ms)

    def rows(self, *, every: bool) -> Iterator[Rows]:
        """Yield in batches every version of each key, or only the latest.

        A deletion ends the version before it. The latest is the one with the largest time, and not
        the one with the largest offset.
        """
        for some in _some(self._rows(every)):
            keys, records, ends = zip(*some, strict=True)
            values, offsets, times = zip(*records, strict=True)
            batch = RawBatch(
                self.topic,
                self.partition,
                list(keys),
                list(values),
                list(offsets),
                list(times),
                None,
            )
            yield Rows(batch, (list(times), list(ends)) if every else None)

    def _rows(self, every: bool) -> Iterator[tuple[bytes, Last, int | None]]:
        """Yield key, record and end of validity of each version that is asked for."""
        for key, versions in self.last.items():
            times = sorted(versions)
            ends: list[int | None] = [*times[1:], None]
            for time_ms, end_ms in zip(times, ends, strict=True):
                version = versions[time_ms]
                if version.value is not None and (every or end_ms is None):
                    yield key, version, end_ms


def _some(each: Iterable[T]) -> Iterator[list[T]]:
    """Split items into lists of at most one batch's size."""
    left = iter(each)
    while some := list(islice(left, _ROWS)):
        yield some
