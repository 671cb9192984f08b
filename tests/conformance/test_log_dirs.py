"""Test DescribeLogDirs and AlterReplicaLogDirs with one directory that has everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.errors import Code
from tests.conformance import batches
from tests.conformance.calls import create_topic, produce
from tests.conformance.wire import Api, Client, plain


def describe(client: Client, *topics: tuple[str, tuple[int, ...]], version: int = 5) -> Any:
    """Return the one directory, with its topics and partitions sorted."""
    asked = [{"topic": name, "partitions": indexes} for name, indexes in topics]
    answer = plain(client.send(Api.DESCRIBE_LOG_DIRS, version, topics=asked))
    assert answer.pop("error_code", 0) == Code.NONE
    [directory] = answer["results"]
    directory["topics"].sort(key=lambda topic: topic["name"])
    for topic in directory["topics"]:
        topic["partitions"].sort(key=lambda partition: partition["partition_index"])
    return directory


def partition(index: int, size: int) -> dict[str, Any]:
    return {
        "partition_index": index,
        "partition_size": size,
        "offset_lag": 0,
        "is_future_key": False,
    }


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_a_partition_s_size_is_that_of_its_batches(
    client: Client, unique: Callable[[str], str], version: int
) -> None:
    name = unique("sized")
    create_topic(client, name, partitions=3)
    data = batches.encode(b"x" * 1_000)
    for _ in range(2):
        assert produce(client, name, data, partition=1).error_code == Code.NONE
    found = describe(client, (name, (0, 1, 7)), ("nope", (0,)), version=version)
    sizes = [partition(0, 0), partition(1, 2 * len(data))]
    assert found["topics"] == [{"name": name, "partitions": sizes}]
    assert found["error_code"] == Code.NONE
    assert found["log_dir"].startswith("/")
    if version >= 4:
        assert 0 < found["usable_bytes"] < found["total_bytes"]
    if version >= 5:
        assert found["is_cordoned"] is False


def test_no_list_means_all_partitions_and_an_empty_one_none(client: Client, topic: str) -> None:
    everything = plain(client.send(Api.DESCRIBE_LOG_DIRS, 5, topics=None))["results"][0]
    names = {each["name"] for each in everything["topics"]}
    assert topic in names
    assert "__cluster_metadata" not in names
    assert describe(client)["topics"] == []


def test_what_is_asked_for_twice_is_told_once(client: Client, topic: str) -> None:
    found = describe(client, (topic, (0, 0)), (topic, (0,)))
    assert found["topics"] == [{"name": topic, "partitions": [partition(0, 0)]}]


def move(
    client: Client, *dirs: tuple[str, str, tuple[int, ...]], version: int = 2
) -> dict[tuple[str, int], int]:
    """Move partitions to directories; return the code of each partition."""
    response = client.send(
        Api.ALTER_REPLICA_LOG_DIRS,
        version,
        dirs=[
            {"path": path, "topics": [{"name": name, "partitions": indexes}]}
            for path, name, indexes in dirs
        ],
    )
    return {
        (topic.topic_name, partition.partition_index): int(partition.error_code)
        for topic in response.results
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", [1, 2])
def test_a_partition_is_where_it_is_and_can_be_nowhere_else(
    client: Client, topic: str, other_topic: str, version: int
) -> None:
    here = describe(client)["log_dir"]
    unknown = Code.UNKNOWN_TOPIC_OR_PARTITION
    outcomes = move(
        client,
        (here, topic, (0, 7)),
        ("/nowhere", other_topic, (0,)),
        ("relative", "nope", (3,)),
        version=version,
    )
    assert outcomes == {
        (topic, 0): Code.NONE,
        (topic, 7): unknown,
        (other_topic, 0): Code.LOG_DIR_NOT_FOUND,
        ("nope", 3): Code.LOG_DIR_NOT_FOUND,
    }
    assert move(client, (here, "nope", (0,))) == {("nope", 0): unknown}
    assert move(client) == {}
