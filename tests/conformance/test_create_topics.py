"""Test what CreateTopics creates and refuses, and that one bad topic does not harm the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.errors import Code
from tests.conformance.calls import metadata, settled
from tests.conformance.wire import Api, Client, plain


def create(
    client: Client, *topics: dict[str, Any], version: int = 4, validate_only: bool = False
) -> Any:
    """Create topics and return the responses by name."""
    response = client.send(
        Api.CREATE_TOPICS,
        version,
        topics=[{"num_partitions": 1, "replication_factor": 1, **each} for each in topics],
        timeout=10_000,
        validate_only=validate_only,
    )
    return {each.name: each for each in response.topics}


def test_a_created_topic_has_as_many_partitions_as_were_asked_for(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("topic")
    created = create(client, {"name": name, "num_partitions": 5})
    assert created[name].error_code == Code.NONE
    response = settled(lambda: metadata(client, name), (Code.UNKNOWN_TOPIC_OR_PARTITION,))
    assert len(response.topics[0].partitions) == 5


def test_the_answer_tells_the_topic_s_id_and_metadata_tells_the_same(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("topic")
    created = create(client, {"name": name, "num_partitions": 2}, version=7)[name]
    assert (created.error_code, created.num_partitions, created.replication_factor) == (0, 2, 1)
    response = settled(lambda: metadata(client, name), (Code.UNKNOWN_TOPIC_OR_PARTITION,))
    assert response.topics[0].topic_id == created.topic_id


def test_partitions_and_replicas_of_minus_1_mean_the_broker_s_default(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("topic")
    created = create(client, {"name": name, "num_partitions": -1, "replication_factor": -1})
    assert created[name].error_code == Code.NONE
    response = settled(lambda: metadata(client, name), (Code.UNKNOWN_TOPIC_OR_PARTITION,))
    assert len(response.topics[0].partitions) == 1


def test_a_topic_that_exists_is_refused_with_36(client: Client, topic: str) -> None:
    assert create(client, {"name": topic})[topic].error_code == Code.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "x" * 250])
def test_a_name_that_no_topic_can_have_is_refused_with_17(client: Client, name: str) -> None:
    assert create(client, {"name": name})[name].error_code == Code.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"num_partitions": 0}, Code.INVALID_PARTITIONS),
        ({"num_partitions": -2}, Code.INVALID_PARTITIONS),
        ({"replication_factor": 2}, Code.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 0}, Code.INVALID_REPLICATION_FACTOR),
        ({"configs": [{"name": "no.such.setting", "value": "1"}]}, Code.INVALID_CONFIG),
        ({"configs": [{"name": "retention.ms", "value": "soon"}]}, Code.INVALID_CONFIG),
    ],
    ids=lambda value: value.name.lower() if isinstance(value, Code) else str(value),
)
def test_a_topic_that_can_t_be_is_refused_with_the_reason_s_code(
    client: Client, unique: Callable[[str], str], wrong: dict[str, Any], code: Code
) -> None:
    name = unique("topic")
    assert create(client, {"name": name, **wrong})[name].error_code == code
    assert metadata(client, name).topics[0].error_code == Code.UNKNOWN_TOPIC_OR_PARTITION


def test_a_bad_topic_does_not_keep_the_good_ones_from_being_created(
    client: Client, unique: Callable[[str], str]
) -> None:
    good, bad = unique("good"), unique("bad")
    created = create(client, {"name": bad, "num_partitions": 0}, {"name": good})
    assert created[bad].error_code == Code.INVALID_PARTITIONS
    assert created[good].error_code == Code.NONE


def test_a_name_given_twice_in_one_request_is_refused_with_42(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("twice")
    created = create(client, {"name": name}, {"name": name})
    assert created[name].error_code == Code.INVALID_REQUEST
    assert metadata(client, name).topics[0].error_code == Code.UNKNOWN_TOPIC_OR_PARTITION


def test_validate_only_says_what_would_be_and_creates_nothing(
    client: Client, unique: Callable[[str], str], topic: str
) -> None:
    name = unique("dry")
    answers = create(client, {"name": name}, {"name": topic}, validate_only=True)
    assert answers[name].error_code == Code.NONE
    assert answers[topic].error_code == Code.TOPIC_ALREADY_EXISTS
    assert metadata(client, name).topics[0].error_code == Code.UNKNOWN_TOPIC_OR_PARTITION


CHARACTERS = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
ASSIGNED = "A manual partition assignment was specified, but {} was not set to -1."
INCLUDES = "The manual partition assignment includes {}."


def assigned(*brokers: tuple[int, ...]) -> dict[str, Any]:
    """Return an assignment of partitions from 0 on, each to these brokers."""
    return {
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [
            {"partition_index": index, "broker_ids": ids} for index, ids in enumerate(brokers)
        ],
    }


def configured(**configs: str | None) -> dict[str, Any]:
    pairs = {name.replace("_", "."): value for name, value in configs.items()}
    return {"configs": [{"name": name, "value": value} for name, value in pairs.items()]}


@pytest.mark.parametrize(
    ("wrong", "code", "message"),
    [
        (
            {"num_partitions": 0, "replication_factor": 2},
            Code.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            {"replication_factor": 0},
            Code.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            {"replication_factor": 2},
            Code.INVALID_REPLICATION_FACTOR,
            (
                "Unable to replicate the partition 2 time(s): The target replication factor of 2 "
                "cannot be reached because only 1 broker(s) are registered or some brokers have "
                "all their log directories cordoned."
            ),
        ),
        (
            {"num_partitions": 10_001},
            Code.POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        ),
        (
            {**assigned((1,)), "num_partitions": 2},
            Code.INVALID_REQUEST,
            ASSIGNED.format("numPartitions"),
        ),
        (
            {**assigned((1,)), "replication_factor": 1},
            Code.INVALID_REQUEST,
            ASSIGNED.format("replication factor"),
        ),
        (
            assigned((2,)),
            Code.INVALID_REPLICA_ASSIGNMENT,
            INCLUDES.format("broker 2, but no such broker is registered"),
        ),
        (
            assigned((1,), (1, 2)),
            Code.INVALID_REPLICA_ASSIGNMENT,
            INCLUDES.format("broker 2, but no such broker is registered"),
        ),
        (
            assigned((1, 1)),
            Code.INVALID_REPLICA_ASSIGNMENT,
            INCLUDES.format("the broker 1 more than once"),
        ),
        (
            assigned(()),
            Code.INVALID_REPLICA_ASSIGNMENT,
            INCLUDES.format("an empty replica list"),
        ),
        (
            {**assigned(), "assignments": [{"partition_index": 1, "broker_ids": (1,)}]},
            Code.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            {**assigned(), "assignments": [{"partition_index": 0, "broker_ids": (1,)}] * 2},
            Code.INVALID_REPLICA_ASSIGNMENT,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            configured(no_such="1"),
            Code.INVALID_CONFIG,
            "Unknown topic config name: no.such",
        ),
        (
            configured(retention_ms=None),
            Code.INVALID_CONFIG,
            "Null value not supported for topic configs: retention.ms",
        ),
        (
            configured(retention_ms="-2"),
            Code.INVALID_CONFIG,
            "Invalid value -2 for configuration retention.ms: Value must be at least -1",
        ),
        (
            configured(segment_bytes="1048575"),
            Code.INVALID_CONFIG,
            "Invalid value 1048575 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            configured(internal_segment_bytes="few"),
            Code.INVALID_CONFIG,
            "Invalid value few for configuration internal.segment.bytes: Not a number of type INT",
        ),
        (
            configured(min_compaction_lag_ms="100", max_compaction_lag_ms="10"),
            Code.INVALID_CONFIG,
            (
                "conflict topic config setting "
                "min.compaction.lag.ms (100) > max.compaction.lag.ms (10)"
            ),
        ),
        (
            {"num_partitions": 0, **configured(no_such="1")},
            Code.INVALID_CONFIG,
            "Unknown topic config name: no.such",
        ),
        (
            {"name": "a b", "num_partitions": 0},
            Code.INVALID_TOPIC_EXCEPTION,
            f"Topic name is invalid: 'a b' {CHARACTERS}",
        ),
        (
            {"name": ".."},
            Code.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: '..' is not allowed",
        ),
        (
            {"name": "__cluster_metadata"},
            Code.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
    ],
)
def test_the_refusal_says_why_and_has_nothing_else(
    client: Client, unique: Callable[[str], str], wrong: dict[str, Any], code: Code, message: str
) -> None:
    name = wrong.get("name") or unique("topic")
    assert plain(create(client, {"name": name, **wrong}, version=7)[name]) == {
        "name": name,
        "topic_id": None,
        "error_code": code,
        "error_message": message,
        "topic_config_error_code": 0,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": [],
    }


def test_a_name_that_differs_in_a_dot_and_an_underscore_collides(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("a.b_c")
    assert create(client, {"name": name})[name].error_code == Code.NONE
    other = name.replace("a.b", "a_b")
    refused = create(client, {"name": other})[other]
    assert (refused.error_code, refused.error_message) == (
        Code.INVALID_TOPIC_EXCEPTION,
        f"Topic '{other}' collides with existing topic: {name}",
    )


def test_partitions_may_be_given_as_an_assignment_to_the_one_broker(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("assigned")
    created = create(client, {"name": name, **assigned((1,), (1,))}, version=7)[name]
    assert (created.error_code, created.num_partitions, created.replication_factor) == (0, 2, 1)


@pytest.mark.parametrize("version", [5, 6, 7])
def test_the_configuration_is_told_with_where_it_is_from(
    client: Client, unique: Callable[[str], str], version: int
) -> None:
    name = unique("topic")
    asked = {"name": name, **configured(retention_ms="77", cleanup_policy="compact")}
    created = plain(create(client, asked, version=version)[name])
    found = {each["name"]: each for each in created["configs"]}
    assert len(found) == 37
    plainly = {"read_only": False, "is_sensitive": False}
    for key, value, source in (
        ("retention.ms", "77", 1),
        ("cleanup.policy", "compact", 1),
        ("segment.bytes", "1073741824", 5),
    ):
        assert found[key] == {"name": key, "value": value, "config_source": source, **plainly}
