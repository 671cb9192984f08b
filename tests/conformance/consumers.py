"""Provide members of a consumer group (KIP-848) that send single heartbeats for a case."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from coordinator.errors import Code
from coordinator.shard.placement import partition_for
from tests.brokers import SETTINGS
from tests.conformance.wire import Api, Client
from tests.processes import HANG_LIMIT_S

REBALANCE_TIMEOUT_MS = 60_000
JOIN, LEAVE, AWAY = 0, -1, -2

Partitions = dict[UUID, set[int]]


@dataclass
class Consumer:
    """Represents one member: its last assignment, and what it reports as owned."""

    client: Client
    group: str
    instance_id: str | None = None
    version: int = 1
    member_id: str = field(default_factory=lambda: str(uuid4()))
    epoch: int = 0
    assigned: Partitions = field(default_factory=dict)

    def send(self, **fields: Any) -> Any:
        """Send a heartbeat with just these fields and the member's own id and epoch."""
        given = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance_id,
            "topic_partitions": None,
            **fields,
        }
        return self.client.send(Api.CONSUMER_GROUP_HEARTBEAT, self.version, **given)

    def beat(self, **fields: Any) -> Any:
        """Send a heartbeat that must be accepted, and apply its response."""
        response = self.send(**fields)
        assert response.error_code == Code.NONE, response
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.assigned = partitions_of(response.assignment)
        return response

    def join(self, *topics: str, **fields: Any) -> Any:
        """Join, or join again, subscribed to these topics."""
        self.assigned = {}
        return self.beat(
            **{
                "member_epoch": JOIN,
                "rebalance_timeout": REBALANCE_TIMEOUT_MS,
                "subscribed_topic_names": topics,
                "topic_partitions": (),
                **fields,
            }
        )

    def acknowledge(self, **fields: Any) -> Any:
        """Send a heartbeat that reports exactly the assigned partitions as owned."""
        return self.beat(topic_partitions=encode_partitions(self.assigned), **fields)

    def leave(self, epoch: int = LEAVE) -> Any:
        return self.send(member_epoch=epoch)

    def partitions(self, topic_id: UUID) -> list[int]:
        return sorted(self.assigned.get(topic_id, ()))


def encode_partitions(partitions: Mapping[UUID, Iterable[int]]) -> list[dict[str, Any]]:
    """Return partitions as the fields of a heartbeat."""
    return [
        {"topic_id": topic_id, "partitions": sorted(indexes)}
        for topic_id, indexes in partitions.items()
    ]


def partitions_of(assignment: Any) -> Partitions:
    return {topic.topic_id: set(topic.partitions) for topic in assignment.topic_partitions}


def acknowledge_until(is_so: Callable[[], bool], *members: Consumer) -> None:
    """Let members acknowledge their assignments in turn until the condition holds."""
    deadline = time.monotonic() + HANG_LIMIT_S
    while not is_so():
        for member in members:
            member.acknowledge()
        assert time.monotonic() < deadline, [(m.epoch, m.assigned) for m in members]
        time.sleep(0.005)


def await_known(client: Client, group: str, topic: str) -> None:
    """Wait until the coordinator of the group knows the topic.

    Real Kafka's coordinator gets it a moment later in each of its partitions. The check uses
    another group of the same partition.
    """
    partitions = int(SETTINGS["offsets.topic.num.partitions"])
    names = (f"{group}-{i}" for i in count())
    other = next(
        name
        for name in names
        if partition_for(name, partitions) == partition_for(group, partitions)
    )
    someone = Consumer(client, other)
    deadline = time.monotonic() + HANG_LIMIT_S
    while not someone.assigned:
        someone.join(topic)
        assert time.monotonic() < deadline, f"{topic} stays unknown"
    assert someone.leave().error_code == Code.NONE


def describe(client: Client, group: str, version: int = 1, **fields: Any) -> Any:
    """Return ConsumerGroupDescribe's part about one group."""
    response = client.send(
        Api.CONSUMER_GROUP_DESCRIBE,
        version,
        group_ids=[group],
        **{"include_authorized_operations": False, **fields},
    )
    [found] = response.groups
    return found
