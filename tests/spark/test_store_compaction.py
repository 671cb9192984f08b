"""Test what compaction takes from a changelog after a cut, and what only looks like it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from coordinator.errors import Code
from streams import App, Store, serdes, windows
from streams.common.topic_partitions import Partition
from streams.errors import UserError
from streams.spark import Cut
from streams.spark.source.broker_access import BrokerAccess
from streams.spark.source.fetching import fetch_batches
from streams.spark.source.options import IsolationLevel
from streams.spark.source.ranges import OffsetRange
from streams.spark.stores.raw_fetch import find_last_segment_offset, scan_range
from tests.brokers import Broker
from tests.conformance.calls import create_topic, delete_topic, settled
from tests.conformance.producers import init_producer_id
from tests.conformance.test_compaction import begin_segment, fill
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S, wait_until
from tests.spark.one_store import Fed, One
from tests.spark.store_rows import TEXT, table

SEGMENT_MS = 1000
"""Segments end by the times of records: Kafka takes none of less than a megabyte."""
EAGER = {"segment.ms": str(SEGMENT_MS), "min.cleanable.dirty.ratio": "0"}
FIRST: Fed = [("a", "1", 0), ("b", "1", 1), ("a", "2", 2), ("c", "1", 3)]
THEN = {"a": "2", "b": "1", "c": "1"}
LATER_MS = 200_000
STEP_MS = 100_000
"""Beyond the time of now, which markers have: a segment ends where a record is later than its first
batch."""


@pytest.fixture
def made(broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> Callable[..., One]:
    # The broker compares times with those of its markers: they are of the test, not of the session.
    begun_ms = time.time_ns() // 1_000_000 - 120_000
    return lambda **settings: One(
        broker, unique("compact"), tmp_path / "state", begun_ms=begun_ms, **settings
    )


@contextmanager
def running(one: One, **topic_settings: str) -> Iterator[None]:
    dotted = {name.replace("_", "."): value for name, value in topic_settings.items()}
    store = Store.in_memory("rows", logged=dotted or True)
    one.app.table(one.topic, **TEXT, store=store)
    with one.app.start():
        yield


def changelog(one: One, cut: Cut) -> OffsetRange:
    """Return the whole range of the changelog's offsets."""
    where = Partition(cut.stores["rows"].changelog, 0)
    end = BrokerAccess(one.servers).create_admin().fetch_last_stable_offsets([where])[where]
    return OffsetRange(*where, 0, end)


def keys(one: One, of: OffsetRange) -> list[bytes | None]:
    found = fetch_batches(BrokerAccess(one.servers), IsolationLevel.READ_COMMITTED, of)
    return [key for batch in found for key in batch.keys]


def known(client: Client, transactional_id: str) -> str:
    """Initialize the transactional id and return it.

    Real Kafka makes the topic of its transactions when it is first asked for one.
    """
    starting = (Code.NOT_COORDINATOR, Code.COORDINATOR_NOT_AVAILABLE, Code.CONCURRENT_TRANSACTIONS)
    settled(lambda: init_producer_id(client, transactional_id), starting)
    return transactional_id


def wait_until_cleaned(one: One, of: OffsetRange) -> None:
    wait_until(
        lambda: scan_range(BrokerAccess(one.servers), of).removed_count > 0,
        what="nothing is cleaned",
    )


def fed_one_by_one(one: One, rows: Fed) -> Cut:
    """Write records with a commit each, so that each is in a batch of its own in the changelog."""
    for each in rows:
        cut = one.feed([each])
    return cut


def segments(begin: int, *rows: tuple[str, str | None]) -> Fed:
    """Return rows that come in a segment each, if they are written one by one."""
    return [(*row, LATER_MS + STEP_MS * (begin + at)) for at, row in enumerate(rows)]


def test_a_row_that_was_replaced_and_compacted_after_the_cut_is_told(
    made: Callable[..., One],
) -> None:
    one = made()
    with running(one, **EAGER):
        cut = one.feed(FIRST)
        assert table(one.load("rows", cut)) == THEN
        fed_one_by_one(one, segments(0, ("b", "later"), ("c", "later"), ("c", "more")))
        said: list[str] = []

        def is_refused() -> bool:
            """Tell whether the cut is refused by now; until then its rows are what they were."""
            try:
                assert table(one.load("rows", cut)) == THEN
            except UserError as error:
                said.append(str(error))
            return bool(said)

        wait_until(is_refused, what="it is never compacted")
        topic = cut.stores["rows"].changelog
        for part in ("store 'rows'", f"{topic}[0]", "compacted since", "cut_retention_ms"):
            assert part in said[0]
        assert one.load("rows", one.feed([("d", "1", LATER_MS)]))  # a newer one can be read


@pytest.mark.parametrize("row", [("b", None), ("new", "1")])
def test_an_application_that_runs_on_leaves_a_cut_readable(
    made: Callable[..., One], row: tuple[str, str | None]
) -> None:
    """Read a cut while the application runs on with the settings that everybody has.

    There are markers between the records, and keys that only come after the cut.
    """
    one = made()
    with running(one):
        cut = fed_one_by_one(one, FIRST)
        one.feed([(*row, 5)])
        one.feed([("other", "1", 6), ("a", "3", 7)])
        assert table(one.load("rows", cut)) == THEN


