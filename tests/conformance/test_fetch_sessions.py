"""Test that fetch sessions (KIP-227) take partitions once and answer only those with news."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from coordinator.errors import Code
from tests.conformance import batches
from tests.conformance.calls import (
    ENOUGH_BYTES,
    LATEST,
    create_topic,
    list_offset,
    metadata,
    produce,
    settled,
    topic_id,
)
from tests.conformance.wire import Api, Client
from tests.processes import UNREACHED_MS, wait_until

BY_NAME, BY_ID = 12, 16
Partitions = dict[int, int]  # partition -> offset to read from


class Reader:
    """Keeps the id and the epoch of a session, as clients do; topics have names always.

    What an answer has is remembered in `told`: (topic, partition) -> values.
    """

    def __init__(self, client: Client, version: int = BY_NAME, *, max_bytes: int = ENOUGH_BYTES):
        self.client = client
        self.version = version
        self.max_bytes = max_bytes
        self.session_id = 0
        self.epoch = 0
        self.ids: dict[str, UUID] = {}

    def post(
        self,
        wanted: dict[str, Partitions] | None = None,
        forgotten: dict[str, list[int]] | None = None,
        *,
        max_wait_ms: int = 0,
    ) -> int:
        topics = [
            {
                **self._named(name),
                "partitions": [
                    {
                        "partition": index,
                        "fetch_offset": offset,
                        "partition_max_bytes": ENOUGH_BYTES,
                    }
                    for index, offset in partitions.items()
                ],
            }
            for name, partitions in (wanted or {}).items()
        ]
        return self.client.post(
            Api.FETCH,
            self.version,
            max_wait=max_wait_ms,
            min_bytes=1,
            max_bytes=self.max_bytes,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=topics,
            forgotten_topics_data=[
                {**self._named(name), "partitions": indexes}
                for name, indexes in (forgotten or {}).items()
            ],
            **({"replica_id": -1} if self.version < 15 else {}),
        )

    def send(self, *changes: Any, **options: Any) -> Any:
        """Send a fetch; the next request goes on in its session."""
        response = self.client.receive(self.post(*changes, **options))
        if response.error_code == Code.NONE:
            self.session_id = response.session_id
            self.epoch = self.epoch + 1 if response.session_id else 0
        return response

    def read(self, *changes: Any, **options: Any) -> dict[tuple[str, int], list[bytes | None]]:
        """Return the fetched values, partition by partition in the response's order."""
        response = self.send(*changes, **options)
        assert response.error_code == Code.NONE
        return {
            (self._name(each), part.partition_index): batches.values(part.records)
            for each in response.responses
            for part in each.partitions
        }

    def _named(self, name: str) -> dict[str, Any]:
        if self.version == BY_NAME:
            return {"topic": name}
        if name not in self.ids:
            self.ids[name] = topic_id(self.client, name)
        return {"topic_id": self.ids[name]}

    def _name(self, answered: Any) -> str:
        if self.version == BY_NAME:
            return str(answered.topic)
        return next(name for name, known in self.ids.items() if known == answered.topic_id)


def codes(response: Any) -> dict[int, Code]:
    return {
        part.partition_index: Code(part.error_code)
        for each in response.responses
        for part in each.partitions
    }


@pytest.fixture(params=[BY_NAME, BY_ID], ids=["by name", "by id"])
def reader(client: Client, request: pytest.FixtureRequest) -> Reader:
    return Reader(client, request.param)


@pytest.fixture
def wide(client: Client, unique: Callable[[str], str]) -> str:
    """Create a topic of three partitions."""
    name = unique("wide")
    create_topic(client, name, 3)
    return name


def write(client: Client, topic: str, value: bytes, partition: int = 0) -> None:
    assert (
        produce(client, topic, batches.encode(value), partition=partition).error_code == Code.NONE
    )


# Begin, continue, end


def test_the_first_answer_has_every_partition_and_a_session_id(reader: Reader, wide: str) -> None:
    write(reader.client, wide, b"a", partition=1)
    assert reader.read({wide: {0: 0, 1: 0, 2: 0}}) == {
        (wide, 0): [],
        (wide, 1): [b"a"],
        (wide, 2): [],
    }
    assert reader.session_id > 0


def test_an_answer_in_a_session_has_the_partitions_with_news_and_no_other(
    reader: Reader, wide: str
) -> None:
    reader.read({wide: {0: 0, 1: 0, 2: 0}})
    assert reader.read() == {}
    write(reader.client, wide, b"b", partition=2)
    assert reader.read() == {(wide, 2): [b"b"]}


