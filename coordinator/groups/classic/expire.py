"""Decide what follows when a session, join or sync timer of a classic group fires."""

from __future__ import annotations

from coordinator.groups.classic.effects import ClassicRebalanceCause, ClassicTimer
from coordinator.groups.classic.group_transition import ClassicGroupConfig, GroupTransition
from coordinator.groups.classic.state import ClassicGroup, ClassicGroupPhase, GroupSaved
from coordinator.shard.decision import Decision


def expire_session(
    group: ClassicGroup, member_id: str, config: ClassicGroupConfig, now_ms: int
) -> Decision[GroupSaved, None] | None:
    """Remove a member whose session has expired; return None if nothing is to be done.

    One that waits for an answer of the coordinator stays, except a newcomer, whose first join is
    limited in time.
    """
    member = group.members.get(member_id)
    if member is None and member_id not in group.pending_join:
        return None
    if (
        member is not None
        and not member.is_new
        and (member_id in group.joining or member_id in group.syncing)
    ):
        return None
    transition = GroupTransition(group, config, now_ms)
    transition.remove_member_and_refuse_requests(member_id)
    if member is not None and transition.group.phase is not ClassicGroupPhase.PREPARING_REBALANCE:
        transition.prepare_rebalance(ClassicRebalanceCause.SESSION_EXPIRED)
    elif (
        transition.group.phase is ClassicGroupPhase.PREPARING_REBALANCE
        and transition.group.has_all_joined
    ):
        transition.complete_join()
    return transition.to_decision(None)


def expire_join(
    group: ClassicGroup, config: ClassicGroupConfig, now_ms: int
) -> Decision[GroupSaved, None] | None:
    """End the join phase, or extend an initial one while new members come in.

    Returns None if no join phase is under way.
    """
    if group.phase is not ClassicGroupPhase.PREPARING_REBALANCE:
        return None
    transition = GroupTransition(group, config, now_ms)
    next_group = transition.group
    if (
        next_group.previous_phase is ClassicGroupPhase.EMPTY
        and next_group.new_member_added
        and next_group.initial_remaining_ms
    ):
        next_group.new_member_added = False
        waited_ms = next_group.initial_delay_ms
        next_group.initial_delay_ms = min(
            config.initial_rebalance_delay_ms, next_group.initial_remaining_ms
        )
        next_group.initial_remaining_ms = max(next_group.initial_remaining_ms - waited_ms, 0)
        transition.set_timer(ClassicTimer.JOIN, next_group.initial_delay_ms)
    else:
        transition.complete_join()
    return transition.to_decision(None)


def expire_sync(
    group: ClassicGroup, config: ClassicGroupConfig, now_ms: int
) -> Decision[GroupSaved, None] | None:
    """Remove the members that have joined but never sent a SyncGroup, and rebalance.

    Returns None if there are none.
    """
    if (
        group.phase not in (ClassicGroupPhase.COMPLETING_REBALANCE, ClassicGroupPhase.STABLE)
        or not group.pending_sync
    ):
        return None
    transition = GroupTransition(group, config, now_ms)
    for member_id in sorted(group.pending_sync):
        transition.remove_member_and_refuse_requests(member_id)
    transition.prepare_rebalance(ClassicRebalanceCause.SYNC_EXPIRED)
    return transition.to_decision(None)
