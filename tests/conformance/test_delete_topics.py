"""Test that DeleteTopics deletes by name and by id, and what can't be deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from coordinator.errors import Code
from tests.conformance import batches
from tests.conformance.calls import create_topic, eventually, metadata, produce, topic_id
from tests.conformance.wire import Api, Client, plain

NO_ID = UUID(int=77)
# More than the sockets of both ends take while the client doesn't read.
BATCHES, BATCH_BYTES = 20, 900_000


def delete(client: Client, *names: str, version: int = 5) -> list[dict[str, Any]]:
    """Delete topics and return the responses, sorted by name."""
    response = client.send(Api.DELETE_TOPICS, version, topic_names=names, timeout=10_000)
    answers: list[dict[str, Any]] = plain(response)["responses"]
    return sorted(answers, key=lambda answer: str(answer["name"]))


def delete_by(client: Client, *asked: tuple[str | None, UUID | None]) -> list[dict[str, Any]]:
    """Delete topics by name and id, and return the responses, those that failed first."""
    topics = [{"name": name, "topic_id": topic_id} for name, topic_id in asked]
    response = client.send(Api.DELETE_TOPICS, 6, topics=topics, timeout=10_000)
    answers: list[dict[str, Any]] = plain(response)["responses"]
    return sorted(answers, key=lambda answer: -int(answer["error_code"]))


def answer(
    name: str | None, topic_id: UUID | None, code: Code, message: str | None = None
) -> dict[str, Any]:
    return {"name": name, "topic_id": topic_id, "error_code": code, "error_message": message}


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_a_deleted_topic_is_gone_and_one_that_there_isn_t_is_refused_with_3(
    client: Client, topic: str, version: int
) -> None:
    message = {"error_message": None} if version >= 5 else {}
    unknown = {**message, "error_code": Code.UNKNOWN_TOPIC_OR_PARTITION}
    if version >= 5:
        unknown["error_message"] = "This server does not host this topic-partition."  # type: ignore
    assert delete(client, topic, "nope", version=version) == [
        {"name": "nope", **unknown},
        {"name": topic, "error_code": Code.NONE, **message},
    ]

    def code() -> int:
        return int(metadata(client, topic).topics[0].error_code)

    gone = Code.UNKNOWN_TOPIC_OR_PARTITION
    assert eventually(code, gone) == gone


def test_a_topic_is_deleted_by_its_id(client: Client, topic: str) -> None:
    found = topic_id(client, topic)
    assert delete_by(client, (None, found), (None, NO_ID)) == [
        answer(None, NO_ID, Code.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."),
        answer(topic, found, Code.NONE),
    ]


def test_what_does_not_say_which_topic_is_meant_is_refused_with_42(
    client: Client, topic: str
) -> None:
    found = topic_id(client, topic)
    both = "You may not specify both topic name and topic id."
    neither = "Neither topic name nor id were specified."
    invalid = Code.INVALID_REQUEST
    assert delete_by(client, (topic, found)) == [answer(topic, found, invalid, both)]
    assert delete_by(client, (None, None)) == [answer(None, None, invalid, neither)]
    twice = "Duplicate topic name."
    assert delete_by(client, (topic, None), (topic, None)) == [answer(topic, None, invalid, twice)]
    twice = "Duplicate topic id."
    assert delete_by(client, (None, found), (None, found)) == [answer(None, found, invalid, twice)]
    maps = "The provided topic name maps to an ID that was already supplied."
    assert delete_by(client, (None, found), (topic, None)) == [answer(topic, found, invalid, maps)]
    assert metadata(client, topic).topics[0].error_code == Code.NONE


@pytest.mark.parametrize("name", ["nope", "", "a b", "__cluster_metadata"])
def test_a_name_that_no_topic_has_is_refused_with_3(client: Client, name: str) -> None:
    message = "This server does not host this topic-partition."
    expected = answer(name, None, Code.UNKNOWN_TOPIC_OR_PARTITION, message)
    assert delete_by(client, (name, None)) == [expected]


def test_a_topic_of_the_same_name_is_another_topic(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("again")
    create_topic(client, name, partitions=3)
    first = topic_id(client, name)
    assert delete(client, name)[0]["error_code"] == Code.NONE
    create_topic(client, name)
    assert topic_id(client, name) != first
    assert len(metadata(client, name).topics[0].partitions) == 1


def test_no_topics_are_deleted_with_an_empty_answer(client: Client) -> None:
    assert delete(client) == []


def post_fetch_of_all(client: Client, *topics: str) -> int:
    return client.post(
        Api.FETCH,
        12,
        replica_id=-1,
        max_wait=0,
        min_bytes=0,
        max_bytes=100_000_000,
        session_epoch=-1,
        topics=[
            {
                "topic": topic,
                "partitions": [
                    {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 50_000_000}
                ],
            }
            for topic in topics
        ],
    )


def test_a_client_that_reads_slowly_gets_all_that_was_found_before_its_topic_was_deleted(
    connect: Callable[[], Client], client: Client, topic: str, other_topic: str
) -> None:
    """Check that the announced sizes of a response, and of each topic's part, are kept."""
    sizes = {topic: BATCHES, other_topic: 1}
    for name, count in sizes.items():
        for _ in range(count):
            written = produce(client, name, batches.encode(b"x" * BATCH_BYTES))
            assert written.error_code == Code.NONE
    reader = connect()
    reader.advertised()
    fetching = post_fetch_of_all(reader, topic, other_topic)
    reader.peek()
    assert delete(client, topic)[0]["error_code"] == Code.NONE
    gone = Code.UNKNOWN_TOPIC_OR_PARTITION
    assert eventually(lambda: metadata(client, topic).topics[0].error_code, gone) == gone
    found = reader.receive(fetching)
    counts = {}
    for part in found.responses:
        (records,) = part.partitions
        assert records.error_code == Code.NONE
        counts[part.topic] = sum(len(batch.records) for batch in batches.decode(records.records))
    assert counts == sizes
