"""ConsumerGroupHeartbeat: a member joins, says what has changed, and learns what it is to have.

A decision in three steps, each of which the next one builds on before any record is written:

1. The member is made or updated. If what the group is subscribed to changes, or its topics have,
   the group gets its next epoch.
2. If the group's epoch is above the target's, the next target is computed.
3. The member takes its next step towards the target (`reconcile`).

Most heartbeats change nothing: no record, and no look at more than the member itself.
Source: consumerGroupHeartbeat of GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from coordinator.errors import Code, Refused
from coordinator.groups.consumer.config import ConsumerGroupConfig, GroupSettings
from coordinator.groups.consumer.facts import (
    ConsumerGroupSaved,
    ConsumerMemberForgotten,
    CurrentAssignmentForgotten,
    PartitionEpochs,
    Record,
    RegexForgotten,
    SubscriptionMetadataForgotten,
    TargetAssignmentForgotten,
    TargetAssignmentSaved,
    TopicPartitions,
)
from coordinator.groups.consumer.reconcile import Owned, reconcile
from coordinator.groups.consumer.regex import check_regex, wants_refresh
from coordinator.groups.consumer.state import AWAY_EPOCH, JOINING_EPOCH, ConsumerGroup, Member
from coordinator.groups.consumer.target import assign_target, may_assign, preferred_assignor
from coordinator.groups.consumer.topics import TopicList, ids_of, metadata_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeat:
    """A request. None: the member says nothing new about it. `member_id` is made up by the caller
    for a member that joins without one; `is_nameless` then."""

    group_id: str
    member_id: str
    epoch: int
    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int | None = None
    topics: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Owned = None
    is_nameless: bool = False

    @property
    def is_full(self) -> bool:
        """It says everything, as after an error: what it is to have is then told in any case."""
        return (
            self.rebalance_timeout_ms is not None
            and (self.topics is not None or self.regex is not None)
            and self.owned is not None
        )


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """`assigned` None: what the member is to have hasn't changed."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assigned: PartitionEpochs | None = None


