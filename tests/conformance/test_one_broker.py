"""Test requests about several brokers: elections, reassignments, the quorum, the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.errors import Code
from tests.conformance.calls import create_topic
from tests.conformance.wire import Api, Client, plain

NOT_ASKED_FOR = -(2**31)
UNKNOWN = Code.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def two(client: Client, unique: Callable[[str], str]) -> str:
    """Create a topic of two partitions."""
    name = unique("two")
    create_topic(client, name, partitions=2)
    return name


# Elections


def elect(client: Client, *asked: tuple[str, tuple[int, ...]], version: int, kind: int = 0) -> Any:
    return plain(
        client.send(
            Api.ELECT_LEADERS,
            version,
            topic_partitions=[{"topic": name, "partitions": indexes} for name, indexes in asked],
            **({"election_type": kind} if version >= 1 else {}),
        )
    )


def elected(name: str, *outcomes: tuple[int, Code, str]) -> dict[str, Any]:
    parts = [
        {"partition_id": index, "error_code": code, "error_message": message}
        for index, code, message in outcomes
    ]
    return {"topic": name, "partition_result": parts}


@pytest.mark.parametrize(("version", "kind"), [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)])
def test_no_partition_needs_an_election(client: Client, two: str, version: int, kind: int) -> None:
    found = elect(client, (two, (0, 1, 9)), ("nope", (0,)), version=version, kind=kind)
    not_needed = Code.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    assert found.pop("error_code", 0) == Code.NONE
    results = sorted(found["replica_election_results"], key=lambda each: each["topic"] != two)
    assert results == [
        elected(
            two,
            (0, *not_needed),
            (1, *not_needed),
            (9, UNKNOWN, f"No such partition as {two}-9"),
        ),
        elected("nope", (0, UNKNOWN, "No such topic as nope")),
    ]


def test_an_election_that_there_isn_t_is_refused_at_the_top_and_for_each_partition(
    client: Client, topic: str
) -> None:
    refused = elected(topic, (0, Code.INVALID_REQUEST, "Unknown election type 2"))
    assert elect(client, (topic, (0,)), version=2, kind=2) == {
        "error_code": Code.INVALID_REQUEST,
        "replica_election_results": [refused],
    }


def test_an_election_of_all_partitions_names_the_topics(client: Client, topic: str) -> None:
    found = plain(client.send(Api.ELECT_LEADERS, 2, election_type=0, topic_partitions=None))
    assert elected(topic) in found["replica_election_results"]


# Reassignments


def reassign(
    client: Client, *asked: tuple[str, int, tuple[int, ...] | None], version: int = 1
) -> Any:
    topics = [
        {"name": name, "partitions": [{"partition_index": index, "replicas": replicas}]}
        for name, index, replicas in asked
    ]
    return plain(client.send(Api.ALTER_PARTITION_REASSIGNMENTS, version, topics=topics))


INCLUDES = "The manual partition assignment includes {}."


@pytest.mark.parametrize(
    ("index", "replicas", "code", "message"),
    [
        (0, (1,), Code.NONE, None),
        (0, None, Code.NO_REASSIGNMENT_IN_PROGRESS, None),
        (9, (1,), UNKNOWN, "Unable to find partition {}:9."),
        (
            0,
            (2,),
            Code.INVALID_REPLICA_ASSIGNMENT,
            INCLUDES.format("broker 2, but no such broker is registered"),
        ),
        (
            0,
            (1, 1),
            Code.INVALID_REPLICA_ASSIGNMENT,
            INCLUDES.format("the broker 1 more than once"),
        ),
        (0, (), Code.INVALID_REPLICA_ASSIGNMENT, INCLUDES.format("an empty replica list")),
    ],
)
def test_a_partition_can_be_on_the_one_broker_only(
    client: Client,
    topic: str,
    index: int,
    replicas: tuple[int, ...] | None,
    code: Code,
    message: str | None,
) -> None:
    outcome = {
        "partition_index": index,
        "error_code": code,
        "error_message": message and message.format(topic),
    }
    assert reassign(client, (topic, index, replicas)) == {
        "allow_replication_factor_change": True,
        "error_code": Code.NONE,
        "error_message": None,
        "responses": [{"name": topic, "partitions": [outcome]}],
    }


def test_partitions_of_topics_that_there_aren_t_can_t_be_reassigned(client: Client) -> None:
    for name in ("nope", "__cluster_metadata"):
        [topic] = reassign(client, (name, 0, (1,)), version=0)["responses"]
        message = f"Unable to find a topic named {name}."
        assert topic["partitions"] == [
            {"partition_index": 0, "error_code": UNKNOWN, "error_message": message}
        ]
    assert reassign(client)["responses"] == []


def test_no_reassignment_is_under_way(client: Client, topic: str) -> None:
    nothing: dict[str, Any] = {"error_code": Code.NONE, "error_message": None, "topics": []}
    some = [{"name": topic, "partition_indexes": (0,)}, {"name": "nope", "partition_indexes": (3,)}]
    for topics in (None, [], some):
        assert plain(client.send(Api.LIST_PARTITION_REASSIGNMENTS, 0, topics=topics)) == nothing


# The quorum


def quorum(client: Client, *asked: tuple[str, int], version: int = 2) -> Any:
    topics = [
        {"topic_name": name, "partitions": [{"partition_index": index}]} for name, index in asked
    ]
    return plain(client.send(Api.DESCRIBE_QUORUM, version, topics=topics))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_one_broker_is_the_quorum(client: Client, version: int) -> None:
    answer = quorum(client, ("__cluster_metadata", 0), version=version)
    assert answer["error_code"] == Code.NONE
    [topic] = answer["topics"]
    [partition] = topic["partitions"]
    [voter] = partition["current_voters"]
    assert topic["topic_name"] == "__cluster_metadata"
    assert (partition["error_code"], partition["partition_index"]) == (Code.NONE, 0)
    assert (partition["leader_id"], voter["replica_id"], partition["observers"]) == (1, 1, [])
    assert partition["leader_epoch"] >= 1
    assert voter["log_end_offset"] == partition["high_watermark"]
    if version >= 1:
        assert voter["last_fetch_timestamp"] == voter["last_caught_up_timestamp"] > 0
    if version >= 2:
        assert (answer["error_message"], partition["error_message"]) == ("", "")
        assert [node["node_id"] for node in answer["nodes"]] == [1]


@pytest.mark.parametrize(
    "asked",
    [
        [("nope", 0)],
        [("__cluster_metadata", 1)],
        [("__cluster_metadata", 0), ("nope", 0)],
        [],
    ],
)
def test_the_quorum_of_anything_else_is_refused_with_3(
    client: Client, asked: list[tuple[str, int]]
) -> None:
    assert quorum(client, *asked) == {
        "error_code": Code.NONE,
        "error_message": "",
        "topics": [
            {
                "topic_name": name,
                "partitions": [
                    {
                        "partition_index": index,
                        "error_code": UNKNOWN,
                        "error_message": "This server does not host this topic-partition.",
                        "leader_id": 0,
                        "leader_epoch": 0,
                        "high_watermark": 0,
                        "current_voters": [],
                        "observers": [],
                    }
                ],
            }
            for name, index in asked
        ],
        "nodes": [],
    }


# The cluster


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_cluster_is_one_broker(client: Client, version: int) -> None:
    answer = plain(
        client.send(
            Api.DESCRIBE_CLUSTER,
            version,
            include_cluster_authorized_operations=version == 0,
            **({"endpoint_type": 1} if version >= 1 else {}),
        )
    )
    [broker] = answer.pop("brokers")
    assert len(answer.pop("cluster_id")) == 22
    assert answer == {
        "error_code": Code.NONE,
        "error_message": None,
        "controller_id": 1,
        "cluster_authorized_operations": 8_096 if version == 0 else NOT_ASKED_FOR,
        **({"endpoint_type": 1} if version >= 1 else {}),
    }
    assert (broker["broker_id"], broker["rack"]) == (1, None)


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        (
            2,
            Code.MISMATCHED_ENDPOINT_TYPE,
            (
                "The request was sent to an endpoint of type BROKER, "
                "but we wanted an endpoint of type CONTROLLER"
            ),
        ),
        (0, Code.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 0"),
        (3, Code.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 3"),
    ],
)
def test_only_brokers_are_told_about(client: Client, kind: int, code: Code, message: str) -> None:
    assert plain(client.send(Api.DESCRIBE_CLUSTER, 1, endpoint_type=kind)) == {
        "error_code": code,
        "error_message": message,
        "endpoint_type": 1,
        "cluster_id": "",
        "controller_id": -1,
        "brokers": [],
        "cluster_authorized_operations": NOT_ASKED_FOR,
    }


def test_a_broker_that_there_isn_t_can_t_be_forgotten(client: Client) -> None:
    assert plain(client.send(Api.UNREGISTER_BROKER, 0, broker_id=7)) == {
        "error_code": Code.BROKER_ID_NOT_REGISTERED,
        "error_message": "Broker ID 7 is not currently registered",
    }
