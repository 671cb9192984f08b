"""Test whether compaction removed records that a cut needs, with a cleaner by Kafka's rules."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from streams.errors import UserError
from streams.spark.source.fetching import RawBatch
from streams.spark.source.ranges import OffsetRange
from streams.spark.stores.changelog_tables import LatestRecords
from streams.spark.stores.compaction import (
    ChangelogRead,
    CompactionPolicy,
    check_rows_survived_compaction,
)
from tests.sampling import draw_seed

NOW_MS = 1_800_000_000_000
LAG_MS = 1_000_000
KEPT_MS = 500_000
NEVER = 2**62
TOPIC = "app-counts-changelog"


class Record(NamedTuple):
    """Represents a record, or a transaction's marker, which has no key."""

    offset: int
    key: bytes | None
    value: bytes | None = b"v"
    timestamp_ms: int = NOW_MS


def batches(records: list[Record], size: int = 2) -> Iterator[RawBatch]:
    for at in range(0, len(records), size):
        some = records[at : at + size]
        yield RawBatch(
            TOPIC,
            0,
            [each.key for each in some],
            [each.value for each in some],
            [each.offset for each in some],
            [each.timestamp_ms for each in some],
            None,
        )


class Left(NamedTuple):
    """Stands in for the headers of a partition's batches: removed offsets and the last segment."""

    removed_count: int
    last_segment: int

    def count_removed_offsets(self) -> int:
        return self.removed_count

    def find_last_segment_offset(self) -> int:
        return self.last_segment


def read(
    records: list[Record],
    position: int,
    *,
    end: int | None = None,
    compaction: CompactionPolicy = CompactionPolicy(LAG_MS, KEPT_MS),  # noqa: B008  frozen
    age_ms: int = 0,
    last_segment: int = NEVER,
) -> dict[bytes, bytes]:
    """Return the table as of the position, or raise UserError if the log can't tell it.

    The last segment, which is never cleaned, begins at `last_segment`.
    """
    there = [each for each in records if each.key is not None]
    table = LatestRecords(TOPIC, 0)
    for batch in batches([each for each in there if each.offset < position]):
        table.add_batch(batch)
    below = OffsetRange(TOPIC, 0, 0, position)
    end = max([position, *(each.offset + 1 for each in records)]) if end is None else end
    reading = ChangelogRead(
        "counts", below, end, table.record_count, table.latest_by_key.keys(), NOW_MS - age_ms
    )
    left = Left(
        position - sum(each.offset < position for each in records), max(last_segment, position)
    )
    above = batches([each for each in there if each.offset >= position])
    check_rows_survived_compaction(reading, compaction, left, above, NOW_MS)
    return {key: last.value for key, last in table.latest_by_key.items() if last.value is not None}


OLD = NOW_MS - 10 * LAG_MS


def test_a_key_that_is_there_only_above_the_cut_while_offsets_are_missing_fails() -> None:
    with pytest.raises(UserError) as caught:
        read([Record(0, b"a"), Record(5, b"k", timestamp_ms=OLD)], 3)
    said = str(caught.value)
    for part in (
        "store 'counts'",
        "app-counts-changelog[0]",
        "compacted since",
        "offsets 0 to 2 2 are gone",
        "6b (hex)",
        "offset 5",
        "cut_retention_ms",
    ):
        assert part in said


def test_where_no_offset_is_missing_a_new_key_is_new() -> None:
    assert read([Record(0, b"a"), Record(1, b"k", timestamp_ms=OLD)], 1) == {b"a": b"v"}


def test_markers_are_no_holes() -> None:
    records = [Record(0, b"a"), Record(1, None), Record(3, b"k", timestamp_ms=OLD)]
    assert read(records, 2) == {b"a": b"v"}
    assert read(records, 2, age_ms=2 * KEPT_MS) == {b"a": b"v"}
    with pytest.raises(UserError, match="6b"):
        read(records, 3)


def test_of_the_last_segment_nothing_has_been_cleaned() -> None:
    records = [Record(0, b"a"), Record(5, b"b", timestamp_ms=OLD), Record(7, b"k", None, OLD)]
    assert read(records, 3, last_segment=3, age_ms=2 * KEPT_MS) == {b"a": b"v"}
    assert read(records, 3, last_segment=2) == {b"a": b"v"}
    with pytest.raises(UserError, match=r"62 .hex. is there from offset 5"):
        read(records, 3, last_segment=6)
    # A key that occurred below the position raises no doubt.
    records[1] = Record(5, b"a", timestamp_ms=OLD)
    assert read(records, 3, last_segment=6) == {b"a": b"v"}
    with pytest.raises(UserError, match=r"6b .hex. is there from offset 7"):
        read(records, 3, last_segment=8)
    with pytest.raises(UserError, match="500 s old"):
        read(records, 3, last_segment=6, age_ms=KEPT_MS)


def test_a_key_of_which_a_record_is_left_below_has_its_row() -> None:
    assert read([Record(2, b"a"), Record(5, b"a", timestamp_ms=OLD)], 3) == {b"a": b"v"}


def test_what_is_fresh_has_not_been_cleaned() -> None:
    assert read([Record(0, b"a"), Record(4, b"k")], 3) == {b"a": b"v"}  # a marker at 3
    assert read([Record(0, b"a"), Record(3, b"k")], 3) == {b"a": b"v"}
    # The gap is not next to the cut, but each new key's record is recent.
    assert read([Record(0, b"a"), Record(9, b"a", timestamp_ms=OLD), Record(10, b"k")], 3)


def test_without_a_lag_nothing_is_fresh_by_its_time() -> None:
    records = [Record(0, b"a"), Record(4, b"k", timestamp_ms=NOW_MS + LAG_MS)]
    with pytest.raises(UserError, match="compacted since"):
        read(records, 3, compaction=CompactionPolicy(0, KEPT_MS))


