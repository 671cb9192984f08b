"""Test the proof that a reader takes uncommitted records, by the times of its commits.

Records and batches are those that the embedded broker writes, in Kafka's formats.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Sequence

import pytest

from coordinator.log.batch_encoding import encode_batch_of, encode_marker, encode_records
from coordinator.offsets.records import encode_offset_record
from coordinator.offsets.state import NEVER, OffsetCommitted
from coordinator.shard.placement import partition_for
from streams.common.topic_partitions import Partition
from streams.doctor.commit_times import (
    OffsetCommit,
    choose_offsets_partition,
    decode_offset_commit,
)
from streams.doctor.early_commits import decode_commits, select_early_commits
from streams.doctor.transaction_ends import NoTransactionEnd, find_transaction_end

OUT = Partition("out", 2)
NOW_MS = 1_795_956_252_682


@pytest.mark.parametrize("expires_at_ms", [NEVER, NOW_MS + 1])
@pytest.mark.parametrize("metadata", ["", "x" * 300])
def test_commits_are_decoded_as_brokers_write_them(expires_at_ms: int, metadata: str) -> None:
    record = OffsetCommitted("sink", "out", 2, 41, 7, metadata, NOW_MS, None, expires_at_ms)
    key, value = encode_offset_record(record)
    assert decode_offset_commit(key, value) == OffsetCommit("sink", OUT, 41, NOW_MS)


def test_version_3_is_decoded_too() -> None:
    record = OffsetCommitted("sink", "out", 2, 41, 7, "", NOW_MS)
    key, _ = encode_offset_record(record)
    value = struct.pack(">hqihq", 3, 41, 7, 0, NOW_MS)
    assert decode_offset_commit(key, value) == OffsetCommit("sink", OUT, 41, NOW_MS)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\0\1", None),
        (b"\0\2\0\4sink", b"\0\3"),
        (b"\0\1\0\4si", b"\0\3"),
        (b"\0\1\0\1a\0\1b\0\0\0\0", b"\0\x63"),
    ],
)
def test_other_records_are_no_commits(key: bytes | None, value: bytes | None) -> None:
    assert decode_offset_commit(key, value) is None


@pytest.mark.parametrize("group", ["sink", "a-longer-name.of.a_group", "größer", "𝕏", ""])
def test_the_partition_of_a_group_is_kafkas(group: str) -> None:
    for count in (1, 4, 50):
        assert choose_offsets_partition(group, count) == partition_for(group, count)


def place_batches(*batches: bytes, first: int = 0) -> bytes:
    """Return batches one behind the other, from a base offset on."""
    placed = b""
    for batch in batches:
        (span,) = struct.unpack_from(">i", batch, 23)
        placed += struct.pack(">q", first) + batch[8:]
        first += span + 1
    return placed


def write_of(producer: int, records: int = 3) -> bytes:
    data = encode_records([(b"k", b"v")] * records)
    transactional = producer >= 0
    return encode_batch_of(
        data,
        records,
        timestamp_ms=0,
        producer_id=producer,
        producer_epoch=0,
        transactional=transactional,
    )


def end_of(producer: int, at_ms: int) -> bytes:
    return encode_marker(producer, 0, committed=True, coordinator_epoch=0, timestamp_ms=at_ms)


def test_a_transaction_ends_with_the_marker_of_its_own_producer() -> None:
    log = place_batches(write_of(1), write_of(2), end_of(2, 50), end_of(1, 90), first=10)
    assert [find_transaction_end(log, offset) for offset in (10, 12)] == [90, 90]


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (place_batches(write_of(-1)), NoTransactionEnd.WITHOUT_TRANSACTION),
        (place_batches(write_of(1)), NoTransactionEnd.OUT_OF_REACH),  # open, or cut off
        (place_batches(end_of(1, 90)), NoTransactionEnd.MARKER),
        (place_batches(write_of(1), first=5), NoTransactionEnd.OUT_OF_REACH),  # compacted
        (place_batches(write_of(1), end_of(1, 9))[:-1], NoTransactionEnd.OUT_OF_REACH),
        (b"", NoTransactionEnd.OUT_OF_REACH),
    ],
)
def test_what_is_no_record_of_a_transaction_that_ended_says_why(
    log: bytes, reason: NoTransactionEnd
) -> None:
    assert find_transaction_end(log, 0) is reason


def test_why_no_commit_can_be_compared_is_told_with_the_number() -> None:
    behind = select_early_commits(commits_at((4, 60), (8, 150)), fetch_from_log, 0)
    assert behind.describe_comparison() == (
        "none of the newest 2 commits of theirs can be compared, as 2 stand behind the end of a "
        "transaction: transactions are over sooner than such a reader commits, so that to look "
        "again hardly helps"
    )
    some = select_early_commits(commits_at((2, 100), (4, 160)), fetch_from_log, 0)
    assert some.describe_comparison().startswith("1 commit of theirs")
    none = select_early_commits([], fetch_from_log, 0)
    assert "no commit of theirs is among" in none.describe_comparison()


def commits_at(*places: tuple[int, int]) -> list[OffsetCommit]:
    return [OffsetCommit("sink", OUT, offset, at_ms) for offset, at_ms in reversed(places)]


LOG = [write_of(1), end_of(1, 100), write_of(1), end_of(1, 200)]
LOG_STARTS = [0, 3, 4, 7]


def fetch_from_log(partition: Partition, offset: int) -> bytes:
    assert partition == OUT
    at = bisect_right(LOG_STARTS, offset) - 1
    return place_batches(*LOG[at:], first=LOG_STARTS[at])


@pytest.mark.parametrize(
    ("places", "margin_ms", "proven", "compared"),
    [
        ([(2, 60), (6, 150)], 0, True, 2),
        ([(2, 100), (6, 200)], 0, False, 2),  # a reader of committed records at its best
        ([(4, 60), (8, 150)], 0, False, 0),  # behind the markers
        ([(2, 60)], 0, False, 1),  # a tool may have done that
        ([(2, 60), (6, 150)], 50, False, 2),  # clocks of two brokers
        ([(2, 60), (2, 300), (6, 150), (6, 400)], 0, True, 2),  # the same offset again, later
        ([(0, 60)], 0, False, 0),
    ],
)
def test_two_commits_before_the_ends_of_their_transactions_are_a_proof(
    places: Sequence[tuple[int, int]], margin_ms: int, proven: bool, compared: int
) -> None:
    ordered = sorted(places, key=lambda each: each[1])
    found = select_early_commits(commits_at(*ordered), fetch_from_log, margin_ms)
    assert found.proven == ({"sink": OUT} if proven else {})
    assert found.compared_count == compared


def test_commits_of_a_topic_that_was_deleted_are_left_out() -> None:
    def commit_of(group: str, offset: int) -> tuple[bytes, bytes | None]:
        return encode_offset_record(OffsetCommitted(group, "out", 2, offset, 7, "", NOW_MS))

    (key, _), other = commit_of("a", 5), commit_of("b", 7)
    records = [commit_of("a", 5), other, (key, None), commit_of("a", 2), (None, None), (b"x", b"y")]
    assert [(each.group, each.offset) for each in decode_commits(records)] == [("b", 7), ("a", 2)]
