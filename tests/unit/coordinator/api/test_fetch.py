from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from coordinator.errors import Code
from coordinator.log.batch import iterate_batches
from tests.unit.coordinator.api.client import Client, batch, run
from tests.unit.coordinator.log.logs import BadSector

MAX_WAIT_MS = 500


def wanted(offset: int, partition: int = 0, max_bytes: int = 1 << 20) -> dict[str, Any]:
    return {"partition": partition, "fetch_offset": offset, "partition_max_bytes": max_bytes}


def fetch(*partitions: dict[str, Any], topic: str = "t", **fields: Any) -> dict[str, Any]:
    """Build a fetch request in version 12, which names topics by name."""
    return {
        "replica_id": -1,
        "max_wait": 0,
        "min_bytes": 1,
        "topics": [{"topic": topic, "partitions": partitions}],
        "forgotten_topics_data": (),
        **fields,
    }


async def poll(client: Client, *partitions: dict[str, Any], **fields: Any) -> asyncio.Task[Any]:
    """Start a fetch that waits for records, as an asyncio task."""
    request = fetch(*partitions, max_wait=MAX_WAIT_MS, **fields)
    waiting = asyncio.ensure_future(client.ask_later(1, 12, **request))
    await asyncio.sleep(0)
    return waiting


def values(answer: Any) -> list[list[bytes | None]]:
    """Return the values of the fetched records as one list for each partition."""
    return [
        [
            record.value
            for found in iterate_batches(one.records or b"")
            for record in found.iterate_records()
        ]
        for topic in answer.responses
        for one in topic.partitions
    ]


@pytest.mark.parametrize(
    ("max_bytes", "partition_max_bytes", "expected"),
    [
        (1 << 20, 1 << 20, [3, 3]),
        (0, 0, [1, 0]),
        (1 << 20, 0, [1, 0]),
        (2, 1 << 20, [2, 0]),
        (4, 1 << 20, [3, 1]),
        (1 << 20, 2, [2, 2]),
        (5, 2, [2, 2]),
    ],
    ids=["no limit", "none at all", "0 a partition", "2 in all", "4 in all", "2 each", "both"],
)
def test_limits_hold_but_for_the_first_batch_of_all(
    tmp_path: Path, max_bytes: int, partition_max_bytes: int, expected: list[int]
) -> None:
    size = len(batch(b"v"))

    def scaled(count: int) -> int:
        return count if count >= 1 << 20 else count * size

    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t", 2)
        for partition in (0, 1) * 3:
            client.produce("t", batch(b"v"), partition=partition)
        limit = scaled(partition_max_bytes)
        request = fetch(wanted(0, 0, limit), wanted(0, 1, limit), max_bytes=scaled(max_bytes))
        assert [len(found) for found in values(client.ask(1, 12, **request))] == expected

    run(scenario())


