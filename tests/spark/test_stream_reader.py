"""Test what the driver of a streaming read answers, with a broker and without a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from streams.common.topic_partitions import Partition
from streams.errors import StreamsError
from streams.spark.source.broker_access import BrokerAccess
from streams.spark.source.options import parse_stream_read_options
from streams.spark.source.stream_reader import StreamReader
from tests.brokers import Broker
from tests.spark.topics import Written, make_again

Unique = Callable[[str], str]
ALL = ReadAllAvailable()


def reader(written: Written, **more: Any) -> StreamReader:
    given = {"bootstrap_servers": written.servers, "topic": written.topic}
    return StreamReader(parse_stream_read_options(given | {n: str(v) for n, v in more.items()}))


def topic(broker: Broker, name: str, records: int = 10) -> Written:
    written = Written(broker.bootstrap_servers, name, partitions=2)
    written.transaction([(n % 2, None, b"%d" % n) for n in range(records)])
    return written


def rows(source: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> int:
    found = source.partitions(start, end)
    return sum(batch.num_rows for each in found for batch in source.read(each))


def test_an_epoch_ends_below_the_first_open_transaction(broker: Broker, unique: Unique) -> None:
    written = topic(broker, unique("stable"))
    source = reader(written)
    start = source.initialOffset()
    end = source.latestOffset(start, ALL)
    assert rows(source, start, end) == 10
    written.transaction([(0, None, b"open")], end=False)
    assert source.latestOffset(end, ALL) == end
    dirty = reader(written, isolation="read_uncommitted")
    assert rows(dirty, end, dirty.latestOffset(end, ALL)) == 1
    written.end(commit=True)
    assert rows(source, end, source.latestOffset(end, ALL)) == 1


def test_an_epoch_has_so_many_offsets_at_most(broker: Broker, unique: Unique) -> None:
    source = reader(topic(broker, unique("limit"), 20), max_records_per_trigger=5)
    limit = source.getDefaultReadLimit()
    assert limit == ReadMaxRows(5)
    start = source.initialOffset()
    end = source.latestOffset(start, limit)
    assert sorted(end["offsets"].values()) == [2, 3]
    assert rows(source, start, end) == 5
    assert sum(source.latestOffset(start, ALL)["offsets"].values()) == 22  # and two markers


def test_what_comes_after_the_start_is_not_of_available_now(broker: Broker, unique: Unique) -> None:
    written = topic(broker, unique("now"))
    source = reader(written)
    source.prepareForTriggerAvailableNow()
    start = source.initialOffset()
    written.transaction([(0, None, b"later")])
    end = source.latestOffset(start, ALL)
    assert rows(source, start, end) == 10
    assert source.latestOffset(end, ALL) == end


def test_a_new_query_begins_where_it_is_told_to(broker: Broker, unique: Unique) -> None:
    written = topic(broker, unique("begin"))
    assert reader(written, offsets_from="latest").initialOffset()["offsets"] == {"0": 6, "1": 6}
    found = reader(written, offsets_from='{"0": 3, "1": "earliest"}').initialOffset()["offsets"]
    assert found == {"0": 3, "1": 0}


def test_records_that_were_deleted_before_they_were_read_are_an_error(
    broker: Broker, unique: Unique
) -> None:
    written = topic(broker, unique("lost"))
    source = reader(written)
    start = source.initialOffset()
    end = source.latestOffset(start, ALL)
    BrokerAccess(written.servers).create_admin().delete_records({Partition(written.topic, 0): 3})
    for asked in (lambda: source.latestOffset(start, ALL), lambda: source.partitions(start, end)):
        with pytest.raises(StreamsError, match=r"\[0\]: offsets 0 to 2 were deleted before"):
            asked()


def test_another_topic_of_the_same_name_is_an_error(broker: Broker, unique: Unique) -> None:
    written = topic(broker, unique("again"))
    source = reader(written)
    start = {**source.initialOffset(), "topic_id": "another"}
    with pytest.raises(StreamsError, match="it was deleted and made again"):
        source.latestOffset(start, ALL)
    with pytest.raises(StreamsError, match="the checkpoint is of a query that reads elsewhere"):
        source.latestOffset({**start, "topic": "elsewhere"}, ALL)


def test_a_topic_made_again_after_an_epoch_was_planned_is_not_read(
    broker: Broker, unique: Unique
) -> None:
    written = topic(broker, unique("again"))
    source = reader(written)
    start = source.initialOffset()
    end = source.latestOffset(start, ALL)
    planned = source.partitions(start, end)
    make_again(written.servers, written.topic, partitions=2)
    written.transaction([(n % 2, None, b"new %d" % n) for n in range(30)])
    for each in planned:
        with pytest.raises(StreamsError, match="another topic of the same name"):
            list(source.read(each))
    with pytest.raises(StreamsError, match="another topic of the same name"):
        source.latestOffset(end, ALL)