def test_behind_what_is_fresh_nothing_needs_to_be_looked_at() -> None:
    records = [Record(0, b"a"), Record(4, b"a"), Record(5, b"k", timestamp_ms=OLD)]
    assert read(records, 3) == {b"a": b"v"}


def test_a_cut_that_is_older_than_deletions_are_kept_is_refused_if_anything_may_have_gone() -> None:
    old_cut = {"age_ms": KEPT_MS, "compaction": CompactionPolicy(0, KEPT_MS)}
    with pytest.raises(UserError, match=r"compacted since.*500 s old"):
        read([Record(0, b"a"), Record(9, b"a")], 3, **old_cut)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="compacted since"):
        read([Record(0, b"a")], 3, end=9, **old_cut)  # type: ignore[arg-type]
    assert read([Record(0, b"a")], 3, end=4, **old_cut)  # type: ignore[arg-type]
    assert read([Record(0, b"a"), Record(9, b"a")], 1, **old_cut)  # type: ignore[arg-type]


def test_a_fresh_record_keeps_an_old_cut_readable() -> None:
    assert read([Record(0, b"a"), Record(4, b"k")], 3, age_ms=KEPT_MS) == {b"a": b"v"}


def test_a_topic_that_is_not_compacted_loses_nothing() -> None:
    records = [Record(0, b"a"), Record(5, b"k", timestamp_ms=OLD)]
    assert read(records, 3, compaction=CompactionPolicy(0, None)) == {b"a": b"v"}


def test_settings_of_a_topic() -> None:
    assert (
        CompactionPolicy.from_topic_settings({"cleanup.policy": "delete"}).tombstone_retention_ms
        is None
    )
    given = {
        "cleanup.policy": "compact,delete",
        "min.compaction.lag.ms": "7",
        "delete.retention.ms": "9",
    }
    assert CompactionPolicy.from_topic_settings(given) == CompactionPolicy(7, 9)


class Log:
    """Represents a partition in segments, with a cleaner that follows Kafka's rules."""

    def __init__(self, of: random.Random) -> None:
        self._of = of
        self.records: list[Record] = []
        self.written: list[Record] = []
        self.base: list[int] = [0]
        self.is_full = False
        self.end = 0
        self.now_ms = 0
        self.horizons: dict[int, int] = {}

    def transaction(self) -> None:
        for _ in range(self._of.randrange(1, 4)):
            value = None if self._of.random() < 0.3 else b"%d" % self.end
            late_ms = self._of.choice([0, 0, 0, 50, 5 * LAG_MS, -5 * LAG_MS])
            self._append(
                Record(self.end, self._of.choice([b"a", b"b", b"c"]), value, self.now_ms - late_ms)
            )
        if self._of.random() < 0.9:
            self._append(Record(self.end, None, None, self.now_ms))
        if self._of.random() < 0.4:
            self.is_full = True

    def _append(self, record: Record) -> None:
        if self.is_full:  # another segment begins with its first record
            self.base.append(self.end)
            self.is_full = False
        self.records.append(record)
        self.written.append(record)
        self.end += 1

    def clean(self, lag_ms: int) -> None:
        """Clean some of the cleanable segments, from the first on; the pass may be cut short."""
        end = 0
        for first, after in zip(self.base, self.base[1:], strict=False):
            held = [each for each in self.records if first <= each.offset < after]
            if any(self.now_ms - each.timestamp_ms < lag_ms for each in held):
                break
            end = after
            if self._of.random() < 0.2:
                break
        last = {each.key: each.offset for each in self.records if each.offset < end}
        upto = self._of.choice([end, end, *(each for each in self.base if each <= end)])
        self.records = [
            each for each in self.records if each.offset >= upto or self._stays(each, last)
        ]

    def _stays(self, record: Record, last: dict[bytes | None, int]) -> bool:
        if record.key is not None and last[record.key] > record.offset:
            return False
        if record.value is not None:
            return True
        horizon_ms = self.horizons.setdefault(record.offset, self.now_ms + KEPT_MS)
        return self.now_ms < horizon_ms


@pytest.mark.parametrize("lag_ms", [0, LAG_MS])
def test_a_table_is_what_it_was_at_the_cut_or_it_is_refused(lag_ms: int) -> None:
    seed = draw_seed("tables of a compacted changelog")
    right = refused = 0
    for number in range(800):
        of = random.Random(f"{seed} {number}")
        log = Log(of)
        wanted: dict[bytes, bytes] | None = None
        position = taken_ms = 0
        cut_at = of.randrange(1, 8)
        for step in range(of.randrange(cut_at, 16) + 1):
            log.transaction()
            if step == cut_at:
                taken_ms = log.now_ms
                position = log.end - (log.written[-1].key is None)
                last = {r.key: r.value for r in log.written}
                wanted = {k: v for k, v in last.items() if k is not None and v is not None}
            log.now_ms += of.choice([1, 1000, KEPT_MS // 2, 2 * KEPT_MS])
            if of.random() < 0.5:
                log.clean(lag_ms)
        if wanted is None:
            continue
        shift = NOW_MS - log.now_ms
        records = [r._replace(timestamp_ms=r.timestamp_ms + shift) for r in log.records]
        compaction = CompactionPolicy(lag_ms, KEPT_MS)
        age_ms = log.now_ms - taken_ms
        try:
            found = read(
                records,
                position,
                end=log.end,
                compaction=compaction,
                age_ms=age_ms,
                last_segment=log.base[-1],
            )
        except UserError:
            refused += 1
            continue
        right += 1
        assert found == wanted, f"{seed=} {number=}"
    assert right > 50, f"{seed=}"
    assert refused > 20, f"{seed=}"
