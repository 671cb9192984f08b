"""Reconcile a member with its target assignment, one step at a time.

A member goes in, a new member comes out. It never has a partition that another member has, and
never gets to the target's epoch before it has revoked what the target takes from it:

    state         what happens at a heartbeat                                            then
    STABLE        nothing, while its epoch is the target's                               STABLE
    any           something of what it has isn't in the target, and it has not said      UNREVOKED
                  that it gave it up: it keeps its epoch and is told what is left
    any           nothing is to be revoked; all that the target adds is free: it gets    STABLE
                  that, and the target's epoch
    any           the same, but some of it still has another owner: it gets the epoch    UNRELEASED
                  and what is free, and asks again at its next heartbeat
    UNREVOKED     it doesn't say what it has, or has some of what is to be revoked       UNREVOKED

What a member has is what it says in its heartbeat (`owned`); to say nothing acknowledges nothing.
Source: CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias
from uuid import UUID

from coordinator.errors import Code, Refused
from coordinator.groups.consumer.record_types import MemberState, PartitionEpochs, TopicPartitions
from coordinator.groups.consumer.state import NO_EPOCHS, NO_PARTITIONS, ConsumerGroupMember

# The partitions that a member reports to have; None: it reports none of it.
OwnedPartitions: TypeAlias = Mapping[UUID, frozenset[int]] | None


def reconcile_member(
    member: ConsumerGroupMember,
    target_epoch: int,
    target: TopicPartitions,
    subscribed: frozenset[UUID],
    owned: OwnedPartitions,
    find_owner: Callable[[UUID, int], str | None],
    *,
    subscription_changed: bool,
) -> ConsumerGroupMember:
    """Return the member after one step towards its target; the very same if there is none to take.

    `subscribed`: the topics it is subscribed to by now; of others it is to have nothing, whatever
    the target says. `find_owner`: returns the member that has a partition at present.

    Raises Refused: FENCED_MEMBER_EPOCH for a member in a state that this broker doesn't know,
    unless it has nothing.
    """
    match member.state:
        case MemberState.STABLE if member.epoch == target_epoch:
            return (
                _revoke_unsubscribed(member, subscribed, owned) if subscription_changed else member
            )
        case MemberState.UNREVOKED_PARTITIONS if may_own_any(owned, member.revoking):
            return (
                _revoke_unsubscribed(member, subscribed, owned) if subscription_changed else member
            )
        case MemberState.UNKNOWN if owned is None or owned:
            raise Refused(
                Code.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )
        case _:
            pass
    return _build_member_with_next_assignment(
        member, target_epoch, target, subscribed, owned, find_owner
    )


def _build_member_with_next_assignment(
    member: ConsumerGroupMember,
    target_epoch: int,
    target: TopicPartitions,
    subscribed: frozenset[UUID],
    owned: OwnedPartitions,
    find_owner: Callable[[UUID, int], str | None],
) -> ConsumerGroupMember:
    """Return the member with what it keeps, has to revoke and newly gets, and its next state."""
    kept: dict[UUID, Mapping[int, int]] = {}
    revoking: dict[UUID, Mapping[int, int]] = {}
    added: dict[UUID, list[int]] = {}
    must_wait = False
    for topic_id in {**target, **member.assigned}:
        wanted = target.get(topic_id, frozenset()) if topic_id in subscribed else frozenset()
        current = member.assigned.get(topic_id, NO_EPOCHS)
        if wanted >= current.keys():
            if current:
                kept[topic_id] = current
        else:
            if not wanted.isdisjoint(current):
                kept[topic_id] = {p: epoch for p, epoch in current.items() if p in wanted}
            revoking[topic_id] = {p: epoch for p, epoch in current.items() if p not in wanted}
        revoking_epochs = member.revoking.get(topic_id, NO_EPOCHS)
        for partition in wanted:
            if partition in current:
                continue
            if partition in revoking_epochs or find_owner(topic_id, partition) is None:
                added.setdefault(topic_id, []).append(partition)
            else:
                must_wait = True

    if revoking and may_own_any(owned, revoking):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_epoch=member.epoch,
            assigned=kept,
            revoking=revoking,
        )
    for topic_id, partitions in added.items():
        given = dict.fromkeys(sorted(partitions), target_epoch)
        kept[topic_id] = {**kept.get(topic_id, NO_EPOCHS), **given}
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if must_wait else MemberState.STABLE,
        previous_epoch=member.epoch,
        epoch=target_epoch,
        assigned=member.assigned if kept == member.assigned else kept,
        revoking=NO_PARTITIONS,
    )


def _revoke_unsubscribed(
    member: ConsumerGroupMember, subscribed: frozenset[UUID], owned: OwnedPartitions
) -> ConsumerGroupMember:
    """Revoke the topics that the member has just unsubscribed from, without a new target."""
    dropped = {
        topic_id: epochs
        for topic_id, epochs in member.assigned.items()
        if topic_id not in subscribed
    }
    if not dropped:
        return member
    kept = {
        topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in dropped
    }
    revoking = {
        topic_id: {
            **member.revoking.get(topic_id, NO_EPOCHS),
            **dropped.get(topic_id, NO_EPOCHS),
        }
        for topic_id in {**member.revoking, **dropped}
    }
    if not may_own_any(owned, revoking):  # It has revoked them already.
        return replace(member, previous_epoch=member.epoch, assigned=kept)
    return replace(
        member,
        state=MemberState.UNREVOKED_PARTITIONS,
        previous_epoch=member.epoch,
        assigned=kept,
        revoking=revoking,
    )


def may_own_any(owned: OwnedPartitions, partitions: PartitionEpochs) -> bool:
    """Return whether a member reports any of these partitions, or doesn't report what it has."""
    if owned is None:
        return True
    return any(
        not mine.isdisjoint(partitions.get(topic_id, NO_EPOCHS)) for topic_id, mine in owned.items()
    )
