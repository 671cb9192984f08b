"""A member leaves, for good or to come back, or is put out of its group."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from coordinator.groups.consumer.facts import ConsumerGroupSaved, Record, RegexForgotten
from coordinator.groups.consumer.heartbeat import (
    ConsumerHeartbeat,
    HeartbeatAnswer,
    member_named,
    removal,
)
from coordinator.groups.consumer.state import (
    AWAY_EPOCH,
    NO_PARTITIONS,
    ConsumerGroup,
    Member,
)
from coordinator.groups.consumer.topics import TopicList, metadata_hash


def leave(
    group: ConsumerGroup, command: ConsumerHeartbeat
) -> tuple[HeartbeatAnswer, list[Record], Member | None]:
    """The answer, and either the record of a static member that will be back, or who is to go.

    Refuses with 25 and 82.
    """
    answer = HeartbeatAnswer(command.member_id, command.epoch)
    member = member_named(group, command.member_id, command.instance_id)
    if command.instance_id is not None and command.epoch == AWAY_EPOCH:
        return answer, [_away(member).assignment_saved(group.group_id)], None
    return answer, [], member


def _away(member: Member) -> Member:
    """It keeps what it has for whoever comes back with its instance id; what that one commits
    counts from the beginning, hence assignment epoch 0."""
    assigned = {topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()}
    return replace(member, epoch=AWAY_EPOCH, assigned=assigned, revoking=NO_PARTITIONS)


def fence(group: ConsumerGroup, members: Collection[Member], topics: TopicList) -> list[Record]:
    """Put members out: their partitions are free, and the group gets its next epoch."""
    group_id = group.group_id
    records: list[Record] = []
    names: dict[str, int] = dict(group.subscribers)
    regexes: dict[str, int] = dict(group.regex_subscribers)
    for member in members:
        records += removal(group_id, member.member_id)
        for topic in member.topics:
            names[topic] -= 1
        if member.regex:
            regexes[member.regex] -= 1
    records += [RegexForgotten(group_id, regex) for regex, left in regexes.items() if not left]
    subscribed = {topic for topic, left in names.items() if left}
    for regex, found in group.resolved.items():
        if regexes.get(regex, 1):
            subscribed |= found.topics
    records.append(ConsumerGroupSaved(group_id, group.epoch + 1, metadata_hash(subscribed, topics)))
    return records
