"""Test that clients don't see the broker's metadata log as a topic, as in Kafka 4.3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coordinator.coordinators import METADATA_TOPIC, TRANSACTION_TOPIC
from coordinator.errors import Code
from tests.unit.coordinator.api.client import Client, batch, run
from tests.unit.coordinator.api.test_topics import metadata, topic

NAMED = {"name": METADATA_TOPIC, "topic_id": None}
NO_OPERATIONS = {"include_topic_authorized_operations": False}


def metadata_log(client: Client) -> Any:
    found = client.broker.topics.find_including_hidden(METADATA_TOPIC)
    assert found is not None
    return found


def test_it_is_in_no_list_and_found_by_no_name_or_id(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        everything = client.ask(3, 12, topics=None, allow_auto_topic_creation=True, **NO_OPERATIONS)
        assert METADATA_TOPIC not in {found.name for found in everything.topics}
        for create in (False, True):
            [found] = metadata(client, METADATA_TOPIC, create=create).topics
            assert (found.error_code, found.is_internal, found.partitions) == (3, False, ())
        by_id = [{"name": None, "topic_id": metadata_log(client).id}]
        answer = client.ask(3, 12, topics=by_id, allow_auto_topic_creation=True, **NO_OPERATIONS)
        assert answer.topics[0].error_code == Code.UNKNOWN_TOPIC_ID

    run(scenario())


def test_it_is_neither_written_nor_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        written = client.produce(METADATA_TOPIC, batch(b"v"))
        assert written.error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
        wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000}
        fetched = client.ask(
            1,
            12,
            max_wait=0,
            min_bytes=0,
            max_bytes=1_000,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[{"topic": METADATA_TOPIC, "partitions": [wanted]}],
            forgotten_topics_data=(),
            rack_id="",
        )
        [read] = fetched.responses[0].partitions
        assert (read.error_code, read.records) == (Code.UNKNOWN_TOPIC_OR_PARTITION, b"")
        found = client.ask(
            2,
            7,
            replica_id=-1,
            isolation_level=0,
            topics=[
                {"name": METADATA_TOPIC, "partitions": [{"partition_index": 0, "timestamp": -1}]}
            ],
        )
        assert found.topics[0].partitions[0].error_code == Code.UNKNOWN_TOPIC_OR_PARTITION

    run(scenario())


def test_it_is_neither_made_nor_deleted_nor_described(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        wanted = [topic(METADATA_TOPIC), topic("__cluster.metadata")]
        made = client.ask(19, 7, topics=wanted, timeout=1_000, validate_only=False).topics
        assert [(one.error_code, one.error_message) for one in made] == [
            (Code.INVALID_REQUEST, "Creation of internal topic __cluster_metadata is prohibited."),
            (Code.NONE, None),
        ]
        known = metadata_log(client).id
        named = [NAMED, {"name": None, "topic_id": known}]
        deleted = client.ask(20, 6, topics=named, timeout=1_000).responses
        assert [one.error_code for one in deleted] == [
            Code.UNKNOWN_TOPIC_OR_PARTITION,
            Code.UNKNOWN_TOPIC_ID,
        ]
        resource = {"resource_type": 2, "resource_name": METADATA_TOPIC, "configuration_keys": None}
        described = client.ask(
            32, 4, resources=[resource], include_synonyms=False, include_documentation=False
        )
        assert described.results[0].error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
        assert metadata_log(client).id == known

    run(scenario())


@pytest.mark.parametrize("name", [METADATA_TOPIC, TRANSACTION_TOPIC])
def test_no_marker_gets_among_the_records_of_a_coordinator(tmp_path: Path, name: str) -> None:
    """Check that a marker is refused that would keep the broker from starting again."""

    async def scenario() -> None:
        client = Client(tmp_path)
        marker = {
            "producer_id": 5,
            "producer_epoch": 0,
            "transaction_result": True,
            "topics": [{"name": name, "partition_indexes": [0]}],
            "coordinator_epoch": 0,
        }
        [answer] = client.ask(27, 1, markers=[marker]).markers
        [partition] = answer.topics[0].partitions
        assert partition.error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
        assert client.partition(name).end_offset == 0
        client.broker.close()
        Client(tmp_path).broker.close()

    run(scenario())


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (METADATA_TOPIC, Code.UNKNOWN_TOPIC_OR_PARTITION),
        (TRANSACTION_TOPIC, Code.TOPIC_AUTHORIZATION_FAILED),
        ("__consumer_offsets", Code.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_no_client_takes_the_brokers_own_into_a_transaction(
    tmp_path: Path, name: str, code: Code
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t")
        assert client.begin(name, "t") == {name: code, "t": Code.OPERATION_NOT_ATTEMPTED}

    run(scenario())
