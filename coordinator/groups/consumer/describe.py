"""Answer ConsumerGroupDescribe; partitions of deleted topics aren't shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from coordinator.groups.consumer.state import NO_TARGET, ConsumerGroup, ConsumerGroupMember
from coordinator.groups.consumer.target import select_assignor
from coordinator.groups.consumer.topics import TopicList
from coordinator.shard.map_order import sort_like_timeline_map


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """Represents one topic of an assignment with its partitions."""

    topic_id: UUID
    name: str
    partitions: list[int]


@dataclass(frozen=True, slots=True)
class DescribedConsumer:
    """Represents one member in the answer to ConsumerGroupDescribe.

    `assignment` has what the member is still to revoke, too: it is responsible for that.
    """

    member: ConsumerGroupMember
    assignment: list[DescribedTopic]
    target: list[DescribedTopic]


@dataclass(frozen=True, slots=True)
class DescribedConsumerGroup:
    """Represents one group in the answer to ConsumerGroupDescribe."""

    phase: str
    epoch: int
    target_epoch: int
    assignor: str
    members: list[DescribedConsumer]


def describe_consumer_group(
    group: ConsumerGroup, default_assignor: str, topics: TopicList
) -> DescribedConsumerGroup:
    """Describe a consumer group, its members in Kafka's order.

    `default_assignor` is taken where no member asks for one.
    """
    return DescribedConsumerGroup(
        phase=group.phase.value,
        epoch=group.epoch,
        target_epoch=group.target_epoch,
        assignor=select_assignor(group, default_assignor),
        members=[
            DescribedConsumer(
                member,
                _describe_topics(_merge_assigned_and_revoking(member), topics),
                _describe_topics(group.target_assignment.get(member.member_id, NO_TARGET), topics),
            )
            for member in map(group.members.__getitem__, sort_like_timeline_map(group.members))
        ],
    )


def _merge_assigned_and_revoking(member: ConsumerGroupMember) -> Mapping[UUID, Iterable[int]]:
    if not member.revoking:
        return member.assigned
    return {
        topic_id: (*member.assigned.get(topic_id, ()), *member.revoking.get(topic_id, ()))
        for topic_id in {**member.assigned, **member.revoking}
    }


def _describe_topics(
    partitions: Mapping[UUID, Iterable[int]], topics: TopicList
) -> list[DescribedTopic]:
    return [
        DescribedTopic(topic_id, topic.name, sorted(indexes))
        for topic_id, indexes in partitions.items()
        if (topic := topics.by_id(topic_id)) is not None
    ]