def test_a_fetch_at_the_end_waits_for_an_append(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t", 2)
        waiting = await poll(client, wanted(0, 0), wanted(0, 1))
        assert len(client.scheduler.pending(MAX_WAIT_MS)) == 1
        client.produce("t", batch(b"a"), partition=1)
        assert values(await waiting) == [[], [b"a"]]
        await asyncio.sleep(0)
        assert client.scheduler.pending(MAX_WAIT_MS) == []

    run(scenario())


def test_more_bytes_than_an_answer_may_have_are_not_waited_for(tmp_path: Path) -> None:
    size = len(batch(b"a"))

    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t")
        client.produce("t", batch(b"a"))
        request = fetch(wanted(0), max_wait=MAX_WAIT_MS, min_bytes=10_000, max_bytes=size)
        assert values(client.ask(1, 12, **request)) == [[b"a"]]

    run(scenario())


def test_what_lies_in_a_full_segment_is_given_without_waiting_for_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t", internal_segment_bytes="100")
        for value in (b"a", b"b"):
            client.produce("t", batch(value))
        request = fetch(wanted(0), max_wait=MAX_WAIT_MS, min_bytes=10_000)
        assert values(client.ask(1, 12, **request)) == [[b"a"]]

    run(scenario())


def test_a_partition_that_is_not_there_ends_no_wait_and_is_told_with_the_others(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t")
        waiting = await poll(client, wanted(0, 7), wanted(0, 0))
        client.produce("t", batch(b"a"))
        answered = (await waiting).responses[0].partitions
        assert [(one.partition_index, one.error_code) for one in answered] == [
            (0, Code.NONE),
            (7, Code.UNKNOWN_TOPIC_OR_PARTITION),
        ]

    run(scenario())


def test_when_time_is_up_a_fetch_returns_what_there_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t")
        client.produce("t", batch(b"a"))
        waiting = await poll(client, wanted(0), min_bytes=10_000)
        [expire] = client.scheduler.pending(MAX_WAIT_MS)
        expire()
        assert values(await waiting) == [[b"a"]]

    run(scenario())


def test_a_client_that_goes_away_leaves_nothing_behind(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t")
        waiting = await poll(client, wanted(0))
        waiting.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
        partition = client.partition("t")
        assert not partition.change_callbacks
        assert client.scheduler.pending(MAX_WAIT_MS) == []

    run(scenario())


def test_a_topic_that_is_deleted_ends_the_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t")
        waiting = await poll(client, wanted(0))
        topic = client.broker.topics.get("t")
        assert topic is not None
        client.broker.topics.delete_topic(topic)
        [one] = (await waiting).responses[0].partitions
        assert one.error_code == Code.UNKNOWN_TOPIC_OR_PARTITION

    run(scenario())


def test_a_deletion_that_ends_a_wait_brings_what_the_other_topics_have(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        topics = ["deleted", "kept"]
        for name in topics:
            client.create(name)
            client.produce(name, batch(name.encode()))
        asked = [{"topic": name, "partitions": [wanted(0)]} for name in topics]
        waiting = await poll(client, topics=asked, min_bytes=10_000)
        deleted = client.broker.topics.get("deleted")
        assert deleted is not None
        client.broker.topics.delete_topic(deleted)
        answer = await waiting
        parts = {topic.topic: topic.partitions[0] for topic in answer.responses}
        assert parts["deleted"].error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
        assert not parts["deleted"].records
        assert b"kept" in parts["kept"].records

    run(scenario())


def test_what_a_wait_has_found_is_sent_whole_though_its_topic_is_deleted_then(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t")
        waiting = await poll(client, wanted(0))
        client.produce("t", batch(b"found"))
        await asyncio.sleep(0)  # the wait has found it; the answer isn't made yet
        topic = client.broker.topics.get("t")
        assert topic is not None
        client.broker.topics.delete_topic(topic)
        assert not waiting.done()
        assert values(await waiting) == [[b"found"]]

    run(scenario())


@pytest.mark.parametrize("length", [7, -1, 1 << 30, -(1 << 31)])
@pytest.mark.parametrize("at", [0, 1])
def test_a_damaged_batch_fails_its_partition_and_the_others_are_answered(
    tmp_path: Path, at: int, length: int
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        topics = ["damaged", "whole"]
        for name in topics:
            client.create(name)
            for value in (b"a", b"b", b"c"):
                client.produce(name, batch(value))
        client.broker.close()
        [path] = (tmp_path / "damaged-0").glob("*.log")
        data = bytearray(path.read_bytes())
        size = len(data) // 3
        data[at * size + 8 : at * size + 12] = length.to_bytes(4, "big", signed=True)
        path.write_bytes(data)
        again = Client(tmp_path)
        for max_bytes in (1, 1 << 20):
            asked = [
                {"topic": name, "partitions": [wanted(at, max_bytes=max_bytes)]} for name in topics
            ]
            answer = again.ask(1, 12, **fetch(topics=asked))
            parts = {topic.topic: topic.partitions[0] for topic in answer.responses}
            assert parts["damaged"].error_code == Code.CORRUPT_MESSAGE
            assert not parts["damaged"].records
            assert parts["whole"].error_code == Code.NONE
            assert parts["whole"].records
        [before] = again.ask(1, 12, **fetch(wanted(0), topic="damaged")).responses[0].partitions
        assert before.error_code == (Code.NONE if at else Code.CORRUPT_MESSAGE)
        again.broker.close()

    run(scenario())


def test_a_file_that_can_not_be_read_fails_its_partition_and_the_others_are_answered(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        topics = ["unreadable", "whole"]
        for name in topics:
            client.create(name)
            client.produce(name, batch(b"a"))
        client.broker.close()
        again = Client(tmp_path, disk=BadSector("unreadable-0"))
        asked = [{"topic": name, "partitions": [wanted(0)]} for name in topics]
        answer = again.ask(1, 12, **fetch(topics=asked))
        parts = {topic.topic: topic.partitions[0] for topic in answer.responses}
        assert parts["unreadable"].error_code == Code.KAFKA_STORAGE_ERROR
        assert parts["whole"].records
        for timestamp in (0, -3):
            looked_up = again.ask(
                2,
                7,
                replica_id=-1,
                isolation_level=0,
                topics=[
                    {
                        "name": name,
                        "partitions": [{"partition_index": 0, "timestamp": timestamp}],
                    }
                    for name in topics
                ],
            )
            codes = {topic.name: topic.partitions[0].error_code for topic in looked_up.topics}
            assert codes == {"unreadable": Code.KAFKA_STORAGE_ERROR, "whole": Code.NONE}

    run(scenario())
