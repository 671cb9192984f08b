"""Reconciliation: one step of a member towards its target assignment.

A member goes in, a new member comes out. It never has a partition that another member has, and
never gets to the target's epoch before it has given up what the target takes from it:

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
from coordinator.groups.consumer.facts import MemberState, PartitionEpochs, TopicPartitions
from coordinator.groups.consumer.state import NO_EPOCHS, NO_PARTITIONS, Member

# What a member says it has; None: it doesn't say.
Owned: TypeAlias = Mapping[UUID, frozenset[int]] | None


def reconcile(
    member: Member,
    target_epoch: int,
    target: TopicPartitions,
    subscribed: frozenset[UUID],
    owned: Owned,
    owner: Callable[[UUID, int], str | None],
    *,
    subscription_changed: bool,
) -> Member:
    """The member after one step; the very same if there is none to take.

    `subscribed`: the topics it is subscribed to by now; of others it is to have nothing, whatever
    the target says. `owner`: who has a partition at present.
    Refuses with 110 a member in a state that this broker doesn't know, unless it has nothing.
    """
    match member.state:
        case MemberState.STABLE if member.epoch == target_epoch:
            return _drop_unsubscribed(member, subscribed, owned) if subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS if _owns_some(owned, member.revoking):
            return _drop_unsubscribed(member, subscribed, owned) if subscription_changed else member
        case MemberState.UNKNOWN if owned is None or owned:
            raise Refused(
                Code.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )
        case _:
            pass
    return _next(member, target_epoch, target, subscribed, owned, owner)


def _next(
    member: Member,
    target_epoch: int,
    target: TopicPartitions,
    subscribed: frozenset[UUID],
    owned: Owned,
    owner: Callable[[UUID, int], str | None],
) -> Member:
    kept: dict[UUID, Mapping[int, int]] = {}
    revoking: dict[UUID, Mapping[int, int]] = {}
    added: dict[UUID, list[int]] = {}
    waits = False
    for topic_id in {**target, **member.assigned}:
        wanted = target.get(topic_id, frozenset()) if topic_id in subscribed else frozenset()
        has = member.assigned.get(topic_id, NO_EPOCHS)
        if wanted >= has.keys():
            if has:
                kept[topic_id] = has
        else:
            if not wanted.isdisjoint(has):
                kept[topic_id] = {p: epoch for p, epoch in has.items() if p in wanted}
            revoking[topic_id] = {p: epoch for p, epoch in has.items() if p not in wanted}
        mine = member.revoking.get(topic_id, NO_EPOCHS)
        for partition in wanted:
            if partition in has:
                continue
            if partition in mine or owner(topic_id, partition) is None:
                added.setdefault(topic_id, []).append(partition)
            else:
                waits = True

    if revoking and _owns_some(owned, revoking):
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
        state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
        previous_epoch=member.epoch,
        epoch=target_epoch,
        assigned=member.assigned if kept == member.assigned else kept,
        revoking=NO_PARTITIONS,
    )


def _drop_unsubscribed(member: Member, subscribed: frozenset[UUID], owned: Owned) -> Member:
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
    if not _owns_some(owned, revoking):  # it has given them up already
        return replace(member, previous_epoch=member.epoch, assigned=kept)
    return replace(
        member,
        state=MemberState.UNREVOKED_PARTITIONS,
        previous_epoch=member.epoch,
        assigned=kept,
        revoking=revoking,
    )


def _owns_some(owned: Owned, partitions: PartitionEpochs) -> bool:
    """Whether a member has some of these, or may have, as it doesn't say."""
    if owned is None:
        return True
    return any(
        not mine.isdisjoint(partitions.get(topic_id, NO_EPOCHS)) for topic_id, mine in owned.items()
    )