def test_a_new_key_in_another_segment_is_new_where_nothing_was_cleaned(
    made: Callable[..., One],
) -> None:
    one = made()
    with running(one, segment_ms=str(SEGMENT_MS), min_cleanable_dirty_ratio="1"):
        cut = fed_one_by_one(one, FIRST)
        fed_one_by_one(one, segments(0, ("new", "1"), ("a", "3"), ("other", "1")))
        of = changelog(one, cut)
        position = cut.stores["rows"].positions[0]
        above = OffsetRange(of.topic, 0, position, of.until)
        assert find_last_segment_offset(BrokerAccess(one.servers), above) > position
        assert scan_range(BrokerAccess(one.servers), of).removed_count == 0
        assert len(keys(one, of)) < of.until  # there are markers
        assert table(one.load("rows", cut)) == THEN


def test_a_new_key_is_new_though_the_changelog_was_compacted_before_the_cut(
    made: Callable[..., One],
) -> None:
    one = made()
    with running(one, **EAGER):
        one.feed(FIRST)
        cut = fed_one_by_one(one, segments(0, ("b", "2"), ("b", "3")))
        wait_until_cleaned(one, changelog(one, cut))
        one.feed([("new", "1", LATER_MS + STEP_MS + 5), ("c", None, LATER_MS)])
        assert table(one.load("rows", cut)) == {"a": "2", "b": "3", "c": "1"}


def test_with_a_retention_of_cuts_nothing_is_taken(
    made: Callable[..., One], unique: Callable[[str], str]
) -> None:
    one = made(cut_retention_ms=3_600_000)
    with running(one, **EAGER):
        cut = one.feed(FIRST)
        cut_end = fed_one_by_one(
            one, segments(0, ("a", "later"), ("b", None), ("new", "1"), ("c", "later"))
        )
        # Another topic has been cleaned since, which holds nothing back.
        other = unique("eager")
        with Client(one.servers) as client:
            create_topic(client, other, configs={"cleanup.policy": "compact", **EAGER})
            fill(client, other, known(client, unique("id")))
            begin_segment(client, other, 1)
        of = OffsetRange(other, 0, 0, 14)
        wait_until_cleaned(one, of)
        assert scan_range(BrokerAccess(one.servers), changelog(one, cut_end)).removed_count == 0
        assert table(one.load("rows", cut)) == THEN
        assert table(one.load("rows", cut_end)) == {"a": "later", "c": "later", "new": "1"}


def test_batches_are_gone_over_by_many_fetches(
    broker: Broker, unique: Callable[[str], str]
) -> None:
    topic = unique("raw")
    access = BrokerAccess(broker.bootstrap_servers)
    with Client(broker.bootstrap_servers) as client:
        create_topic(client, topic, configs={"segment.ms": str(SEGMENT_MS)})
        fill(
            client, topic, known(client, unique("id"))
        )  # records, markers and what was aborted, to 13
        for number in range(1, 4):
            begin_segment(client, topic, number)
    end = 18
    for bytes_max in (1, 200, 1 << 20):
        scan = scan_range(access, OffsetRange(topic, 0, 0, end), bytes_max=bytes_max)
        assert (scan.removed_count, scan.is_done) == (0, True), bytes_max
        assert (
            find_last_segment_offset(access, OffsetRange(topic, 0, end, end), bytes_max=bytes_max)
            == end
        )
    assert find_last_segment_offset(access, OffsetRange(topic, 0, 2, end)) == end - 1
    assert find_last_segment_offset(access, OffsetRange(topic, 0, end - 1, end)) == end - 1


def windowed_counts(app: App, topic: str) -> None:
    store = Store.window("counts", size=1000, retention=5000)
    stream: Any = app.stream(topic, key=serdes.string, value=serdes.string)
    stream.group_by_key().windowed_by(windows.tumbling(1000)).count(store=store)


def test_a_cut_below_the_start_of_a_changelog_is_refused(made: Callable[..., One]) -> None:
    one = made()
    windowed_counts(one.app, one.topic)
    with one.app.start():
        cut = one.feed([("a", "x", 0)])
        assert len(one.load("counts", cut)) == 1
        newer = one.feed([("a", "x", 2000)])
        store = newer.stores["counts"]
        here = TopicPartition(store.changelog, 0, store.positions[0])
        admin = AdminClient({"bootstrap.servers": one.servers})
        for future in admin.delete_records([here]).values():
            future.result(HANG_LIMIT_S)
        with pytest.raises(UserError, match=rf"older than the changelog's start.*{here.offset}"):
            one.load("counts", cut)
        assert one.load("counts", newer) == []


def test_a_changelog_that_was_made_again_is_told(made: Callable[..., One]) -> None:
    one = made()
    with running(one):
        cut = one.feed(FIRST)
    topic = cut.stores["rows"].changelog
    with Client(one.servers) as client:
        delete_topic(client, topic)
        create_topic(client, topic, configs={"cleanup.policy": "compact"})
    with pytest.raises(UserError, match="is another topic of the same name"):
        one.load("rows", cut)
    former = replace(cut, topic_ids={})  # as of a release that kept no ids
    with pytest.raises(UserError, match=r"ends at offset 0, and the cut is at .*made again"):
        one.load("rows", former)
