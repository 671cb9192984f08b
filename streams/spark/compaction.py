"""Whether compaction has taken something that a cut needs: never a guess.

What is read is a changelog from its start up to the cut's position P, and the last record of each
key below P is the row. Call it L. The cleaner removes a record only if a later one of its key lies
in what it cleans, and it cleans from the log's start on, the older segments first. So where a
record of a key is left below P it is L: what took L would have taken it too. A key of which none is
left below P is the question. It never was there; or L was a tombstone that has had its time, and
there is no row; or L went because of a record of its key at P or above.

It can't be the last in any of these cases.

    none missing     each offset below P, from the log's start on, is a record
    nothing newer    there is nothing from P on but one marker; or the first record there is fresh,
                     and it is at P, or behind a marker, or the cut is young
    new keys fresh   each key from P on of which none is left below has a fresh record first, and
                     the cut is young

A record is fresh that is younger than the topic's `min.compaction.lag.ms`: its segment has never
been cleaned, nor has any behind it. A cut is young that is younger than `delete.retention.ms`: a
deletion that was written since is still there. If L went because of records of its key, the last of
those that the cleaner has seen is still there and isn't fresh, unless it was a deletion that has
had its time.

In every other case the read fails: what is missing may be the markers of transactions, which can't
be told from records that are gone, and a new key may be new.

Age is what a record's timestamp says, as to the cleaner, which goes by timestamps too (the largest
of a segment). A margin of a tenth is for clocks that differ.
Source: LogCleaner, Cleaner.buildOffsetMap, cleanInto and shouldRetainRecord of Kafka 4;
LogCleanerManager.cleanableOffsets; `coordinator/log/cleaner`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from streams.errors import UserError
from streams.runtime.changelog import is_over, tombstones_ms
from streams.spark.fetching import RawBatch
from streams.spark.ranges import OffsetRange

_MARGIN = 0.1
_SHOWN_BYTES = 40


@dataclass(frozen=True, slots=True)
class Compaction:
    """How a topic is compacted. `lag_ms`: for how long no record is; `tombstones_ms`: how long one
    is kept that is a deletion; None where the topic is not compacted."""

    lag_ms: int
    tombstones_ms: int | None

    @classmethod
    def by(cls, settings: Mapping[str, str]) -> Compaction:
        """As the topic's settings say."""
        return cls(int(settings.get("min.compaction.lag.ms", 0)), tombstones_ms(settings))

    def is_fresh(self, timestamp_ms: int, now_ms: int) -> bool:
        """Whether the record, and all behind it, have never been looked at by the cleaner."""
        return now_ms - timestamp_ms < self.lag_ms * (1 - _MARGIN)


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read below the cut. `store` is a name for messages; `end`: the partition's last
    stable offset, asked for after the read; `records`: how many there were; `keys`: of them."""

    store: str
    below: OffsetRange
    end: int
    records: int
    keys: Container[bytes | None]
    cut_taken_ms: int


def check(reading: Reading, compaction: Compaction, above: Iterator[RawBatch], now_ms: int) -> None:
    """`above`: the records from the position up to `end`; as few are taken as answer the question.
    Raises UserError where a row may be missing."""
    position = reading.below.until
    if compaction.tombstones_ms is None or reading.records == position - reading.below.first:
        return
    age_ms = now_ms - reading.cut_taken_ms
    has_deletions = not is_over(age_ms, compaction.tombstones_ms, _MARGIN)
    first = next(above, None)
    if first is None:
        if reading.end - position <= 1:
            return
    else:
        is_fresh = compaction.is_fresh(first.timestamps[0], now_ms)
        if is_fresh and (has_deletions or _is_next(reading, first, compaction, now_ms)):
            return
        _check_keys(reading, compaction, chain([first], above), now_ms)
    if not has_deletions:
        raise _compacted(
            reading,
            f"the cut is {age_ms // 1000} s old, and a deletion that was written since is kept for "
            f"{(compaction.tombstones_ms or 0) // 1000} s (delete.retention.ms): what it took "
            "can't be told any more",
        )


def _is_next(reading: Reading, first: RawBatch, compaction: Compaction, now_ms: int) -> bool:
    """Whether there can have been no deletion before the first record from the position on."""
    behind = first.offsets[0] - reading.below.until
    return behind == 0 or (behind == 1 and compaction.is_fresh(reading.cut_taken_ms, now_ms))


def _check_keys(
    reading: Reading, compaction: Compaction, above: Iterable[RawBatch], now_ms: int
) -> None:
    """Each key that is only there above the cut has a fresh record first."""
    seen: set[bytes | None] = set()
    for batch in above:
        for key, offset, timestamp_ms in zip(
            batch.keys, batch.offsets, batch.timestamps, strict=True
        ):
            if key is None or key in reading.keys or key in seen:
                continue
            seen.add(key)
            if not compaction.is_fresh(timestamp_ms, now_ms):
                raise _compacted(
                    reading,
                    f"the key {key[:_SHOWN_BYTES].hex(' ')} (hex) is there from offset {offset} on "
                    "only: what it had at the cut may be gone",
                )


def _compacted(reading: Reading, why: str) -> UserError:
    below = reading.below
    missing = below.until - below.first - reading.records
    return UserError(
        f"store {reading.store!r} can't be read as of the cut: {below.topic}[{below.partition}] "
        f"was perhaps compacted since. Of the offsets {below.first} to {below.until - 1} {missing} "
        f"are no records any more (some may be markers of transactions), and {why}. Take a newer "
        "cut; have cuts readable for longer with the setting cut_retention_ms (of the changelog: "
        "min.compaction.lag.ms); or export what has to stay"
    )
