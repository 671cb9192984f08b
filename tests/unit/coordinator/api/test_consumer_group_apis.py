"""Test what the APIs of consumer groups (KIP-848) answer when their shard fails or is away."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.api import consumer_group_describe, consumer_group_heartbeat
from coordinator.coordinators import GROUP_TOPIC
from coordinator.errors import Code
from tests.unit.coordinator.api.apis import FakeBroker

JOIN: dict[str, Any] = {
    "group_id": "counts",
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout": 1_000,
    "subscribed_topic_names": ["words"],
    "topic_partitions": (),
}


def describe(broker: FakeBroker, *groups: str) -> list[Any]:
    response = broker.send(
        consumer_group_describe, 1, group_ids=groups, include_authorized_operations=False
    )
    found: list[Any] = list(response.groups)
    return found


def test_a_log_that_can_t_be_written_to_changes_nothing() -> None:
    broker = FakeBroker()
    for log in broker.topics.get(GROUP_TOPIC).partitions:
        log.fail_after = 0
    answer = broker.send(consumer_group_heartbeat, 1, **JOIN)
    assert (answer.error_code, answer.error_message) == (Code.NOT_COORDINATOR, None)
    assert describe(broker, "counts")[0].error_code == Code.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("loading", [True, False], ids=["loading", "resigned"])
def test_a_shard_that_is_not_there_says_so_and_its_groups_outlive_it(loading: bool) -> None:
    broker = FakeBroker()
    broker.send(consumer_group_heartbeat, 1, **JOIN)
    groups = broker.coordinators.groups
    index = groups.partition_of("counts")
    groups.resign_shard(index)
    expected = Code.NOT_COORDINATOR
    load_slice = None
    if loading:
        load_slice = groups.elect_shard(index)
        expected = Code.COORDINATOR_LOAD_IN_PROGRESS
    heartbeat = {"group_id": "counts", "member_id": "m", "member_epoch": 2}
    answer = broker.send(consumer_group_heartbeat, 1, **heartbeat, topic_partitions=None)
    assert (answer.error_code, answer.error_message) == (expected, None)
    other = next(name for name in "abcdef" if groups.partition_of(name) != index)
    refused, unknown = describe(broker, "counts", other)
    assert (refused.error_code, refused.error_message) == (expected, None)
    assert unknown.error_code == Code.GROUP_ID_NOT_FOUND
    (load_slice or groups.elect_shard(index))()
    answer = broker.send(consumer_group_heartbeat, 1, **heartbeat, topic_partitions=None)
    assert (answer.error_code, answer.member_epoch) == (Code.NONE, 2)
