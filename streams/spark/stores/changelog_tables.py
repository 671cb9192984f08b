"""Rebuild a store from its changelog: the last value of each key, or each of its versions.

Pure: batches of records in the order of their offsets go in, and batches of rows come out. All keys
of one partition are in memory, each with its last record; deletions too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar

from state.keys import TIME_BYTES, KeyBytes, unpack_time
from streams.spark.serdes.window_keys import choose_key_layout
from streams.spark.source.fetching import RawBatch
from streams.spark.source.options import SerdeOptions

ValidUntilMs: TypeAlias = int

Row = TypeVar("Row", bound=tuple[Any, ...])

_BATCH_ROWS_MAX = 10_000
_BATCH_BYTES_MAX = 64 << 20
"""An Arrow array of bytes holds 2 GB, and the JVM has each batch twice."""


class KeylessRecord(NamedTuple):
    """Represents a record without its key."""

    value: bytes | None
    offset: int
    timestamp_ms: int


class StoreRows(NamedTuple):
    """Represents rows of a store as a batch.

    `validity`, of versions only: from when and until when (None: until now) each is valid, in ms.
    """

    batch: RawBatch
    validity: tuple[list[int], list[int | None]] | None = None


@dataclass(slots=True)
class LatestRecords:
    """Keeps the last record of each key of a changelog partition."""

    topic: str
    partition: int
    latest_by_key: dict[bytes, KeylessRecord] = field(default_factory=dict)
    record_count: int = 0
    stream_time_ms: int = -1
    """The largest timestamp."""

    def add_batch(self, batch: RawBatch) -> None:
        """Add a batch: each record replaces its key's previous one; keyless records are skipped."""
        self.record_count += len(batch)
        self.stream_time_ms = max(self.stream_time_ms, *batch.timestamps_ms)
        records = map(
            KeylessRecord._make, zip(batch.values, batch.offsets, batch.timestamps_ms, strict=True)
        )
        if None in batch.keys:
            pairs = zip(batch.keys, records, strict=True)
            self.latest_by_key.update((key, record) for key, record in pairs if key is not None)
        else:
            self.latest_by_key.update(zip(batch.keys, records, strict=True))  # type: ignore[arg-type]

    def iterate_live_rows(
        self, serdes: SerdeOptions, retention_ms: int | None
    ) -> Iterator[StoreRows]:
        """Yield in batches the last rows of keys that are neither deleted nor expired.

        A row has expired that is `retention_ms` or more behind the largest time, which for windowed
        stores is that of a window and otherwise of a record.
        """
        is_live = _create_live_row_filter(self, serdes, retention_ms)
        alive = (
            (key, last)
            for key, last in self.latest_by_key.items()
            if last.value is not None and is_live(key, last)
        )
        for some in _split_into_batches(alive):
            yield StoreRows(_to_raw_batch(self.topic, self.partition, *zip(*some, strict=True)))


def _to_raw_batch(
    topic: str, partition: int, keys: Sequence[bytes], records: Sequence[KeylessRecord]
) -> RawBatch:
    values, offsets, timestamps = map(list, zip(*records, strict=True))
    return RawBatch(topic, partition, list(keys), values, offsets, timestamps, None)


def _create_live_row_filter(
    table: LatestRecords, serdes: SerdeOptions, retention_ms: int | None
) -> Callable[[bytes, KeylessRecord], bool]:
    """Create the function that says whether a key's last record has not expired yet."""
    if retention_ms is None or not table.latest_by_key:
        return lambda key, last: True
    if serdes.windowed is None:
        live_after_ms = table.stream_time_ms - retention_ms
        return lambda key, last: last.timestamp_ms > live_after_ms
    layout = choose_key_layout(serdes.windowed, is_of_store=True)
    begin = -layout.size  # the key's suffix begins with a window's start or a session's end
    end = begin + TIME_BYTES
    if any(len(key) < layout.size for key in table.latest_by_key):
        return lambda key, last: True  # decoding these keys will say that they have no windows
    (time_ms,) = unpack_time(max(key[begin : end or None] for key in table.latest_by_key))
    live_after_ms = time_ms - retention_ms
    return lambda key, last: unpack_time(key[begin : end or None])[0] > live_after_ms


@dataclass(slots=True)
class RecordVersions:
    """Keeps every version of each key of a changelog partition, by timestamp.

    A second version of the same time replaces the first. One that is older than `retention_ms`
    behind the largest time is not kept.
    """

    topic: str
    partition: int
    retention_ms: int | None
    latest_by_key: dict[bytes, dict[int, KeylessRecord]] = field(default_factory=dict)
    record_count: int = 0
    stream_time_ms: int = -1

    def add_batch(self, batch: RawBatch) -> None:
        """Add a batch of records as versions, skipping records that are too old or have no key."""
        self.record_count += len(batch)
        for key, value, offset, timestamp_ms in zip(
            batch.keys, batch.values, batch.offsets, batch.timestamps_ms, strict=True
        ):
            if key is None:
                continue
            if (
                self.retention_ms is not None
                and timestamp_ms < self.stream_time_ms - self.retention_ms
            ):
                continue
            self.stream_time_ms = max(self.stream_time_ms, timestamp_ms)
            self.latest_by_key.setdefault(key, {})[timestamp_ms] = KeylessRecord(
                value, offset, timestamp_ms
            )

    def iterate_versions(self, *, all_versions: bool) -> Iterator[StoreRows]:
        """Yield in batches every version of each key, or only the latest.

        A deletion ends the version before it. The latest is the one with the largest time, and not
        the one with the largest offset.
        """
        for some in _split_into_batches(self._select_versions(all_versions)):
            keys, records, ends = zip(*some, strict=True)
            batch = _to_raw_batch(self.topic, self.partition, keys, records)
            yield StoreRows(batch, (batch.timestamps_ms, list(ends)) if all_versions else None)

    def _select_versions(
        self, all_versions: bool
    ) -> Iterator[tuple[KeyBytes, KeylessRecord, ValidUntilMs | None]]:
        """Yield key, record and end of validity of each version, or only of each key's latest."""
        for key, versions in self.latest_by_key.items():
            times = sorted(versions)
            ends: list[int | None] = [*times[1:], None]
            for time_ms, end_ms in zip(times, ends, strict=True):
                version = versions[time_ms]
                if version.value is not None and (all_versions or end_ms is None):
                    yield key, version, end_ms


def _split_into_batches(items: Iterable[Row]) -> Iterator[list[Row]]:
    """Split rows, whose first parts are key and record, into lists of a batch's size or less.

    A row that is larger than a batch of bytes is one by itself.
    """
    batch: list[Row] = []
    size = 0
    for item in items:
        row_size = len(item[0]) + len(item[1].value or b"")
        if batch and (len(batch) == _BATCH_ROWS_MAX or size + row_size > _BATCH_BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += row_size
    if batch:
        yield batch
