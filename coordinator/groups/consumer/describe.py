"""Answer ConsumerGroupDescribe; partitions of deleted topics aren't shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from coordinator.groups.consumer.state import NO_TARGET, ConsumerGroup, Member
from coordinator.groups.consumer.target import preferred_assignor
from coordinator.groups.consumer.topics import TopicList


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

    member: Member
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


def describe(group: ConsumerGroup, assignor: str, topics: TopicList) -> DescribedConsumerGroup:
    """Describe a consumer group; `default_assignor` is taken where no member asks for one."""
    return DescribedConsumerGroup(
        phase=group.phase.value,
        epoch=group.epoch,
        target_epoch=group.target_epoch,
        assignor=preferred_assignor(group, assignor),
        members=[
            DescribedConsumer(
                member,
                _named(_united(member), topics),
                _named(group.target.get(member.member_id, NO_TARGET), topics),
            )
            for member in group.members.values()
        ],
    )


def _united(member: Member) -> Mapping[UUID, Iterable[int]]:
    if not member.revoking:
        return member.assigned
    return {
        topic_id: (*member.assigned.get(topic_id, ()), *member.revoking.get(topic_id, ()))
        for topic_id in {**member.assigned, **member.revoking}
    }


def _named(partitions: Mapping[UUID, Iterable[int]], topics: TopicList) -> list[DescribedTopic]:
    return [
        DescribedTopic(topic_id, topic.name, sorted(indexes))
        for topic_id, indexes in partitions.items()
        if (topic := topics.by_id(topic_id)) is not None
    ]
