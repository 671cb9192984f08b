"""Decide whether a classic member of a consumer group is told to join again at its heartbeat.

    a newer target assignment than its own                              REBALANCE_IN_PROGRESS
    it has been told to revoke something, and has yet to say it did     REBALANCE_IN_PROGRESS
    it waits for what others had to revoke, and all of that is free     REBALANCE_IN_PROGRESS
    the group's epoch is above the target's, and nobody else computes   REBALANCE_IN_PROGRESS
    the next target
    otherwise                                                           NONE

Once it has been told so it has its rebalance time-out to join in, whatever else it sends.
The fourth of these is ours: a target is computed when somebody joins, or when a member that speaks
the consumer protocol sends its heartbeat. Where the policy keeps a group of classic members only
from being converted, Kafka leaves to nobody what a member had that has gone.
Source: classicGroupHeartbeatToConsumerGroup of GroupMetadataManager.
"""

from __future__ import annotations

from coordinator.errors import Code
from coordinator.groups.classic.heartbeat import Heartbeat
from coordinator.groups.consumer.effects import ConsumerTimer, SetMemberTimer
from coordinator.groups.consumer.record_types import MemberState, Record
from coordinator.groups.consumer.state import NO_EPOCHS, ConsumerGroup, ConsumerGroupMember
from coordinator.groups.migration.member import build_join_timer_effect, require_classic_member
from coordinator.shard.decision import Decision


def process_classic_heartbeat(group: ConsumerGroup, command: Heartbeat) -> Decision[Record, Code]:
    """Decide the heartbeat of a classic member in a consumer group; it writes no record.

    Raises Refused: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    member, classic = require_classic_member(
        group, command.member_id, command.instance_id, command.generation
    )
    session = SetMemberTimer(ConsumerTimer.SESSION, member.member_id, classic.session_timeout_ms)
    if not must_rejoin(group, member):
        return Decision((), Code.NONE, (session,))
    return Decision((), Code.REBALANCE_IN_PROGRESS, (session, build_join_timer_effect(member)))


def must_rejoin(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Return whether a classic member of a consumer group is to join again.

    See the module's docstring for the cases.
    """
    if member.epoch < group.target_epoch:
        return True
    if group.target_epoch < group.epoch and group.classic_member_count == len(group.members):
        return True
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS:
            return not _waits_for_partitions(group, member)
        case _:
            return False


def _waits_for_partitions(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Return whether another member still owns a partition of the member's target."""
    return any(
        partition not in member.assigned.get(topic_id, NO_EPOCHS)
        and group.find_owner(topic_id, partition) is not None
        for topic_id, partitions in group.target_assignment_of(member.member_id, None).items()
        for partition in partitions
    )
