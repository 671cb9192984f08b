"""Find a classic member of a consumer group by its request, whose generation is its epoch."""

from __future__ import annotations

from coordinator.errors import Code, Refused
from coordinator.groups.consumer.effects import ConsumerTimer, StartMemberTimer
from coordinator.groups.consumer.heartbeat import require_member
from coordinator.groups.consumer.record_types import ClassicMemberMetadata
from coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroupMember


def require_classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerGroupMember, ClassicMemberMetadata]:
    """Return the classic member that a request names.

    Raises Refused: UNKNOWN_MEMBER_ID (also for one that speaks the consumer protocol),
    FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    member = require_member(group, member_id, instance_id)
    if member.classic is None:
        raise Refused(
            Code.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol."
        )
    if generation != member.epoch:
        raise Refused(
            Code.ILLEGAL_GENERATION,
            f"generation {generation}; {member_id} is at epoch {member.epoch}",
        )
    return member, member.classic


def build_join_timer_effect(member: ConsumerGroupMember) -> StartMemberTimer:
    """Return the effect that limits how long a classic member may take to join again."""
    return StartMemberTimer(ConsumerTimer.JOIN, member.member_id, member.rebalance_timeout_ms)
