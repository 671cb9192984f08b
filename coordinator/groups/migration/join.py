"""Decide JoinGroup of a classic member in a consumer group.

It doesn't wait for anybody: its subscription becomes a member's of the consumer group, the server's
assignor gives it its part, and the answer says the epoch that it has got to as its generation.
Nobody leads. What it says that it owns in its metadata is what a consumer says in its heartbeat:
an eager consumer owns nothing when it joins, a cooperative one what it has not revoked.
Source: classicGroupJoinToConsumerGroup of GroupMetadataManager.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from coordinator.assignors.consumer_protocol import PROTOCOL_TYPE
from coordinator.errors import Code, Refused
from coordinator.groups.classic.effects import JoinAnswer
from coordinator.groups.classic.join import JoinGroup
from coordinator.groups.consumer.advance import GroupContext, advance_member
from coordinator.groups.consumer.effects import CancelMemberTimer, ConsumerTimer, SetMemberTimer
from coordinator.groups.consumer.heartbeat import (
    ReplacedMember,
    build_replacement_records,
    check_group_size,
    replace_static_member,
    require_static_member,
)
from coordinator.groups.consumer.reconcile import reconcile_member
from coordinator.groups.consumer.record_types import ClassicMemberMetadata
from coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroupMember
from coordinator.groups.consumer.topics import find_topic_ids
from coordinator.groups.migration.conversion import downgrade_group
from coordinator.groups.migration.downgrade import should_downgrade
from coordinator.groups.migration.embedded_protocol import (
    ClassicSubscription,
    decode_member_subscription,
)
from coordinator.groups.migration.policy import MigrationPolicy
from coordinator.groups.state import Record as ShardRecord
from coordinator.shard.decision import Decision


def join_classic_member(
    group: ConsumerGroup, command: JoinGroup, context: GroupContext, policy: MigrationPolicy
) -> Decision[ShardRecord, JoinAnswer]:
    """Decide the JoinGroup of a classic member in a consumer group.

    Raises Refused: INCONSISTENT_GROUP_PROTOCOL, also for metadata that can't be decoded and where
    the policy allows no conversion; GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
    and as `advance_member` does.
    """
    if not policy.allows_classic_members:
        raise Refused(
            Code.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.group_id} with the classic protocol because "
            "the group migration is disabled.",
        )
    check_group_size(group, command.member_id or None, context.config)
    _check_common_protocol(group, command)
    if not command.member_id and command.instance_id is None and command.requires_member_id:
        return Decision((), JoinAnswer(code=Code.MEMBER_ID_REQUIRED, member_id=command.new_bare_id))
    member, replaced_member = _find_or_create_member(group, command)
    subscription = _decode_subscription(command, context)
    updated = _apply_join_request(member, command, subscription)
    if (
        replaced_member is not None
        and replaced_member.classic is None
        and should_downgrade(group, [replaced_member], 1, policy)
    ):
        return _downgrade_group(group, replaced_member, member, updated, subscription, context)
    step = advance_member(
        group,
        member,
        updated,
        None if replaced_member is None else replaced_member.member_id,
        subscription.owned_partitions,
        context,
        command.session_timeout_ms,
    )
    records: list[ShardRecord] = []
    if replaced_member is not None:
        records += build_replacement_records(group, replaced_member, member)
    effects = (
        *step.effects,
        CancelMemberTimer(ConsumerTimer.JOIN, member.member_id),
        SetMemberTimer(ConsumerTimer.SYNC, member.member_id, command.rebalance_timeout_ms),
    )
    return Decision([*records, *step.records], _build_join_answer(step.response), effects)


def _check_common_protocol(group: ConsumerGroup, command: JoinGroup) -> None:
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
        offered[name] == group.classic_member_count for name in names
    ):
        raise Refused(
            Code.INCONSISTENT_GROUP_PROTOCOL,
            f"Member {command.member_id}'s protocols are not supported.",
        )


def _decode_subscription(command: JoinGroup, context: GroupContext) -> ClassicSubscription:
    try:
        return decode_member_subscription(command.protocols[0][1], context.topics)
    except ValueError as error:
        raise Refused(
            Code.INCONSISTENT_GROUP_PROTOCOL, f"the metadata of {command.client_id}: {error}"
        ) from error


def _find_or_create_member(
    group: ConsumerGroup, command: JoinGroup
) -> tuple[ConsumerGroupMember, ReplacedMember | None]:
    """Return the member, or a new one, and the member whose place it takes, if there is one.

    A static member that comes back without its id takes its place in any case, also from one that
    speaks the consumer protocol.
    """
    member_id = command.member_id or command.new_bare_id
    if command.instance_id is None:
        return group.members.get(member_id) or ConsumerGroupMember(member_id), None
    if command.member_id:
        return require_static_member(group, command.member_id, command.instance_id), None
    static_member = group.find_static_member(command.instance_id)
    if static_member is None:
        return ConsumerGroupMember(member_id), None
    return replace_static_member(static_member, member_id), static_member


def _apply_join_request(
    member: ConsumerGroupMember, command: JoinGroup, subscription: ClassicSubscription
) -> ConsumerGroupMember:
    """Return the member with what the request says; the very same if that is nothing new."""
    updated = replace(
        member,
        instance_id=member.instance_id if command.instance_id is None else command.instance_id,
        rack_id=member.rack_id if subscription.rack_id is None else subscription.rack_id,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        topics=subscription.topics,
        regex="",
        client_id=command.client_id,
        client_host=command.client_host,
        classic=ClassicMemberMetadata(command.session_timeout_ms, command.protocols),
    )
    return member if updated == member else updated


def _build_join_answer(member: ConsumerGroupMember) -> JoinAnswer:
    assert member.classic is not None
    return JoinAnswer(
        member_id=member.member_id,
        generation=member.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol=member.classic.protocols[0][0],
    )


def _downgrade_group(
    group: ConsumerGroup,
    replaced_member: ConsumerGroupMember,
    member: ConsumerGroupMember,
    updated: ConsumerGroupMember,
    subscription: ClassicSubscription,
    context: GroupContext,
) -> Decision[ShardRecord, JoinAnswer]:
    """Convert the group to a classic one, as its last consumer member is back as a classic member.

    If the target assignment is up to date, and everybody has got to it, the member goes on with its
    part of it, as all the others do. Else the classic group rebalances at once, and the generation
    that it is told here is none. Kafka doesn't ask who has got there: the new member is given
    what another one still has, and who waits for something is never told that it is free.
    """
    must_rebalance = (
        group.target_epoch < group.epoch
        or updated.topics != member.topics
        or bool(member.regex)
        or not all(
            each.has_reached(group.target_epoch)
            for each in group.members.values()
            if each.member_id != replaced_member.member_id
        )
    )
    reconciled_member = updated
    if not must_rebalance:
        reconciled_member = reconcile_member(
            updated,
            group.target_epoch,
            group.target_assignment_of(updated.member_id, updated.instance_id),
            find_topic_ids(group.subscribed_topics_of(updated), context.topics),
            subscription.owned_partitions,
            group.find_owner,
            subscription_changed=False,
        )
    downgrade = downgrade_group(
        group,
        [replaced_member],
        {replaced_member.member_id: updated},
        context.topics,
        context.now_ms,
        must_rebalance=must_rebalance,
    )
    return Decision(downgrade.records, _build_join_answer(reconciled_member), downgrade.effects)
