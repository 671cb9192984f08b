"""Test that a reader whose topic goes away fails in time and says why, and never just ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from confluent_kafka import Producer

from streams.common.topic_partitions import Partition
from streams.errors import StreamsError
from streams.runtime.clients import RangeReader
from streams.spark.source.broker_access import BrokerAccess
from tests.brokers import Broker
from tests.conformance.calls import delete_topic
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S
from tests.spark.topics import Written, make_again

RECORDS = 2_000
TIMEOUT_S = 3.0
LITTLE_AHEAD = {
    "queued.min.messages": 1,
    "queued.max.messages.kbytes": 1,
    "max.partition.fetch.bytes": 10_000,
}


@pytest.fixture
def big(broker: Broker, unique: Callable[[str], str]) -> Written:
    """Write far more than a reader fetches ahead, in small batches, so that a fetch is small."""
    written = Written(
        broker.bootstrap_servers, unique("going"), settings={"batch.num.messages": 10}
    )
    written.transaction([(0, None, b"x" * 1_000) for _ in range(RECORDS)])
    return written


@pytest.fixture
def reader(broker: Broker) -> Iterator[RangeReader]:
    settings = {
        **BrokerAccess(broker.bootstrap_servers).client_settings(),
        "group.id": "g",
        **LITTLE_AHEAD,
    }
    with closing(RangeReader(settings, "read_committed", TIMEOUT_S)) as reader:
        yield reader


def test_a_topic_deleted_meanwhile(broker: Broker, big: Written, reader: RangeReader) -> None:
    batches = reader.read_range(Partition(big.topic, 0), 0, RECORDS, 10)
    next(batches)
    with Client(broker.bootstrap_servers) as client:
        delete_topic(client, big.topic)
    with pytest.raises(StreamsError, match=f"{big.topic}.0. "):
        for _ in batches:
            pass


def test_a_topic_made_again_meanwhile(broker: Broker, big: Written, reader: RangeReader) -> None:
    """Test that a read has nothing of the new topic, though its offsets are there too."""
    batches = reader.read_range(Partition(big.topic, 0), 0, RECORDS, 10)
    next(batches)
    make_again(broker.bootstrap_servers, big.topic)
    again = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for _ in range(RECORDS + 100):
        again.produce(big.topic, b"new", partition=0)
    assert again.flush(HANG_LIMIT_S) == 0
    values: set[bytes | None] = set()
    with pytest.raises(StreamsError, match=f"{big.topic} is another topic of the same name"):
        values.update(value for batch in batches for value in batch.values)
    assert b"new" not in values


def test_a_log_cut_off_at_its_beginning_meanwhile(
    broker: Broker, big: Written, reader: RangeReader
) -> None:
    place = Partition(big.topic, 0)
    batches = reader.read_range(place, 0, RECORDS, 10)
    next(batches)
    BrokerAccess(broker.bootstrap_servers).create_admin().delete_records({place: RECORDS - 5})
    with pytest.raises(StreamsError, match=f"are gone: the log now has {RECORDS - 5} to {RECORDS}"):
        for _ in batches:
            pass


def test_offsets_that_are_not_there_yet(big: Written, reader: RangeReader) -> None:
    """Read as after a leader that was behind was elected: the end has moved back."""
    with pytest.raises(StreamsError, match="stands at offset"):
        for _ in reader.read_range(Partition(big.topic, 0), RECORDS - 5, RECORDS + 50, 1_000):
            pass
