"""Test that DescribeTopicPartitions returns topics a page at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.errors import Code
from tests.conformance.calls import create_topic, topic_id
from tests.conformance.wire import Api, Client, plain

NOT_KNOWN = -(2**31)
Page = tuple[list[tuple[str, list[int]]], Any]


@pytest.fixture
def stem(client: Client, unique: Callable[[str], str]) -> str:
    """Create the topics `<stem>1` and `<stem>2` with 2 partitions, and `<stem>3` with 5."""
    stem = unique("paged") + "-"
    for number, partitions in ((1, 2), (2, 2), (3, 5)):
        create_topic(client, f"{stem}{number}", partitions=partitions)
    return stem


def ask(
    client: Client, *names: str, limit: int = 2_000, cursor: tuple[str, int] | None = None
) -> Any:
    at = cursor and {"topic_name": cursor[0], "partition_index": cursor[1]}
    return plain(
        client.send(
            Api.DESCRIBE_TOPIC_PARTITIONS,
            0,
            topics=[{"name": name} for name in names],
            response_partition_limit=limit,
            cursor=at,
        )
    )


def page(client: Client, *names: str, **options: Any) -> Page:
    """Return each topic's partitions on a page, and the cursor of the next one."""
    found = ask(client, *names, **options)
    topics = [
        (topic["name"], [each["partition_index"] for each in topic["partitions"]])
        for topic in found["topics"]
    ]
    following = found["next_cursor"]
    return topics, following and (following["topic_name"], following["partition_index"])


def test_a_topic_is_told_with_its_one_replica(client: Client, topic: str) -> None:
    assert ask(client, topic, topic) == {
        "topics": [
            {
                "error_code": 0,
                "name": topic,
                "topic_id": topic_id(client, topic),
                "is_internal": False,
                "partitions": [
                    {
                        "error_code": 0,
                        "partition_index": 0,
                        "leader_id": 1,
                        "leader_epoch": 0,
                        "replica_nodes": [1],
                        "isr_nodes": [1],
                        "eligible_leader_replicas": [],
                        "last_known_elr": [],
                        "offline_replicas": [],
                    }
                ],
                "topic_authorized_operations": 3_576,
            }
        ],
        "next_cursor": None,
    }


def test_pages_go_by_topic_name_and_partition(client: Client, stem: str) -> None:
    one, two, three = (f"{stem}{number}" for number in (1, 2, 3))
    names = (three, one, two)
    first = page(client, *names, limit=3)
    assert first == ([(one, [0, 1]), (two, [0])], (two, 1))
    second = page(client, *names, limit=3, cursor=(two, 1))
    assert second == ([(two, [1]), (three, [0, 1])], (three, 2))
    assert page(client, *names, limit=3, cursor=(three, 2)) == ([(three, [2, 3, 4])], None)
    assert page(client, *names, limit=2) == ([(one, [0, 1])], (two, 0))
    assert page(client, one, two, limit=4) == ([(one, [0, 1]), (two, [0, 1])], None)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_has_one_partition_at_least(client: Client, stem: str, limit: int) -> None:
    assert page(client, f"{stem}1", limit=limit) == ([(f"{stem}1", [0])], (f"{stem}1", 1))


def test_no_names_mean_all_topics_from_the_cursor_on(client: Client, stem: str) -> None:
    first = page(client, limit=3, cursor=(f"{stem}1", 0))
    assert first == ([(f"{stem}1", [0, 1]), (f"{stem}2", [0])], (f"{stem}2", 1))
    between = page(client, limit=1, cursor=(f"{stem}11", 9))
    assert between == ([(f"{stem}2", [0])], (f"{stem}2", 1))
    assert page(client, cursor=("~", 0)) == ([], None)
    names = {topic["name"] for topic in ask(client)["topics"]}
    assert f"{stem}3" in names
    assert "__cluster_metadata" not in names


def test_a_topic_that_there_isn_t_takes_no_room(client: Client, stem: str) -> None:
    found = ask(client, f"{stem}0", f"{stem}1", f"{stem}10", limit=2)
    assert [(each["name"], each["error_code"]) for each in found["topics"]] == [
        (f"{stem}0", Code.UNKNOWN_TOPIC_OR_PARTITION),
        (f"{stem}1", Code.NONE),
    ]
    assert found["next_cursor"] == {"topic_name": f"{stem}10", "partition_index": 0}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("nope", Code.UNKNOWN_TOPIC_OR_PARTITION),
        ("__cluster_metadata", Code.UNKNOWN_TOPIC_OR_PARTITION),
        ("a b", Code.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_a_topic_that_can_t_be_described_has_the_reason_s_code(
    client: Client, name: str, code: Code
) -> None:
    [found] = ask(client, name)["topics"]
    assert found == {
        "error_code": code,
        "name": name,
        "topic_id": None,
        "is_internal": False,
        "partitions": [],
        "topic_authorized_operations": 3_576,
    }


def test_a_cursor_beyond_the_last_partition_finds_none(client: Client, topic: str) -> None:
    assert page(client, topic, cursor=(topic, 7)) == ([(topic, [])], None)


@pytest.mark.parametrize("cursor", [("a", 0), ("~", 0), ("", 0), (None, -1)])
def test_a_cursor_that_can_t_be_is_refused_for_each_topic(
    client: Client, topic: str, other_topic: str, cursor: tuple[str | None, int]
) -> None:
    at = (cursor[0] if cursor[0] is not None else topic, cursor[1])
    found = ask(client, topic, other_topic, cursor=at)
    assert [
        (each["name"], each["error_code"], each["topic_authorized_operations"])
        for each in found["topics"]
    ] == [(name, Code.INVALID_REQUEST, NOT_KNOWN) for name in (topic, other_topic)]
