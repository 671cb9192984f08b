"""Heartbeat of a classic member in a consumer group: it is alive, and learns whether to join again.

    a newer target assignment than its own                                               27
    it has been told to give something up, and has yet to say that it did                27
    it waits for what others had to give up, and all of that is free by now              27
    the group's epoch is above the target's, and nobody else computes the next target    27
    otherwise                                                                             0

Once it has been told 27 it has its rebalance time-out to join in, whatever else it sends.
The last of these is ours: a target is computed when somebody joins, or when a member that speaks
the consumer protocol sends its heartbeat. Where the policy keeps a group of classic members only
from being converted, Kafka leaves to nobody what a member had that has gone.
Source: classicGroupHeartbeatToConsumerGroup of GroupMetadataManager.
"""

from __future__ import annotations

from coordinator.groups.consumer.facts import MemberState
from coordinator.groups.consumer.state import NO_EPOCHS, ConsumerGroup, Member


def has_to_join(group: ConsumerGroup, member: Member) -> bool:
    if member.epoch < group.target_epoch:
        return True
    if group.target_epoch < group.epoch and group.classic_members == len(group.members):
        return True
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS:
            return not _waits(group, member)
        case _:
            return False


def _waits(group: ConsumerGroup, member: Member) -> bool:
    """Something that it is to have is still another member's."""
    return any(
        partition not in member.assigned.get(topic_id, NO_EPOCHS)
        and group.owner(topic_id, partition) is not None
        for topic_id, partitions in group.target_of(member.member_id, None).items()
        for partition in partitions
    )
