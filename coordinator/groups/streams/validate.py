"""Validate that a member of a streams group may commit, or read, offsets at its epoch.

A commit with the member's own epoch is accepted, whatever partitions it is of. One with an older
epoch is as well, where all its partitions are of active tasks that are still the member's, and were
so at that epoch: the member has not heard of the new one yet. Anything else is a zombie's.
Source: StreamsGroup.validateOffsetCommit, validateOffsetFetch.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.errors import Code, Refused
from coordinator.groups.streams.member_check import require_streams_member
from coordinator.groups.streams.state import StreamsGroup, StreamsGroupMember
from coordinator.offsets.commit import CommittingMember, OffsetToCommit


def validate_streams_offset_commit(
    group: StreamsGroup,
    committing_member: CommittingMember,
    offsets: Iterable[OffsetToCommit],
    *,
    transactional: bool,
) -> None:
    """Raise Refused unless a member may commit these offsets at its epoch.

    Without membership a commit is accepted in a transaction, or while the group has no members.

    Raises Refused: UNKNOWN_MEMBER_ID; UNSUPPORTED_VERSION for a request from before there were
    member epochs; STALE_MEMBER_EPOCH, which is ILLEGAL_GENERATION in a transaction.
    """
    epoch = committing_member.generation
    if epoch < 0 and not group.members:
        return
    if transactional and not committing_member.claims_membership:
        return
    member = require_streams_member(group, committing_member.member_id, None)
    if not transactional and not committing_member.knows_epochs:
        raise Refused(
            Code.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the streams group "
            "protocol",
        )
    if epoch == member.epoch:
        return
    code = Code.ILLEGAL_GENERATION if transactional else Code.STALE_MEMBER_EPOCH
    if epoch > member.epoch:
        raise Refused(code, f"epoch {epoch} is newer than the member's, {member.epoch}")
    for offset in offsets:
        _check_assigned(group, member, epoch, offset, code)


def _check_assigned(
    group: StreamsGroup,
    member: StreamsGroupMember,
    epoch: int,
    offset: OffsetToCommit,
    code: Code,
) -> None:
    """Raise Refused unless a partition is of a task that the member had at an epoch, and has."""
    readers = {} if group.topology is None else group.topology.reader_ids
    subtopology_id = readers.get(offset.topic)
    if subtopology_id is None:
        raise Refused(code, f"{offset.topic} is not in the topology")
    task = subtopology_id, offset.partition
    assigned_epoch = member.assigned.active.get(task, member.revoking.active.get(task))
    if assigned_epoch is None:
        raise Refused(code, f"task {subtopology_id}_{offset.partition} isn't the member's")
    if epoch < assigned_epoch:
        raise Refused(
            code,
            f"task {subtopology_id}_{offset.partition} is the member's since {assigned_epoch}, "
            f"not {epoch}",
        )


def validate_streams_offset_fetch(group: StreamsGroup, member_id: str | None, epoch: int) -> None:
    """Raise Refused unless the request has exactly the member's epoch, or names no member.

    Raises Refused: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.
    """
    if member_id is None and epoch < 0:
        return
    member = require_streams_member(group, member_id or "", None)
    if epoch != member.epoch:
        raise Refused(Code.STALE_MEMBER_EPOCH, f"epoch {epoch} isn't the member's, {member.epoch}")