@dataclass(slots=True)
class Seen:
    """What is known of a group beside its records, and lost with a restart: the version of the
    topics that its metadata hash, and its regular expressions, have been compared with."""

    hashed_version: int = -1
    resolved_version: int = -1
    is_resolving: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a decision looks at beside the group."""

    topics: TopicList
    config: ConsumerGroupConfig
    settings: GroupSettings
    seen: Seen
    now_ms: int


@dataclass(frozen=True, slots=True)
class Beat:
    """What a heartbeat is to do: records, its answer, and what follows once they are written.

    `member`: as it is then. `has_moved`: it has taken a step towards its target. `resolve`: the
    regular expressions to resolve in the background.
    """

    records: list[Record]
    answer: HeartbeatAnswer
    member: Member
    has_moved: bool
    looked_at_topics: bool
    resolve: frozenset[str]


def heartbeat(group: ConsumerGroup, command: ConsumerHeartbeat, around: Surroundings) -> Beat:
    """A group that isn't there yet is handed in empty, if the member joins.

    Refuses with 81 (the group is full), 25, 82, 111 (its instance id is still in use), 110 and 128.
    """
    records: list[Record] = []
    check_room(group, command, around.config)
    member, replaced = _find(group, command, records)
    updated = _updated(member, command)
    topics_changed = updated.topics != member.topics
    regex_changed = updated.regex != member.regex
    if updated is not member:
        records.append(updated.saved(group.group_id))
    bump = topics_changed
    if regex_changed:
        bump |= _change_regex(group, member.regex, updated.regex, records)
    epoch = group.epoch
    look = bump or around.seen.hashed_version != around.topics.version
    if look:
        epoch = _next_epoch(group, member, updated, around.topics, records, bump=bump)
    target_epoch, target = _target(group, epoch, member, updated, replaced, around, records)
    moved = updated
    subscription_changed = topics_changed or regex_changed
    if subscription_changed or not updated.is_at(target_epoch):
        moved = reconcile(
            updated,
            target_epoch,
            target,
            ids_of(group.topics_of(updated), around.topics),
            command.owned,
            group.owner,
            subscription_changed=subscription_changed,
        )
        if moved != updated:
            records.append(moved.assignment_saved(group.group_id))
    tells = command.epoch == JOINING_EPOCH or command.is_full or moved.assigned != member.assigned
    answer = HeartbeatAnswer(
        moved.member_id,
        moved.epoch,
        around.settings.heartbeat_interval_ms,
        moved.assigned if tells else None,
    )
    resolve = _to_resolve(group, member, updated, around)
    return Beat(records, answer, moved, moved != updated, look, resolve)


def check_room(
    group: ConsumerGroup, command: ConsumerHeartbeat, config: ConsumerGroupConfig
) -> None:
    """Refuses with 81 a newcomer to a group that is full."""
    known = not command.is_nameless and command.member_id in group.members
    if len(group.members) >= config.max_size and not known:
        raise Refused(
            Code.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {config.max_size} members.",
        )


# Who it is


def _find(
    group: ConsumerGroup, command: ConsumerHeartbeat, records: list[Record]
) -> tuple[Member, str | None]:
    """The member that sends this, or a new one; and whose place it takes, if it is a static one
    that has come back under another id."""
    joins = command.epoch == JOINING_EPOCH
    if command.instance_id is None:
        member = group.members.get(command.member_id)
        if member is None:
            if not joins:
                raise unknown_member(group, command.member_id)
            return Member(command.member_id), None
        _check_epoch(member, command)
        return member, None
    known = group.static_member(command.instance_id)
    if joins:
        if known is None:
            return group.members.get(command.member_id) or Member(command.member_id), None
        if known.classic is None and known.epoch != AWAY_EPOCH:
            raise Refused(
                Code.UNRELEASED_INSTANCE_ID,
                f"Static member {command.member_id} with instance id {command.instance_id} cannot "
                f"join the group because the instance id is owned by {known.member_id} member.",
            )
        return _replace(group, known, command.member_id, records), known.member_id
    known = check_instance(group, command.member_id, command.instance_id)
    _check_epoch(known, command)
    return known, None


def check_instance(group: ConsumerGroup, member_id: str, instance_id: str) -> Member:
    """The member of an instance id. Refuses with 25 if there is none, 82 if it is another one."""
    known = group.static_member(instance_id)
    if known is None:
        raise Refused(Code.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if known.member_id != member_id:
        raise Refused(
            Code.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{known.member_id}.",
        )
    return known


def unknown_member(group: ConsumerGroup, member_id: str) -> Refused:
    return Refused(
        Code.UNKNOWN_MEMBER_ID,
        f"Member {member_id} is not a member of group {group.group_id}.",
    )


def _check_epoch(member: Member, command: ConsumerHeartbeat) -> None:
    """A member may be one step behind, if it has no more than it is to have: an answer was lost.

    Refuses with 110.
    """
    if command.epoch in (JOINING_EPOCH, member.epoch):
        return
    is_ahead = command.epoch > member.epoch
    if (
        not is_ahead
        and command.epoch == member.previous_epoch
        and _has_no_more_than(command.owned, member.assigned)
    ):
        return
    raise Refused(
        Code.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {'greater' if is_ahead else 'smaller'} member epoch "
        f"({command.epoch}) than the one known by the group coordinator ({member.epoch}). "
        "The member must abandon all its partitions and rejoin.",
    )


def _has_no_more_than(owned: Owned, assigned: PartitionEpochs) -> bool:
    if owned is None:
        return False
    return all(
        topic_id in assigned and mine <= assigned[topic_id].keys()
        for topic_id, mine in owned.items()
    )


def _replace(group: ConsumerGroup, known: Member, member_id: str, records: list[Record]) -> Member:
    """A static member is back under another id: all that it had goes over to that."""
    group_id = group.group_id
    member = replace(known, member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)
    records += removal(group_id, known.member_id)
    records.append(member.saved(group_id))
    target = group.target_of(known.member_id, None)
    records.append(TargetAssignmentSaved(group_id, member_id, target))
    records.append(member.assignment_saved(group_id))
    return member


def removal(group_id: str, member_id: str) -> list[Record]:
    """The records that end a member. The order matters to Kafka."""
    return [
        CurrentAssignmentForgotten(group_id, member_id),
        TargetAssignmentForgotten(group_id, member_id),
        ConsumerMemberForgotten(group_id, member_id),
    ]


# What it says


def _updated(member: Member, command: ConsumerHeartbeat) -> Member:
    """The member with what the request says; the very same if that is nothing new."""
    said = (
        ("instance_id", command.instance_id),
        ("rack_id", command.rack_id),
        ("rebalance_timeout_ms", command.rebalance_timeout_ms),
        ("assignor", command.assignor),
        ("topics", command.topics),
        ("regex", command.regex),
        ("client_id", command.client_id),
        ("client_host", command.client_host),
    )
    new: dict[str, Any] = {
        name: value for name, value in said if value is not None and value != getattr(member, name)
    }
    if member.classic is not None:
        new["classic"] = None
    return replace(member, **new) if new else member


def _change_regex(
    group: ConsumerGroup, old: str | None, new: str | None, records: list[Record]
) -> bool:
    """Whether the group needs an epoch for it now: not for an expression that is still to be
    resolved, which will bring one then. Refuses with 128."""
    if old and group.regex_subscribers.get(old) == 1:
        records.append(RegexForgotten(group.group_id, old))
    if not new:
        return bool(old)
    if new not in group.regex_subscribers:
        check_regex(new)
        return False
    return new in group.resolved


def _to_resolve(
    group: ConsumerGroup, member: Member, updated: Member, around: Surroundings
) -> frozenset[str]:
    """The expressions to resolve in the background, none if it isn't time for it."""
    if (not group.regex_subscribers and not updated.regex) or around.seen.is_resolving:
        return frozenset()
    regexes = subscribed_regexes(group, member, updated)
    if not regexes or not wants_refresh(
        group,
        regexes,
        around.topics,
        around.seen.resolved_version,
        around.config.regex_refresh_interval_ms,
        around.now_ms,
    ):
        return frozenset()
    return frozenset(regexes)


