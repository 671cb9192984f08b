"""Validate that a member may commit offsets for a classic group.

It has to be at the group's generation, or the group has no members.
"""

from __future__ import annotations

from coordinator.errors import Code, Refused
from coordinator.groups.classic.draft import validate_member
from coordinator.groups.classic.state import Group, Phase
from coordinator.offsets.commit import Committer


def validate_offset_commit(
    group: Group | None, committer: Committer, *, transactional: bool, unknown_group: Code
) -> None:
    """Raise Refused unless the member may commit offsets for the group.

    Without membership a commit is accepted in a transaction, or while the group has no members.

    Raises Refused: `unknown_group_code`, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
    and outside a transaction REBALANCE_IN_PROGRESS.
    """
    if group is None:
        if committer.generation >= 0:
            raise Refused(unknown_group, "there is no such group")
        return
    if committer.generation < 0 and group.phase is Phase.EMPTY:
        return
    if committer.claims_membership:
        validate_member(group, committer.member_id, committer.instance_id)
        if committer.generation != group.generation:
            raise Refused(
                Code.ILLEGAL_GENERATION,
                f"generation {committer.generation}, not {group.generation}",
            )
    elif not transactional:
        raise Refused(Code.UNKNOWN_MEMBER_ID, f"{group.group_id} is in use by members")
    if not transactional and group.phase is Phase.COMPLETING_REBALANCE:
        raise Refused(Code.REBALANCE_IN_PROGRESS, f"{group.group_id} is rebalancing")
