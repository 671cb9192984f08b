"""CreateTopics: what is created, what is refused, and that one bad topic does not harm the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.errors import Code
from tests.conformance.calls import metadata, settled
from tests.conformance.wire import Api, Client


def create(
    client: Client, *topics: dict[str, Any], version: int = 4, validate_only: bool = False
) -> Any:
    """The answers by name."""
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
