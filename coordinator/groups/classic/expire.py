"""What happens when a timer of a group fires."""

from __future__ import annotations

from coordinator.groups.classic.draft import Cause, Draft, Due, GroupConfig
from coordinator.groups.classic.state import Group, Phase


def expire_session(group: Group, member_id: str, config: GroupConfig, now_ms: int) -> Draft | None:
    """A member has not been heard of. One that waits for our answer is not to blame, except a
    newcomer, whose first join is limited in time. None: nothing is to be done.
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
    draft = Draft(group, config, now_ms)
    draft.remove(member_id)
    if member is not None and draft.group.phase is not Phase.PREPARING_REBALANCE:
        draft.prepare_rebalance(Cause.SESSION_EXPIRED)
    elif draft.group.phase is Phase.PREPARING_REBALANCE and draft.group.all_joined:
        draft.complete_join()
    return draft


def expire_join(group: Group, config: GroupConfig, now_ms: int) -> Draft | None:
    """The join phase has lasted long enough. An initial one is extended while members come in."""
    if group.phase is not Phase.PREPARING_REBALANCE:
        return None
    draft = Draft(group, config, now_ms)
    ahead = draft.group
    if ahead.came_from is Phase.EMPTY and ahead.new_member_added and ahead.initial_remaining_ms:
        ahead.new_member_added = False
        waited_ms = ahead.initial_delay_ms
        ahead.initial_delay_ms = min(config.initial_rebalance_delay_ms, ahead.initial_remaining_ms)
        ahead.initial_remaining_ms = max(ahead.initial_remaining_ms - waited_ms, 0)
        draft.set_timer(Due.JOIN, ahead.initial_delay_ms)
    else:
        draft.complete_join()
    return draft


def expire_sync(group: Group, config: GroupConfig, now_ms: int) -> Draft | None:
    """Members that have joined but never synced are out."""
    if group.phase not in (Phase.COMPLETING_REBALANCE, Phase.STABLE) or not group.pending_sync:
        return None
    draft = Draft(group, config, now_ms)
    for member_id in sorted(group.pending_sync):
        draft.remove(member_id)
    draft.prepare_rebalance(Cause.SYNC_EXPIRED)
    return draft
