"""Find the member that sends a request, and check the epoch that it claims."""

from __future__ import annotations

from coordinator.errors import Code, Refused
from coordinator.groups.streams.state import (
    AWAY_EPOCH,
    JOINING_EPOCH,
    StreamsGroup,
    StreamsGroupMember,
)
from coordinator.groups.streams.tasks import TaskRoles


def check_streams_group_size(
    group: StreamsGroup, member_id: str, instance_id: str | None, max_size: int
) -> None:
    """Raise Refused (GROUP_MAX_SIZE_REACHED) if a new member would join a full group."""
    if instance_id is not None and instance_id in group.static_members:
        return
    if len(group.members) >= max_size and member_id not in group.members:
        raise Refused(
            Code.GROUP_MAX_SIZE_REACHED,
            f"The streams group has reached its maximum capacity of {max_size} members.",
        )


def require_streams_member(
    group: StreamsGroup, member_id: str, instance_id: str | None
) -> StreamsGroupMember:
    """Return the member that a request names, or raise Refused.

    Raises Refused: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            raise Refused(
                Code.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {group.group_id}.",
            )
        return member
    static_member = group.find_static_member(instance_id)
    if static_member is None:
        raise Refused(Code.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if static_member.member_id != member_id:
        raise Refused(
            Code.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{static_member.member_id}.",
        )
    return static_member


def check_static_member_is_away(static_member: StreamsGroupMember, member_id: str) -> None:
    """Raise Refused (UNRELEASED_INSTANCE_ID) unless a static member is away, to be replaced."""
    if static_member.epoch != AWAY_EPOCH:
        raise Refused(
            Code.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {static_member.instance_id} cannot "
            f"join the group because the instance id is owned by {static_member.member_id} member.",
        )


def check_member_epoch(member: StreamsGroupMember, epoch: int, owned: TaskRoles | None) -> None:
    """Raise Refused unless a request has the member's epoch, or the one before it.

    A member may be one epoch behind if it has no more than it is to have, as an answer was lost.

    Raises Refused: FENCED_MEMBER_EPOCH.
    """
    if epoch in (JOINING_EPOCH, member.epoch):
        return
    is_ahead = epoch > member.epoch
    if (
        not is_ahead
        and epoch == member.previous_epoch
        and owned is not None
        and member.assigned.includes(owned)
    ):
        return
    raise Refused(
        Code.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {'greater' if is_ahead else 'smaller'} member epoch "
        f"({epoch}) than the one known by the group coordinator ({member.epoch}). "
        "The member must abandon all its partitions and rejoin.",
    )
