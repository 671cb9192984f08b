"""May a member of a consumer group commit, or read, offsets? By its epoch.

A commit with the member's own epoch is accepted, whatever partitions it is of. One with an older
epoch is as well, where all its partitions are still the member's, and were so at that epoch: the
member has not heard of the new one yet. Anything else is a zombie's.
Source: ConsumerGroup.validateOffsetCommit, validateOffsetFetch.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from coordinator.errors import Code, Refused
from coordinator.groups.consumer.heartbeat import member_named
from coordinator.groups.consumer.state import NO_EPOCHS, ConsumerGroup, Member
from coordinator.offsets.commit import CommitOffset, Committer


def validate_offset_commit(
    group: ConsumerGroup,
    committer: Committer,
    offsets: Iterable[CommitOffset],
    *,
    transactional: bool,
) -> None:
    """Refuses with 25, with 35 a request from before there were member epochs, and with 113 an
    epoch that doesn't do, which is 22 in a transaction and for who speaks the classic protocol.

    Without membership: accepted in a transaction, or while the group has no members.
    """
    if committer.generation < 0 and not group.members:
        return
    if transactional and not committer.claims_membership:
        return
    member = member_named(group, committer.member_id, None)
    if not transactional and member.classic is None and not committer.knows_epochs:
        raise Refused(
            Code.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the consumer group "
            "protocol",
        )
    epoch = committer.generation
    if epoch == member.epoch:
        return
    code = _stale(member)
    if transactional:
        code = Code.ILLEGAL_GENERATION
    if epoch > member.epoch:
        raise Refused(code, f"epoch {epoch} is newer than the member's, {member.epoch}")
    for offset in offsets:
        since = _assigned_at(member, offset.topic_id, offset.partition)
        if since is None or epoch < since:
            why = "isn't the member's" if since is None else f"is its since {since}, not {epoch}"
            raise Refused(code, f"{offset.topic}-{offset.partition} {why}")


def validate_offset_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """Refuses with 25, and with 113 or 22 (see above) an epoch that isn't exactly the member's.

    Who says nothing of itself may read.
    """
    if member_id is None and epoch < 0:
        return
    member = member_named(group, member_id or "", None)
    if epoch != member.epoch:
        raise Refused(_stale(member), f"epoch {epoch} isn't the member's, {member.epoch}")


def _stale(member: Member) -> Code:
    return Code.STALE_MEMBER_EPOCH if member.classic is None else Code.ILLEGAL_GENERATION


def _assigned_at(member: Member, topic_id: UUID | None, partition: int) -> int | None:
    """The epoch at which the member got a partition that it has."""
    if topic_id is None:
        return None
    for partitions in (member.assigned, member.revoking):
        since = partitions.get(topic_id, NO_EPOCHS).get(partition)
        if since is not None:
            return since
    return None
