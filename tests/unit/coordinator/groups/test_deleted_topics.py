"""Test that the offsets of a topic are deleted with it, so that its namesake has none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from coordinator import EmbeddedBroker, repair
from coordinator.coordinators import GROUP_TOPIC
from coordinator.errors import Code, Refused
from coordinator.groups.deleted_topics import RETRY_MS
from coordinator.groups.shard import GroupShard
from coordinator.log.partition import PartitionLog
from coordinator.shard.coordinator_state import CoordinatorState
from coordinator.shard.shard import BrokenInvariant, Shard
from tests.unit.coordinator.api.client import Client, run
from tests.unit.coordinator.groups.test_large_deletions import commit as commit_many
from tests.unit.coordinator.groups.test_large_deletions import create, forgetting, take_slice
from tests.unit.coordinator.test_repair import damage, flip, log_files

COMMIT, FETCH, DELETE, INIT, ADD_OFFSETS, END, STAGE = 8, 9, 20, 22, 25, 26, 28


def commit(client: Client, topic: str) -> int:
    partition = {"partition_index": 0, "committed_offset": 7, "committed_metadata": None}
    answer = client.ask(
        COMMIT,
        8,
        group_id="counts",
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[{"name": topic, "partitions": [partition]}],
    )
    return int(answer.topics[0].partitions[0].error_code)


def committed(client: Client) -> dict[str, int]:
    """Return the group's committed offset in each topic."""
    answer = client.ask(FETCH, 7, group_id="counts", topics=None, require_stable=True)
    return {topic.name: topic.partitions[0].committed_offset for topic in answer.topics}


def delete(client: Client, topic: str) -> None:
    [answer] = client.ask(DELETE, 5, topic_names=[topic], timeout=1_000).responses
    assert answer.error_code == Code.NONE