def test_records_come_again_until_the_client_names_the_next_offset(
    reader: Reader, topic: str
) -> None:
    write(reader.client, topic, b"a")
    for change in ({topic: {0: 0}}, None, None):
        assert reader.read(change) == {(topic, 0): [b"a"]}
    assert reader.read({topic: {0: 1}}) == {}


def test_an_answer_without_records_tells_a_high_watermark_once(reader: Reader, topic: str) -> None:
    write(reader.client, topic, b"a")
    reader.read({topic: {0: 1}})
    write(reader.client, topic, b"b")
    reader.read({topic: {0: 2}})
    assert reader.read() == {}


def test_partitions_are_added_and_forgotten(reader: Reader, wide: str, topic: str) -> None:
    reader.read({wide: {0: 0, 1: 0}})
    assert reader.read({topic: {0: 0}, wide: {2: 0}}, {wide: [0]}) == {
        (topic, 0): [],
        (wide, 2): [],
    }
    for partition in range(3):
        write(reader.client, wide, b"%d" % partition, partition)
    assert reader.read() == {(wide, 1): [b"1"], (wide, 2): [b"2"]}


def test_a_session_ends_with_its_last_partition(reader: Reader, topic: str) -> None:
    reader.read({topic: {0: 0}})
    ended = reader.session_id
    response = reader.send(None, {topic: [0]})
    assert (response.error_code, response.session_id, response.responses) == (Code.NONE, 0, ())
    reader.session_id, reader.epoch = ended, 2
    assert reader.send().error_code == Code.FETCH_SESSION_ID_NOT_FOUND


def test_a_request_of_epoch_minus_1_ends_the_session_and_is_answered_whole(
    reader: Reader, topic: str
) -> None:
    reader.read({topic: {0: 0}})
    ended = reader.session_id
    reader.epoch = -1
    response = reader.send({topic: {0: 0}})
    assert (response.session_id, codes(response)) == (0, {0: Code.NONE})
    reader.session_id, reader.epoch = ended, 1
    assert reader.send().error_code == Code.FETCH_SESSION_ID_NOT_FOUND


def test_a_request_of_epoch_0_begins_a_session_in_the_place_of_the_old_one(
    reader: Reader, topic: str
) -> None:
    reader.read({topic: {0: 0}})
    old, reader.epoch = reader.session_id, 0
    assert reader.read({topic: {0: 0}}) == {(topic, 0): []}
    assert reader.session_id not in (0, old)
    assert reader.read() == {}
    reader.session_id, reader.epoch = old, 1
    assert reader.send().error_code == Code.FETCH_SESSION_ID_NOT_FOUND


# Errors


@pytest.mark.parametrize("epoch", [2, 7, -2])
def test_another_epoch_than_the_next_is_refused_with_71_and_leaves_the_session(
    reader: Reader, topic: str, epoch: int
) -> None:
    reader.read({topic: {0: 0}})
    reader.epoch = epoch
    response = reader.send()
    assert (response.error_code, response.session_id) == (Code.INVALID_FETCH_SESSION_EPOCH, 0)
    reader.epoch = 1
    assert reader.read() == {}


@pytest.mark.parametrize(("first", "then"), [(BY_NAME, BY_ID), (BY_ID, BY_NAME)])
def test_a_session_keeps_to_names_or_to_ids(
    client: Client, topic: str, first: int, then: int
) -> None:
    reader = Reader(client, first)
    reader.read({topic: {0: 0}})
    reader.version = then
    assert reader.send().error_code == Code.FETCH_SESSION_TOPIC_ID_ERROR
    reader.version = first
    assert reader.read() == {}


def test_a_partition_with_an_error_is_told_every_time_and_again_when_it_is_over(
    reader: Reader, topic: str
) -> None:
    write(reader.client, topic, b"a")
    for change in ({topic: {0: 9}}, None, None):
        assert codes(reader.send(change)) == {0: Code.OFFSET_OUT_OF_RANGE}
    assert reader.read({topic: {0: 1}}) == {(topic, 0): []}
    assert reader.read() == {}


