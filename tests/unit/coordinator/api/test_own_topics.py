"""Test which changes of its internal topics this broker refuses, and which a setting forbids."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.errors import Code
from tests.unit.coordinator.api.client import Client, run

CREATE, DELETE, CREATE_PARTITIONS = 19, 20, 37
OWN = ("__consumer_offsets", "__transaction_state")


@pytest.mark.parametrize(
    ("version", "code"), [(1, Code.INVALID_REQUEST), *((v, 73) for v in range(3, 7))]
)
def test_a_broker_may_forbid_to_delete_topics(tmp_path: Path, version: int, code: int) -> None:
    async def scenario() -> None:
        client = Client(tmp_path, delete_topic_enable=False)
        client.create("t")
        answer = client.ask(
            DELETE,
            version,
            topic_names=("t", "nope"),
            topics=[{"name": name, "topic_id": None} for name in ("t", "nope")],
            timeout=1_000,
        )
        found = [(each.name, each.error_code) for each in answer.responses]
        assert found == [("t", code), ("nope", code)]
        assert client.broker.topics.get("t") is not None

    run(scenario())


@pytest.mark.parametrize("name", OWN)
def test_a_topic_that_holds_the_coordinators_state_is_neither_deleted_nor_grown(
    tmp_path: Path, name: str
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        deleted = client.ask(
            DELETE, 6, topics=[{"name": name, "topic_id": None}], timeout=1_000
        ).responses
        grown = client.ask(
            CREATE_PARTITIONS,
            3,
            topics=[{"name": name, "count": 99, "assignments": None}],
            timeout=1_000,
            validate_only=False,
        ).results
        assert [each.error_code for each in (*deleted, *grown)] == [
            Code.INVALID_TOPIC_EXCEPTION,
            Code.INVALID_TOPIC_EXCEPTION,
        ]
        topic = client.broker.topics.get(name)
        assert topic is not None
        assert len(topic.partitions) == 1

    run(scenario())


@pytest.mark.parametrize("name", OWN)
def test_a_topic_that_holds_the_coordinators_state_is_there_from_the_start(
    tmp_path: Path, name: str
) -> None:
    async def scenario() -> None:
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
        answer = Client(tmp_path).ask(
            CREATE,
            7,
            topics=[{**topic, "assignments": (), "configs": ()}],
            timeout=1_000,
            validate_only=False,
        )
        assert answer.topics[0].error_code == Code.TOPIC_ALREADY_EXISTS

    run(scenario())
