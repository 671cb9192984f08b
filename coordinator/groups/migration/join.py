"""Decide JoinGroup of a classic member in a consumer group.

It doesn't wait for anybody: its subscription becomes a member's of the consumer group, the server's
assignor gives it its part, and the answer says the epoch that it has got to as its generation.
Nobody leads. What it says that it owns in its metadata is what a consumer says in its heartbeat:
an eager consumer owns nothing when it joins, a cooperative one what it has not revoked.
Source: classicGroupJoinToConsumerGroup of GroupMetadataManager.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from coordinator.assignors.consumer_protocol import PROTOCOL_TYPE
from coordinator.errors import Code, Refused
from coordinator.groups.classic.draft import JoinAnswer
from coordinator.groups.classic.join import JoinGroup
from coordinator.groups.classic.state import Group
from coordinator.groups.consumer.advance import Step, Surroundings, advance
from coordinator.groups.consumer.facts import ClassicMember, Record
from coordinator.groups.consumer.forget import forget
from coordinator.groups.consumer.heartbeat import check_instance, check_room, replace_member
from coordinator.groups.consumer.reconcile import reconcile
from coordinator.groups.consumer.state import ConsumerGroup, Member
from coordinator.groups.consumer.topics import ids_of
from coordinator.groups.migration.downgrade import downgrade, is_to_downgrade
from coordinator.groups.migration.embedded import Said, read_subscription
from coordinator.groups.migration.policy import MigrationPolicy
from coordinator.groups.state import Record as ShardRecord


@dataclass(frozen=True, slots=True)
class Joined:
    """Holds the records and the answer of a join, and its effects once the records are written.

    `advance_result` None: nothing but the answer, or the group is classic again.
    """

    records: Sequence[ShardRecord]
    answer: JoinAnswer
    step: Step | None = None
    downgraded: Group | None = None
    rebalances: bool = False  # of the classic group


def join(
    group: ConsumerGroup, command: JoinGroup, around: Surroundings, policy: MigrationPolicy
) -> Joined:
    """Decide the JoinGroup of a classic member in a consumer group.

    Raises Refused: GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID,
    FENCED_INSTANCE_ID, UNKNOWN_SERVER_ERROR for metadata that can't be decoded, and as
    `advance_member` does.
    """
    check_room(group, command.member_id or None, around.config)
    _check_protocols(group, command)
    if not command.member_id and command.instance_id is None and command.requires_member_id:
        return Joined([], JoinAnswer(code=Code.MEMBER_ID_REQUIRED, member_id=command.new_bare_id))
    records: list[Record] = []
    member, replaced_member = _find(group, command, records)
    subscription = _said(command, around)
    updated = _updated(member, command, subscription)
    was_consumer_member = replaced_member is not None and replaced_member.classic is None
    if (
        replaced_member is not None
        and was_consumer_member
        and is_to_downgrade(group, [replaced_member], 1, policy)
    ):
        return _take_back(group, replaced_member, member, updated, subscription, around)
    replaced_member_id = None if replaced_member is None else replaced_member.member_id
    step = advance(group, member, updated, replaced_member_id, subscription.owned, around, records)
    return Joined(records, _answer(step.member), step)


def _check_protocols(group: ConsumerGroup, command: JoinGroup) -> None:
    """Raise Refused unless all classic members have one of the request's protocols.

    Raises Refused: INCONSISTENT_GROUP_PROTOCOL.
    """
    offered = Counter(
        name
        for member in group.members.values()
        if member.classic is not None
        for name in {name for name, _ in member.classic.protocols}
    )
    names = {name for name, _ in command.protocols}
    if command.protocol_type != PROTOCOL_TYPE or not any(
        offered[name] == group.classic_members for name in names
    ):
        raise Refused(
            Code.INCONSISTENT_GROUP_PROTOCOL,
            f"Member {command.member_id}'s protocols are not supported.",
        )


def _said(command: JoinGroup, around: Surroundings) -> Said:
    try:
        return read_subscription(command.protocols[0][1], around.topics)
    except ValueError as error:
        raise Refused(
            Code.UNKNOWN_SERVER_ERROR, f"the metadata of {command.client_id}: {error}"
        ) from error


def _find(
    group: ConsumerGroup, command: JoinGroup, records: list[Record]
) -> tuple[Member, Member | None]:
    """Return the member, or a new one, and the member whose place it takes, if there is one.

    A static member that comes back without its id takes its place in any case, also from one that
    speaks the consumer protocol.
    """
    member_id = command.member_id or command.new_bare_id
    if command.instance_id is None:
        return group.members.get(member_id) or Member(member_id), None
    if command.member_id:
        return check_instance(group, command.member_id, command.instance_id), None
    static_member = group.static_member(command.instance_id)
    if static_member is None:
        return Member(member_id), None
    return replace_member(group, static_member, member_id, records), static_member


def _updated(member: Member, command: JoinGroup, said: Said) -> Member:
    """Return the member with what the request says; the very same if that is nothing new."""
    updated = replace(
        member,
        instance_id=member.instance_id if command.instance_id is None else command.instance_id,
        rack_id=member.rack_id if said.rack_id is None else said.rack_id,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        topics=said.topics,
        regex="",
        client_id=command.client_id,
        client_host=command.client_host,
        classic=ClassicMember(command.session_timeout_ms, command.protocols),
    )
    return member if updated == member else updated


def _answer(member: Member) -> JoinAnswer:
    assert member.classic is not None
    return JoinAnswer(
        member_id=member.member_id,
        generation=member.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol=member.classic.protocols[0][0],
    )


def _take_back(
    group: ConsumerGroup,
    replaced: Member,
    member: Member,
    updated: Member,
    said: Said,
    around: Surroundings,
) -> Joined:
    """Convert the group to a classic one, as its last consumer member is back as a classic member.

    If the target assignment is up to date, and everybody has got to it, the member goes on with its
    part of it, as all the others do. Else the classic group rebalances at once, and the generation
    that it is told here is none. Kafka 4.3 doesn't ask who has got there: the new member is given
    what another one still has, and who waits for something is never told that it is free.
    """
    must_rebalance = (
        group.target_epoch < group.epoch
        or updated.topics != member.topics
        or bool(member.regex)
        or not all(
            each.is_at(group.target_epoch)
            for each in group.members.values()
            if each.member_id != replaced.member_id
        )
    )
    reconciled_member = updated
    if not must_rebalance:
        reconciled_member = reconcile(
            updated,
            group.target_epoch,
            group.target_of(updated.member_id, updated.instance_id),
            ids_of(group.topics_of(updated), around.topics),
            said.owned,
            group.owner,
            subscription_changed=False,
        )
    classic_group = downgrade(
        group, [replaced], {replaced.member_id: updated}, around.topics, around.now_ms
    )
    records = [*forget(group), classic_group.saved()]
    return Joined(
        records, _answer(reconciled_member), downgraded=classic_group, rebalances=must_rebalance
    )
