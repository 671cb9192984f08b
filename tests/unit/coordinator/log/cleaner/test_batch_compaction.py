"""Test which batches of a topic survive cleanings, without any file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.log.cleaner.offset_map import ENTRY_BYTES
from coordinator.log.compression import CompressionType
from tests.unit.coordinator.log.cleaner.topics import RETENTION_MS, Pair, Topic
from tests.unit.properties import examples

PID, OTHER = 7, 8


def pairs(topic: Topic) -> list[Pair]:
    return [pair for _, _, pair in topic.records(committed=False)]


def kinds(topic: Topic) -> list[str]:
    """Return a letter for each batch: records, marker or empty."""
    return [
        "empty" if not batch.record_count else "marker" if batch.is_control else "records"
        for batch in topic.batches
    ]


def test_the_last_record_of_each_key_stays_where_it_was() -> None:
    topic = Topic()
    topic.write((b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    topic.write((b"a", b"2"), (b"b", b"2"))
    topic.clean_all()
    assert [(offset, pair) for offset, _, pair in topic.records(committed=True)] == [
        (2, (b"c", b"1")),
        (3, (b"a", b"2")),
        (4, (b"b", b"2")),
    ]
    assert [(batch.base_offset, batch.last_offset) for batch in topic.batches] == [(0, 2), (3, 4)]


def test_a_record_without_a_key_goes() -> None:
    topic = Topic()
    topic.write((None, b"1"), (b"a", b"1"))
    topic.clean_all()
    assert pairs(topic) == [(b"a", b"1")]


def test_a_tombstone_stays_until_its_retention_after_it_was_first_cleaned() -> None:
    topic = Topic()
    topic.write((b"a", b"1"))
    topic.write((b"a", None), (b"b", b"1"))
    written_ms = topic.now_ms
    topic.now_ms += 5_000
    topic.clean_all()
    assert pairs(topic) == [(b"a", None), (b"b", b"1")]
    assert {time for _, time, _ in topic.records(committed=True)} == {written_ms}
    [batch] = topic.batches
    assert batch.delete_horizon_ms == topic.now_ms + RETENTION_MS
    assert batch.max_timestamp_ms == written_ms
    topic.now_ms += RETENTION_MS - 1
    topic.clean_all()
    assert pairs(topic) == [(b"a", None), (b"b", b"1")]
    topic.now_ms += 1
    topic.clean_all()
    assert pairs(topic) == [(b"b", b"1")]


@pytest.mark.parametrize("codec", list(CompressionType))
def test_a_batch_keeps_its_codec_its_sequences_and_its_checksum_is_right(
    codec: CompressionType,
) -> None:
    topic = Topic()
    topic.write(*((b"%d" % i, b"x" * 200) for i in range(2_000)), producer_id=PID, codec=codec)
    topic.write((b"5", None), producer_id=PID, codec=codec)
    topic.clean_all()
    first, last = topic.batches
    assert (first.attributes & 7, last.attributes & 7) == (codec, codec)
    assert (first.base_sequence, first.last_sequence, last.base_sequence) == (0, 1_999, 2_000)
    assert (first.record_count, last.record_count) == (1_999, 1)
    assert all(batch.is_intact() for batch in topic.batches)
    assert (b"5", b"x" * 200) not in pairs(topic)


def test_an_aborted_record_goes_and_replaces_nothing_and_its_marker_goes_later() -> None:
    topic = Topic()
    topic.write((b"a", b"good"))
    topic.write((b"a", b"aborted"), producer_id=PID, transactional=True)
    topic.end(PID, committed=False)
    topic.write((b"end", b""))
    topic.clean_all()
    # The aborted batch is its producer's last one: it stays as a header, and so does the marker.
    assert kinds(topic) == ["records", "empty", "marker", "records"]
    assert pairs(topic) == [(b"a", b"good"), (b"end", b"")]
    topic.producers.forget_idle_producers(topic.now_ms + 1, 1)
    topic.clean_all()
    assert kinds(topic) == ["records", "marker", "records"]
    assert topic.batches[1].delete_horizon_ms is None
    topic.clean_all()
    assert topic.batches[1].delete_horizon_ms == topic.now_ms + RETENTION_MS
    assert topic.aborted == []
    topic.now_ms += RETENTION_MS - 1
    topic.clean_all()
    assert kinds(topic) == ["records", "marker", "records"]
    topic.now_ms += 1
    topic.clean_all()
    assert kinds(topic) == ["records", "records"]


def test_a_commit_marker_stays_while_a_record_of_its_transaction_does() -> None:
    topic = Topic()
    topic.write((b"a", b"1"), producer_id=PID, transactional=True)
    topic.end(PID, committed=True)
    topic.producers.forget_idle_producers(topic.now_ms + 1, 1)
    for _ in range(4):
        topic.now_ms += RETENTION_MS
        topic.clean_all()
        assert kinds(topic) == ["records", "marker"]
    topic.write((b"a", b"2"))
    for expected in (["marker", "records"], ["marker", "records"], ["records"]):
        topic.now_ms += RETENTION_MS
        topic.clean_all()
        assert kinds(topic) == expected


def test_an_open_transaction_is_not_touched_nor_what_is_behind_it() -> None:
    topic = Topic()
    topic.write((b"a", b"1"))
    topic.write((b"a", b"open"), producer_id=PID, transactional=True)
    topic.write((b"a", b"2"))
    topic.write((b"a", b"3"))
    topic.clean_all()
    assert [value for _, value in pairs(topic)] == [b"1", b"open", b"2", b"3"]
    topic.end(PID, committed=True)
    topic.clean_all()
    assert [value for _, value in pairs(topic)] == [b"3"]


def test_the_last_batch_of_a_producer_stays_as_a_header_as_long_as_it_is_known() -> None:
    topic = Topic()
    topic.write((b"a", b"1"), producer_id=PID)
    topic.write((b"a", b"2"), (b"b", b"2"), producer_id=PID)
    topic.write((b"a", b"3"), (b"b", b"3"))
    topic.clean_all()
    assert kinds(topic) == ["empty", "records"]
    assert topic.batches[0].last_sequence == 2
    assert topic.batches[0].is_intact()
    topic.producers.forget_idle_producers(topic.now_ms + 1, 1)
    topic.clean_all()
    assert kinds(topic) == ["records"]


def test_the_last_batch_of_a_cleaning_stays_as_a_header() -> None:
    topic = Topic()
    topic.write((b"a", b"1"))
    topic.write((None, b"no key"))
    topic.clean_all()
    assert kinds(topic) == ["records", "empty"]
    assert topic.batches[-1].last_offset == 1


def test_a_map_that_is_too_small_cleans_in_several_passes() -> None:
    topic = Topic()
    for value in (b"1", b"2", b"3"):
        topic.write(*((b"%d" % i, value) for i in range(10)))
    passes = 1
    while not topic.clean(map_bytes=3 * (ENTRY_BYTES + 1)):
        passes += 1
    assert passes > 3
    assert pairs(topic) == [(b"%d" % i, b"3") for i in range(10)]


def test_a_batch_that_its_horizon_would_make_too_large_is_divided() -> None:
    topic = Topic()
    topic.write(*((b"%d" % i, None) for i in range(100)), producer_id=PID)
    [before] = topic.batches
    expected = [(offset, time) for offset, time, _ in topic.records(committed=True)]
    topic.now_ms += 1
    topic.clean_all(max_message_bytes=before.size)
    assert len(topic.batches) > 1
    assert all(batch.size <= before.size and batch.is_intact() for batch in topic.batches)
    assert [(offset, time) for offset, time, _ in topic.records(committed=True)] == expected
    ends = [-1, *(batch.last_offset for batch in topic.batches)]
    assert [batch.base_offset for batch in topic.batches] == [end + 1 for end in ends[:-1]]
    assert [batch.base_sequence for batch in topic.batches] == [end + 1 for end in ends[:-1]]
    assert topic.batches[-1].last_sequence == 99


KEYS = st.sampled_from([b"a", b"b", b"c", b"a long key " * 12])
RECORDS = st.lists(
    st.tuples(KEYS, st.one_of(st.none(), st.binary(max_size=3))), min_size=1, max_size=4
)
# What happens to a topic: writes by nobody, by an idempotent producer, in transactions of two
# producers that overlap, their ends, cleanings, time that passes, producers that are forgotten.
EVENTS = st.lists(
    st.one_of(
        st.tuples(
            st.just("write"), st.sampled_from([-1, 5]), RECORDS, st.sampled_from(CompressionType)
        ),
        st.tuples(st.just("stage"), st.sampled_from([PID, OTHER]), RECORDS),
        st.tuples(st.just("end"), st.sampled_from([PID, OTHER]), st.booleans()),
        st.tuples(st.just("clean"), st.integers(1, 600)),
        st.tuples(st.just("wait"), st.sampled_from([1, RETENTION_MS // 2, RETENTION_MS])),
        st.tuples(st.just("forget")),
    ),
    max_size=40,
)


def apply_event(topic: Topic, event: tuple[Any, ...]) -> None:
    match event:
        case ("write", producer_id, records, codec):
            topic.write(*records, producer_id=producer_id, codec=codec)
        case ("stage", producer_id, records):
            topic.write(*records, producer_id=producer_id, transactional=True)
        case ("end", producer_id, committed):
            topic.end(producer_id, committed=committed)
        case ("wait", ms):
            topic.now_ms += ms
        case ("forget",):
            topic.producers.forget_idle_producers(topic.now_ms + 1, 1)


@examples(300)
@given(EVENTS)
def test_cleaning_changes_nothing_of_what_a_consumer_has_in_the_end(
    events: list[tuple[Any, ...]],
) -> None:
    cleaned, untouched = Topic(), Topic()
    for event in events:
        if event[0] == "clean":
            cleaned.clean(map_bytes=event[1])
            assert cleaned.last_values() == untouched.last_values()
            continue
        for topic in (cleaned, untouched):
            apply_event(topic, event)
    cleaned.clean_all()
    assert cleaned.last_values() == untouched.last_values()
    assert cleaned.rebuilt_transactions() == untouched.rebuilt_transactions()

    written = set(untouched.records(committed=False))
    found = list(cleaned.records(committed=False))
    assert set(found) <= written, "an offset, a timestamp or a record has changed"
    assert [each[0] for each in found] == sorted({each[0] for each in found})

    stable = {each for each in found if each[0] < cleaned.stable_offset}
    assert stable <= set(untouched.records(committed=True)), "an aborted record is in the log"
    values = [pair[0] for _, _, pair in stable]
    assert len(values) == len(set(values)), "a key is there twice"

    told = cleaned.rebuilt_sequences()
    for producer_id, known, _ in cleaned.producers.iterate_producers():
        if known.batches:
            assert told[producer_id] == known.batches[-1].last_sequence
    assert all(batch.is_intact() for batch in cleaned.batches)


@examples(200)
@given(EVENTS)
def test_cleaning_again_at_the_same_time_comes_to_rest(events: list[tuple[Any, ...]]) -> None:
    topic = Topic()
    for event in events:
        apply_event(topic, event)
    # The first cleaning may empty a transaction, and the second then marks its marker.
    topic.clean_all()
    topic.clean_all()
    before = [bytes(batch.data) for batch in topic.batches]
    topic.clean_all()
    assert [bytes(batch.data) for batch in topic.batches] == before