def test_deleting_a_topic_forgets_what_is_committed_for_it_for_good(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        for topic in ("words", "lines"):
            client.create(topic)
            assert commit(client, topic) == Code.NONE
        delete(client, "words")
        client.create("words")
        assert committed(client) == {"lines": 7}
        client.broker.close()
        assert committed(Client(tmp_path)) == {"lines": 7}

    run(scenario())


def test_deleting_a_topic_forgets_what_an_open_transaction_holds_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("words")
        owner = client.ask(INIT, 4, transactional_id="app", transaction_timeout=1_000)
        producer: dict[str, Any] = {
            "transactional_id": "app",
            "producer_id": owner.producer_id,
            "producer_epoch": owner.producer_epoch,
        }
        client.ask(ADD_OFFSETS, 3, **producer, group_id="counts")
        partition = {"partition_index": 0, "committed_offset": 7, "committed_metadata": None}
        staged = client.ask(
            STAGE,
            2,
            **producer,
            group_id="counts",
            topics=[{"name": "words", "partitions": [partition]}],
        )
        assert staged.topics[0].partitions[0].error_code == Code.NONE
        delete(client, "words")
        assert client.ask(END, 3, **producer, committed=True).error_code == Code.NONE
        assert committed(client) == {}

    run(scenario())


def shard_of_groups(client: Client) -> GroupShard:
    [shard] = client.broker.coordinators.groups.shards
    return shard


def refuse(batch: bytes) -> int:
    raise Refused(Code.KAFKA_STORAGE_ERROR, "planned")


def refuse_to_read(offset: int, max_bytes: int) -> bytes:
    raise OSError("planned")


def damage_groups(data: Path) -> tuple[Path, int]:
    """Damage the last batch of `__consumer_offsets`; return the file and the batch's position."""
    [path] = log_files(data / f"{GROUP_TOPIC}-0")
    return path, damage(path, -1, flip)


def written_then_damaged(data: Path) -> tuple[Path, int]:
    """Commit offsets of three topics, and damage the batch that has those of the last one."""
    client = Client(data)
    for topic in ("words", "lines", "letters"):
        client.create(topic)
        assert commit(client, topic) == Code.NONE
    client.broker.close()
    return damage_groups(data)


def test_a_damaged_shard_holds_no_name_and_forgets_deleted_topics_once_it_is_repaired(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        path, position = written_then_damaged(tmp_path)
        client = Client(tmp_path)
        assert shard_of_groups(client).log.coordinator_state is CoordinatorState.FAILED
        delete(client, "words")
        assert create(client, "words") == Code.NONE
        delete(client, "letters")
        take_slice(client)
        assert forgetting(tmp_path) == []
        client.broker.close()
        Client(tmp_path).broker.close()  # still damaged: the names stay noted
        assert repair.main([str(path), str(position)]) == 0
        client = Client(tmp_path)
        assert shard_of_groups(client).log.coordinator_state is CoordinatorState.ACTIVE
        assert committed(client) == {"lines": 7}
        assert commit(client, "words") == Code.NONE  # of the topic that was made again
        client.broker.close()
        assert committed(Client(tmp_path)) == {"lines": 7, "words": 7}

    run(scenario())


def test_a_repaired_shard_that_refuses_to_forget_deleted_topics_serves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        path, position = written_then_damaged(tmp_path)
        client = Client(tmp_path)
        delete(client, "words")
        assert create(client, "words") == Code.NONE
        client.broker.close()
        assert repair.main([str(path), str(position)]) == 0
        with monkeypatch.context() as patch:
            patch.setattr(PartitionLog, "append_internal", lambda log, batch: refuse(batch))
            client = Client(tmp_path)
            assert shard_of_groups(client).log.coordinator_state is CoordinatorState.FAILED
            client.broker.close()
        assert committed(Client(tmp_path)) == {"lines": 7}

    run(scenario())


def test_a_name_that_waits_for_a_shard_is_free_when_its_load_fails(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        for topic in ("words", "lines"):
            client.create(topic)
            assert commit(client, topic) == Code.NONE
        groups = client.broker.coordinators.groups
        groups.resign_shard(0)
        delete(client, "words")
        assert create(client, "words") == Code.TOPIC_ALREADY_EXISTS
        client.partition(GROUP_TOPIC).read = refuse_to_read  # type: ignore[method-assign]
        load_slice = groups.elect_shard(0)
        while not load_slice():
            pass
        assert shard_of_groups(client).log.coordinator_state is CoordinatorState.FAILED
        while take_slice(client):
            pass
        assert create(client, "words") == Code.NONE

    run(scenario())


def test_an_embedded_broker_starts_with_a_damaged_shard_and_makes_its_topics_again(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        written_then_damaged(tmp_path)
        client = Client(tmp_path)
        delete(client, "words")
        client.broker.close()

    run(scenario())
    settings = {"offsets.topic.num.partitions": 1}
    with EmbeddedBroker(tmp_path, topics={"words": 1}, settings=settings) as broker:
        assert broker.bootstrap_servers


async def stop_in_a_deletion(data: Path) -> None:
    """Leave a directory in which the topic `words` is deleted but many of its offsets are not."""
    client = Client(data)
    client.create("words")
    commit_many(client, "counts", "words", 20_000)
    answer = client.ask_later(DELETE, 5, topic_names=["words"], timeout=1_000)
    waiting = asyncio.ensure_future(answer)
    await asyncio.sleep(0)
    client.broker.close()
    waiting.cancel()
    assert forgetting(data) == ["words"]


def test_an_embedded_broker_that_has_to_stop_while_it_waits_for_a_name_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(stop_in_a_deletion(tmp_path))
    append_all = Shard.append_in_batches
    calls = count()

    def part_later(shard: Shard[Any], records: Sequence[Any]) -> None:
        if next(calls) == 40:  # not before it listens
            raise BrokenInvariant("planned")
        append_all(shard, records)

    monkeypatch.setattr(Shard, "append_in_batches", part_later)
    settings = {"offsets.topic.num.partitions": 1}
    with (
        pytest.raises(BrokenInvariant, match="planned"),
        EmbeddedBroker(tmp_path, topics={"words": 1}, settings=settings),
    ):
        pass


def test_an_embedded_broker_makes_topics_once_the_names_of_deleted_ones_are_free(
    tmp_path: Path,
) -> None:
    run(stop_in_a_deletion(tmp_path))
    settings = {"offsets.topic.num.partitions": 1}
    with EmbeddedBroker(tmp_path, topics={"words": 1}, settings=settings):
        assert forgetting(tmp_path) == []
    run(has_no_offsets(tmp_path))


async def has_no_offsets(data: Path) -> None:
    assert committed(Client(data)) == {}


def test_a_name_is_not_free_until_a_log_that_refused_has_taken_the_tombstones(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("words")
        assert commit(client, "words") == Code.NONE
        log = client.partition(GROUP_TOPIC)
        append = log.append_internal
        log.append_internal = refuse  # type: ignore[method-assign]
        delete(client, "words")
        for _ in range(3):
            assert create(client, "words") == Code.TOPIC_ALREADY_EXISTS
            assert forgetting(tmp_path) == ["words"]
            retry_refused(client)
        log.append_internal = append  # type: ignore[method-assign]
        retry_refused(client)
        assert create(client, "words") == Code.NONE
        assert committed(client) == {}
        take_slice(client)
        assert forgetting(tmp_path) == []

    run(scenario())


def retry_refused(client: Client) -> None:
    scheduler = client.scheduler
    [retry] = [each for each in scheduler.waiting if each[0] == RETRY_MS and is_retry(each[1])]
    scheduler.waiting.remove(retry)
    retry[1]()


def is_retry(callback: object) -> bool:
    [called] = getattr(callback, "args", (None,))
    return getattr(called, "__name__", "") == "_retry_refused_tombstones"
