"""Validate that a member may commit offsets for a classic group.

It has to be at the group's generation, or the group has no members.
"""

from __future__ import annotations

from coordinator.errors import Code, Refused
from coordinator.groups.classic.group_transition import require_member
from coordinator.groups.classic.state import ClassicGroup, ClassicGroupPhase
from coordinator.offsets.commit import CommittingMember


def validate_offset_commit(
    group: ClassicGroup | None,
    committing_member: CommittingMember,
    *,
    transactional: bool,
    unknown_group_code: Code,
) -> None:
    """Raise Refused unless the member may commit offsets for the group.

    Without membership a commit is accepted in a transaction, or while the group has no members.

    Raises Refused: `unknown_group_code`, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
    and outside a transaction REBALANCE_IN_PROGRESS.
    """
    if group is None:
        if committing_member.generation >= 0:
            raise Refused(unknown_group_code, "there is no such group")
        return
    if committing_member.generation < 0 and group.phase is ClassicGroupPhase.EMPTY:
        return
    if committing_member.claims_membership:
        require_member(group, committing_member.member_id, committing_member.instance_id)
        if committing_member.generation != group.generation:
            raise Refused(
                Code.ILLEGAL_GENERATION,
                f"generation {committing_member.generation}, not {group.generation}",
            )
    elif not transactional:
        raise Refused(Code.UNKNOWN_MEMBER_ID, f"{group.group_id} is in use by members")
    if not transactional and group.phase is ClassicGroupPhase.COMPLETING_REBALANCE:
        raise Refused(Code.REBALANCE_IN_PROGRESS, f"{group.group_id} is rebalancing")
