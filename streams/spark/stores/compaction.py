"""Decide whether compaction may have removed a record that a read as of a cut needs.

What is read is a changelog from its start up to the cut's position P, and the last record of each
key below P is the row. Call it L. The cleaner removes a record only if a later one of its key lies
in what it cleans, and it cleans from the log's start on, the older segments first. So where a
record of a key is left below P it is L: what took L would have taken it too. A key of which none is
left below P is the question. It never was there; or L was a tombstone that has had its time, and
there is no row; or L went because of a record of its key at P or above.

It can't be the last in any of these cases.

    none removed     each offset below P, from the log's start on, is still there: as a record, or
                     as what only the log's batches show (`raw_batches`), a marker or a record of an
                     aborted transaction
    never cleaned    all from P on lies in the log's last segment, of which nothing is ever cleaned
    nothing newer    there is nothing from P on but one marker; or the first record there is fresh,
                     and it is at P, or behind a marker, or the cut is young
    new keys fresh   each key from P on of which none is left below has a fresh record first, and
                     the cut is young

A record is fresh that is younger than the topic's `min.compaction.lag.ms`, or lies in the last
segment: its segment has never been cleaned, nor has any behind it. A cut is young that is younger
than `delete.retention.ms`: a deletion that was written since is still there. If L went because of
records of its key, the last of those that the cleaner has seen is still there and isn't fresh,
unless it was a deletion that has had its time.

In every other case the read fails: a marker that has had its time can't be told from a record that
is gone, and a new key may be new.

Age is what a record's timestamp says, as to the cleaner, which goes by timestamps too (the largest
of a segment). A margin of a tenth is for clocks that differ.
Source: LogCleaner, Cleaner.buildOffsetMap, cleanInto and shouldRetainRecord of Kafka 4;
LogCleanerManager.cleanableOffsets; `coordinator/log/cleaner`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from streams.errors import UserError
from streams.runtime.changelogs.changelog import are_tombstones_expired, tombstone_retention_ms
from streams.spark.source.fetching import RawBatch
from streams.spark.source.ranges import OffsetRange

_CLOCK_MARGIN = 0.1
_KEY_BYTES_SHOWN_MAX = 40


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """Represents the topic settings that say which records the log cleaner may remove.

    `min_lag_ms`: the age below which no record is compacted (`min.compaction.lag.ms`).
    `tombstone_retention_ms`: for how long a deletion is kept (`delete.retention.ms`); None where
    the topic is not compacted.
    """

    min_lag_ms: int
    tombstone_retention_ms: int | None

    @classmethod
    def from_topic_settings(cls, settings: Mapping[str, str]) -> CompactionPolicy:
        """Create the policy of a topic from its settings."""
        return cls(int(settings.get("min.compaction.lag.ms", 0)), tombstone_retention_ms(settings))

    def is_never_cleaned(self, timestamp_ms: int, now_ms: int) -> bool:
        """Return whether a record is too young for the log cleaner to have seen it or later ones.

        Always False without a lag: then the cleaner asks for no age, and a record with a timestamp
        in the future may be gone as well.
        """
        return self.min_lag_ms > 0 and now_ms - timestamp_ms < self.min_lag_ms * (1 - _CLOCK_MARGIN)


@dataclass(frozen=True, slots=True)
class ChangelogRead:
    """Represents the result of reading a changelog partition up to the cut.

    `store` is a name for messages; `last_stable_offset`: the partition's, fetched after the read;
    `record_count` and `keys_found`: how many records there were, and their keys.
    """

    store: str
    offset_range: OffsetRange
    last_stable_offset: int
    record_count: int
    keys_found: Container[bytes | None]
    cut_taken_ms: int


class LogInspector(Protocol):
    """Determines from a partition's record batches, which it must read, what compaction removed."""

    def count_removed_offsets(self) -> int:
        """Count the offsets below the cut's position that hold nothing any more."""

    def find_last_segment_offset(self) -> int:
        """Return the offset from which on the log has all records, in its last segment.

        It is the position of the cut or above.
        """


