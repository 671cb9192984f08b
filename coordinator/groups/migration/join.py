"""JoinGroup of a classic member in a consumer group.

It doesn't wait for anybody: its subscription becomes a member's of the consumer group, the server's
assignor gives it its share, and the answer says the epoch that it has got to as its generation.
Nobody leads. What it says that it owns in its metadata is what a consumer says in its heartbeat:
an eager consumer owns nothing when it joins, a cooperative one what it has not given up.
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
    """What a join is to do. `step` None: nothing but the answer, or the group is classic again."""

    records: Sequence[ShardRecord]
    answer: JoinAnswer
    step: Step | None = None
    downgraded: Group | None = None
    rebalances: bool = False  # the group that is classic again


def join(
    group: ConsumerGroup, command: JoinGroup, around: Surroundings, policy: MigrationPolicy
) -> Joined:
    """Refuses with 81, 23, 25, 82, and with -1 metadata that nobody can read."""
    check_room(group, command.member_id or None, around.config)
    _check_protocols(group, command)
    if not command.member_id and command.instance_id is None and command.requires_member_id:
        return Joined([], JoinAnswer(code=Code.MEMBER_ID_REQUIRED, member_id=command.new_bare_id))
    records: list[Record] = []
    member, replaced = _find(group, command, records)
    said = _said(command, around)
    updated = _updated(member, command, said)
    is_back = replaced is not None and replaced.classic is None
    if replaced is not None and is_back and is_to_downgrade(group, [replaced], 1, policy):
        return _take_back(group, replaced, member, updated, said, around)
    old_id = None if replaced is None else replaced.member_id
    step = advance(group, member, updated, old_id, said.owned, around, records)
    return Joined(records, _answer(step.member), step)


def _check_protocols(group: ConsumerGroup, command: JoinGroup) -> None:
    """One of its protocols has to be every classic member's. Refuses with 23."""
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
    """The member, or a new one, and whose place it takes. A static member that comes back without
    its id takes its place in any case, also from one that speaks the consumer protocol."""
    member_id = command.member_id or command.new_bare_id
    if command.instance_id is None:
        return group.members.get(member_id) or Member(member_id), None
    if command.member_id:
        return check_instance(group, command.member_id, command.instance_id), None
    known = group.static_member(command.instance_id)
    if known is None:
        return Member(member_id), None
    return replace_member(group, known, member_id, records), known


def _updated(member: Member, command: JoinGroup, said: Said) -> Member:
    """The member with what the request says; the very same if that is nothing new."""
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
    """The last one that spoke the consumer protocol is back with the classic one.

    If the target assignment is up to date, and everybody has got to it, it goes on with its share
    of it, as all the others do. Else the classic group rebalances at once, and the generation that
    it is told here is none. Kafka 4.3 doesn't ask who has got there: the new member is given what
    another one still has, and who waits for something is never told that it is free.
    """
    rebalances = (
        group.target_epoch < group.epoch
        or updated.topics != member.topics
        or bool(member.regex)
        or not all(
            each.is_at(group.target_epoch)
            for each in group.members.values()
            if each.member_id != replaced.member_id
        )
    )
    moved = updated
    if not rebalances:
        moved = reconcile(
            updated,
            group.target_epoch,
            group.target_of(updated.member_id, updated.instance_id),
            ids_of(group.topics_of(updated), around.topics),
            said.owned,
            group.owner,
            subscription_changed=False,
        )
    made = downgrade(group, [replaced], {replaced.member_id: updated}, around.topics, around.now_ms)
    records = [*forget(group), made.saved()]
    return Joined(records, _answer(moved), downgraded=made, rebalances=rebalances)
