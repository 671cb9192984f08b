"""Test that CreatePartitions adds partitions, removes none, and only on the one broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.errors import Code
from tests.conformance import batches
from tests.conformance.calls import create_topic, eventually, fetch, metadata, produce
from tests.conformance.wire import Api, Client, plain


@pytest.fixture
def two(client: Client, unique: Callable[[str], str]) -> str:
    """Create a topic of two partitions."""
    name = unique("two")
    create_topic(client, name, partitions=2)
    return name


def asked(name: str, count: int, assignments: list[tuple[int, ...]] | None = None) -> Any:
    brokers = None if assignments is None else [{"broker_ids": ids} for ids in assignments]
    return {"name": name, "count": count, "assignments": brokers}


def grow(
    client: Client, *topics: dict[str, Any], version: int = 3, validate_only: bool = False
) -> list[dict[str, Any]]:
    response = client.send(
        Api.CREATE_PARTITIONS, version, topics=topics, timeout=10_000, validate_only=validate_only
    )
    results: list[dict[str, Any]] = plain(response)["results"]
    return results


def result(name: str, code: Code = Code.NONE, message: str | None = None) -> dict[str, Any]:
    return {"name": name, "error_code": code, "error_message": message}


def count_of(client: Client, name: str) -> int:
    return len(metadata(client, name).topics[0].partitions)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_the_new_partitions_can_be_written_to_and_the_old_ones_keep_their_records(
    client: Client, two: str, version: int
) -> None:
    before = batches.encode(b"before")
    assert produce(client, two, before, partition=1).error_code == Code.NONE
    assert grow(client, asked(two, 4), version=version) == [result(two)]
    assert eventually(lambda: count_of(client, two), 4) == 4

    def written() -> int:
        return int(produce(client, two, before, partition=3).error_code)

    assert eventually(written, 0) == Code.NONE
    assert fetch(client, two, 0, partition=1).high_watermark == 1


def test_validate_only_says_what_would_be_and_changes_nothing(client: Client, two: str) -> None:
    for _ in range(2):
        assert grow(client, asked(two, 4), validate_only=True) == [result(two)]
    assert count_of(client, two) == 2


FEW = "Attempted to add {} additional partition(s), but only {} assignment(s) were specified."
INCLUDES = "The manual partition assignment includes {}."


@pytest.mark.parametrize(
    ("count", "assignments", "code", "message"),
    [
        (2, None, Code.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        *(
            (
                count,
                None,
                Code.INVALID_PARTITIONS,
                f"The topic {{}} currently has 2 partition(s); {count} would not be an increase.",
            )
            for count in (1, 0, -1)
        ),
        (4, [(1,)], Code.INVALID_REPLICA_ASSIGNMENT, FEW.format(2, 1)),
        (3, [(1,), (1,)], Code.INVALID_REPLICA_ASSIGNMENT, FEW.format(1, 2)),
        (3, [], Code.INVALID_REPLICA_ASSIGNMENT, FEW.format(1, 0)),
        (
            3,
            [(1, 2)],
            Code.INVALID_REPLICA_ASSIGNMENT,
            INCLUDES.format("broker 2, but no such broker is registered"),
        ),
        (
            3,
            [(1, 1)],
            Code.INVALID_REPLICA_ASSIGNMENT,
            INCLUDES.format("the broker 1 more than once"),
        ),
        (3, [()], Code.INVALID_REPLICA_ASSIGNMENT, INCLUDES.format("an empty replica list")),
    ],
)
def test_what_can_t_be_is_refused_with_the_reason(
    client: Client,
    two: str,
    count: int,
    assignments: list[tuple[int, ...]] | None,
    code: Code,
    message: str,
) -> None:
    refused = result(two, code, message.format(two))
    assert grow(client, asked(two, count, assignments)) == [refused]
    assert count_of(client, two) == 2


def test_partitions_may_be_assigned_to_the_one_broker(client: Client, two: str) -> None:
    assert grow(client, asked(two, 4, [(1,), (1,)])) == [result(two)]
    assert eventually(lambda: count_of(client, two), 4) == 4


@pytest.mark.parametrize("name", ["nope", "a b", "__cluster_metadata"])
def test_a_topic_that_there_isn_t_is_refused_with_3(client: Client, name: str) -> None:
    assert grow(client, asked(name, 5)) == [result(name, Code.UNKNOWN_TOPIC_OR_PARTITION)]


def test_each_topic_is_answered_for_itself_and_one_named_twice_once(
    client: Client, two: str, topic: str
) -> None:
    results = grow(client, asked(two, 3), asked(two, 4), asked(topic, 2))
    assert sorted(results, key=lambda each: -each["error_code"]) == [
        result(two, Code.INVALID_REQUEST, "Duplicate topic name."),
        result(topic),
    ]