def check_rows_survived_compaction(
    changelog_read: ChangelogRead,
    policy: CompactionPolicy,
    inspector: LogInspector,
    newer_records: Iterator[RawBatch],
    now_ms: int,
) -> None:
    """Raise UserError if compaction may have removed a row that the store has at the cut.

    `newer_records`: the records from the position up to the last stable offset, of which only as
    many are taken as answer the question.
    """
    position = changelog_read.offset_range.until
    if (
        policy.tombstone_retention_ms is None
        or changelog_read.record_count == position - changelog_read.offset_range.first
    ):
        return
    unbroken_from = inspector.find_last_segment_offset()
    if unbroken_from <= position:
        return
    removed = inspector.count_removed_offsets()
    if not removed:
        return
    doubt = _CompactionDoubt(changelog_read, policy, removed, unbroken_from, now_ms)
    age_ms = now_ms - changelog_read.cut_taken_ms
    has_deletions = not are_tombstones_expired(age_ms, policy.tombstone_retention_ms, _CLOCK_MARGIN)
    first = next(newer_records, None)
    if first is None:
        if changelog_read.last_stable_offset - position <= 1:
            return
    else:
        is_fresh = doubt.is_never_cleaned(first.offsets[0], first.timestamps_ms[0])
        if is_fresh and (has_deletions or doubt.excludes_earlier_deletion(first)):
            return
        doubt.check_new_keys(chain([first], newer_records))
    if not has_deletions:
        raise doubt.create_compaction_error(
            f"the cut is {age_ms // 1000} s old, and a deletion that was written since is kept for "
            f"{policy.tombstone_retention_ms // 1000} s (delete.retention.ms): what it took "
            "can't be told any more",
        )


@dataclass(frozen=True, slots=True)
class _CompactionDoubt:
    """Judges a changelog of which compaction has removed some records below the cut's position.

    Each of them may have been the last record of its key.
    """

    changelog_read: ChangelogRead
    policy: CompactionPolicy
    removed_count: int
    last_segment_offset: int
    now_ms: int

    def is_never_cleaned(self, offset: int, timestamp_ms: int) -> bool:
        """Return whether the log cleaner has never seen a record, by its segment or its age."""
        return offset >= self.last_segment_offset or self.policy.is_never_cleaned(
            timestamp_ms, self.now_ms
        )

    def excludes_earlier_deletion(self, first_batch: RawBatch) -> bool:
        """Return whether no deletion can be missing between the cut and the first newer record."""
        behind = first_batch.offsets[0] - self.changelog_read.offset_range.until
        is_young = self.policy.is_never_cleaned(self.changelog_read.cut_taken_ms, self.now_ms)
        return behind == 0 or (behind == 1 and is_young)

    def check_new_keys(self, newer_records: Iterable[RawBatch]) -> None:
        """Raise UserError if a key with newer records only may have lost its record in the cut.

        Such a key must have a first record that the cleaner has never looked at.
        """
        seen: set[bytes | None] = set()
        for batch in newer_records:
            for key, offset, timestamp_ms in zip(
                batch.keys, batch.offsets, batch.timestamps_ms, strict=True
            ):
                if key is None or key in self.changelog_read.keys_found or key in seen:
                    continue
                seen.add(key)
                if not self.is_never_cleaned(offset, timestamp_ms):
                    raise self.create_compaction_error(
                        f"the key {key[:_KEY_BYTES_SHOWN_MAX].hex(' ')} (hex) is there from offset "
                        f"{offset} on only: what it had at the cut may be gone",
                    )

    def create_compaction_error(self, reason: str) -> UserError:
        """Create the error that says why the store can't be read as of the cut."""
        below = self.changelog_read.offset_range
        return UserError(
            f"store {self.changelog_read.store!r} can't be read as of the cut: "
            f"{below.topic}[{below.partition}] was perhaps compacted since. Of the offsets "
            f"{below.first} to {below.until - 1} {self.removed_count} are gone, and {reason}. "
            "Take a newer cut; have cuts readable for longer with the setting cut_retention_ms (of "
            "the changelog: min.compaction.lag.ms); or export what has to stay"
        )
