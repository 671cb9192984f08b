"""The offsets of a topic go with it, so that its namesake starts with none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coordinator.errors import Code
from tests.unit.coordinator.api.client import Client, run

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
    """The offset of each topic that the group has one of."""
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