def subscribed_regexes(
    group: ConsumerGroup, old: Member | None, new: Member | None
) -> Mapping[str, int]:
    """How many members are subscribed to each expression, once `old` has become `new`."""
    before = old.regex if old is not None else None
    after = new.regex if new is not None else None
    if before == after:
        return group.regex_subscribers
    counts = dict(group.regex_subscribers)
    if before and before in counts:
        counts[before] -= 1
        if not counts[before]:
            del counts[before]
    if after:
        counts[after] = counts.get(after, 0) + 1
    return counts


# What follows for the group


def _next_epoch(
    group: ConsumerGroup,
    member: Member,
    updated: Member,
    topics: TopicList,
    records: list[Record],
    *,
    bump: bool,
) -> int:
    """The group's epoch, one up if `bump`, or if its topics aren't what they were."""
    names = set(group.subscribers)
    if updated.topics != member.topics:
        names -= {topic for topic in member.topics if group.subscribers.get(topic) == 1}
        names |= updated.topics
    gone = member.regex if updated.regex != member.regex else None
    for regex, found in group.resolved.items():
        if regex != gone or group.regex_subscribers.get(regex) != 1:
            names |= found.topics
    new_hash = metadata_hash(names, topics)
    epoch = group.epoch
    if bump or new_hash != group.metadata_hash:
        epoch += 1
        records.append(ConsumerGroupSaved(group.group_id, epoch, new_hash))
    if group.has_subscription_metadata:
        records.append(SubscriptionMetadataForgotten(group.group_id))
    return epoch


def _target(
    group: ConsumerGroup,
    epoch: int,
    member: Member,
    updated: Member,
    replaced: str | None,
    around: Surroundings,
    records: list[Record],
) -> tuple[int, TopicPartitions]:
    """Epoch and share of the member in the target, which is computed anew if it has to be."""
    interval_ms = around.settings.assignment_interval_ms
    if group.target_epoch >= epoch or not may_assign(group, interval_ms, around.now_ms):
        return group.target_epoch, group.target_of(updated.member_id, updated.instance_id)
    assignor = preferred_assignor(group, around.config.assignors[0], member, updated)
    new, target = assign_target(
        group, epoch, updated, replaced, assignor, around.topics, around.now_ms
    )
    records += new
    return epoch, target