def test_a_partition_that_does_not_exist_stays_in_the_session_and_is_told_last(
    reader: Reader, topic: str
) -> None:
    response = reader.send({topic: {7: 0, 0: 0}})
    assert [part.partition_index for part in response.responses[0].partitions] == [0, 7]
    assert codes(response) == {0: Code.NONE, 7: Code.UNKNOWN_TOPIC_OR_PARTITION}
    assert codes(reader.send()) == {7: Code.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_partition_that_does_not_exist_ends_no_wait(reader: Reader, topic: str) -> None:
    begin = time.monotonic()
    response = reader.send({topic: {7: 0, 0: 0}}, max_wait_ms=300)
    assert time.monotonic() - begin >= 0.29
    assert codes(response) == {0: Code.NONE, 7: Code.UNKNOWN_TOPIC_OR_PARTITION}


def delete(client: Client, topic: str) -> None:
    client.send(Api.DELETE_TOPICS, 4, topic_names=[topic], timeout=10_000)
    settled_unknown(client, topic)


def settled_unknown(client: Client, topic: str) -> None:
    wait_until(
        lambda: metadata(client, topic).topics[0].error_code == Code.UNKNOWN_TOPIC_OR_PARTITION,
        what="the topic is still known",
    )


def test_a_topic_deleted_in_a_session_is_unknown_and_made_again_is_another(
    client: Client, unique: Callable[[str], str]
) -> None:
    """Check that by id the new topic isn't in the session; by name nobody can tell."""
    name = unique("again")
    create_topic(client, name)
    by_name, by_id = Reader(client, BY_NAME), Reader(client, BY_ID)
    for reader in (by_name, by_id):
        reader.read({name: {0: 0}})
    delete(client, name)
    for reader in (by_name, by_id):
        assert codes(reader.send()) == {0: Code.UNKNOWN_TOPIC_OR_PARTITION}
    create_topic(client, name)
    assert list_offset(client, name, LATEST).error_code == Code.NONE
    assert settled(lambda: by_name.send(), [Code.UNKNOWN_TOPIC_OR_PARTITION]).error_code == 0
    assert codes(by_id.send()) == {0: Code.INCONSISTENT_TOPIC_ID}


# Order


def test_partitions_that_had_records_go_to_the_end_so_that_none_starves(
    client: Client, wide: str
) -> None:
    for partition in range(3):
        write(client, wide, b"%d" % partition, partition)
    reader = Reader(client, max_bytes=1)
    assert reader.read({wide: {0: 0, 1: 0, 2: 0}}) == {
        (wide, 0): [b"0"],
        (wide, 1): [],
        (wide, 2): [],
    }
    found = [reader.read() for _ in range(4)]
    assert found == [
        {(wide, 0): [b"0"]},
        {(wide, 1): [b"1"]},
        {(wide, 2): [b"2"]},
        {(wide, 0): [b"0"]},
    ]


def test_topics_come_in_the_order_of_reading_even_if_one_comes_twice(
    client: Client, wide: str, topic: str
) -> None:
    reader = Reader(client)
    reader.read({wide: {0: 0}, topic: {0: 0}})
    reader.read({wide: {1: 0}})
    for name, partition in ((wide, 0), (topic, 0), (wide, 1)):
        write(client, name, b"x", partition)
    response = reader.send()
    order = [
        (each.topic, [part.partition_index for part in each.partitions])
        for each in response.responses
    ]
    assert order == [(wide, [0]), (topic, [0]), (wide, [1])]


# Waiting


def test_a_request_in_a_session_waits_for_news_of_any_partition(
    connect: Callable[[], Client], wide: str
) -> None:
    reader, writer = Reader(connect()), connect()
    reader.read({wide: {0: 0, 1: 0, 2: 0}})
    waiting = reader.post(max_wait_ms=UNREACHED_MS)
    write(writer, wide, b"news", partition=1)
    response = reader.client.receive(waiting)
    [[part]] = [each.partitions for each in response.responses]
    assert (part.partition_index, batches.values(part.records)) == (1, [b"news"])


def test_a_waiting_request_is_refused_when_its_session_goes_on_elsewhere(
    connect: Callable[[], Client], topic: str
) -> None:
    reader = Reader(connect())
    reader.read({topic: {0: 0}})
    waiting = reader.post(max_wait_ms=500)
    time.sleep(0.1)  # no response shows that it waits
    other = Reader(connect())
    other.session_id, other.epoch = reader.session_id, reader.epoch + 1
    assert other.read() == {}
    response = reader.client.receive(waiting)
    assert response.error_code == Code.INVALID_FETCH_SESSION_EPOCH
    assert response.session_id == reader.session_id
