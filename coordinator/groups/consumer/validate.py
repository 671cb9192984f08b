"""Validate that a member of a consumer group may commit, or read, offsets at its epoch.

A commit with the member's own epoch is accepted, whatever partitions it is of. One with an older
epoch is as well, where all its partitions are still the member's, and were so at that epoch: the
member has not heard of the new one yet. Anything else is a zombie's.
Source: ConsumerGroup.validateOffsetCommit, validateOffsetFetch.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from coordinator.errors import Code, Refused
from coordinator.groups.consumer.heartbeat import require_member
from coordinator.groups.consumer.state import NO_EPOCHS, ConsumerGroup, ConsumerGroupMember
from coordinator.offsets.commit import CommittingMember, OffsetToCommit


def validate_offset_commit(
    group: ConsumerGroup,
    committing_member: CommittingMember,
    offsets: Iterable[OffsetToCommit],
    *,
    transactional: bool,
) -> None:
    """Raise Refused unless a member may commit these offsets at its epoch.

    Without membership a commit is accepted in a transaction, or while the group has no members.

    Raises Refused: UNKNOWN_MEMBER_ID; UNSUPPORTED_VERSION for a request from before there were
    member epochs; STALE_MEMBER_EPOCH, which is ILLEGAL_GENERATION in a transaction and for members
    of the classic protocol.
    """
    if committing_member.generation < 0 and not group.members:
        return
    if transactional and not committing_member.claims_membership:
        return
    member = require_member(group, committing_member.member_id, None)
    if not transactional and member.classic is None and not committing_member.knows_epochs:
        raise Refused(
            Code.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the consumer group "
            "protocol",
        )
    epoch = committing_member.generation
    if epoch == member.epoch:
        return
    code = _select_stale_epoch_code(member)
    if transactional:
        code = Code.ILLEGAL_GENERATION
    if epoch > member.epoch:
        raise Refused(code, f"epoch {epoch} is newer than the member's, {member.epoch}")
    for offset in offsets:
        assigned_epoch = find_assigned_epoch(member, offset.topic_id, offset.partition)
        if assigned_epoch is None or epoch < assigned_epoch:
            reason = (
                "isn't the member's"
                if assigned_epoch is None
                else f"is its since {assigned_epoch}, not {epoch}"
            )
            raise Refused(code, f"{offset.topic}-{offset.partition} {reason}")


def validate_offset_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """Raise Refused unless the request has exactly the member's epoch, or names no member.

    Raises Refused: UNKNOWN_MEMBER_ID; STALE_MEMBER_EPOCH, or ILLEGAL_GENERATION for members of the
    classic protocol.
    """
    if member_id is None and epoch < 0:
        return
    member = require_member(group, member_id or "", None)
    if epoch != member.epoch:
        raise Refused(
            _select_stale_epoch_code(member), f"epoch {epoch} isn't the member's, {member.epoch}"
        )


def _select_stale_epoch_code(member: ConsumerGroupMember) -> Code:
    return Code.STALE_MEMBER_EPOCH if member.classic is None else Code.ILLEGAL_GENERATION


def find_assigned_epoch(
    member: ConsumerGroupMember, topic_id: UUID | None, partition: int
) -> int | None:
    """Return the epoch at which the member got a partition that it has, or None."""
    if topic_id is None:
        return None
    for partitions in (member.assigned, member.revoking):
        assigned_epoch = partitions.get(topic_id, NO_EPOCHS).get(partition)
        if assigned_epoch is not None:
            return assigned_epoch
    return None
