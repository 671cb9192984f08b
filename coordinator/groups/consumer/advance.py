"""What follows when a member has been made or updated, whichever protocol it speaks.

1. If what the group is subscribed to has changed, or its topics have, it gets its next epoch.
2. If the group's epoch is above the target's, the next target is computed.
3. The member takes its next step towards the target (`reconcile`).

Source: GroupMetadataManager, which does the same for a heartbeat and for a classic member's join.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from coordinator.groups.consumer.cause import Cause
from coordinator.groups.consumer.config import ConsumerGroupConfig, GroupSettings
from coordinator.groups.consumer.facts import (
    ConsumerGroupSaved,
    Record,
    RegexForgotten,
    SubscriptionMetadataForgotten,
    TopicPartitions,
)
from coordinator.groups.consumer.reconcile import Owned, reconcile
from coordinator.groups.consumer.regex import check_regex, wants_refresh
from coordinator.groups.consumer.state import ConsumerGroup, Member
from coordinator.groups.consumer.target import assign_target, may_assign, preferred_assignor
from coordinator.groups.consumer.topics import TopicList, ids_of, metadata_hash


@dataclass(slots=True)
class Seen:
    """What is known of a group beside its records, and lost with a restart: the version of the
    topics that its metadata hash, and its regular expressions, have been compared with; and since
    when it hasn't been Stable."""

    hashed_version: int = -1
    resolved_version: int = -1
    is_resolving: bool = False
    unstable_ms: int | None = None


class Surroundings(NamedTuple):
    """What a decision looks at beside the group."""

    topics: TopicList
    config: ConsumerGroupConfig
    settings: GroupSettings
    seen: Seen
    now_ms: int


class Step(NamedTuple):
    """What has become of the member, and what is to follow once the records are written.

    `has_moved`: it has taken a step towards its target. `began`: what the group has its next epoch
    for, if it has. `resolve`: the regular expressions to resolve in the background.
    """

    member: Member
    has_moved: bool
    began: Cause | None
    looked_at_topics: bool
    resolve: frozenset[str]


def advance(
    group: ConsumerGroup,
    member: Member,
    updated: Member,
    replaced: str | None,
    owned: Owned,
    around: Surroundings,
    records: list[Record],
) -> Step:
    """`member` says what `updated` is by now; `replaced`: whose place it takes, if it has another
    id than before. The records are added to those that there are. Refuses with 110 and 128.
    """
    if updated is not member:
        records.append(updated.saved(group.group_id))
    topics_changed = updated.topics != member.topics
    regex_changed = updated.regex != member.regex
    bump = topics_changed
    if regex_changed:
        bump |= _change_regex(group, member.regex, updated.regex, records)
    epoch = group.epoch
    is_new = updated.member_id not in group.members
    cause = Cause.MEMBER_JOINED if is_new else Cause.SUBSCRIPTION_CHANGED
    look = bump or around.seen.hashed_version != around.topics.version
    if look:
        epoch = next_epoch(group, member, updated, around.topics, records, bump=bump)
    target_epoch, target = _target(group, epoch, member, updated, replaced, around, records)
    moved = updated
    has_moved = False
    subscription_changed = topics_changed or regex_changed
    if subscription_changed or not updated.is_at(target_epoch):
        moved = reconcile(
            updated,
            target_epoch,
            group.target_of(updated.member_id, updated.instance_id) if target is None else target,
            ids_of(group.topics_of(updated), around.topics),
            owned,
            group.owner,
            subscription_changed=subscription_changed,
        )
        has_moved = moved != updated
        if has_moved:
            records.append(moved.assignment_saved(group.group_id))
    resolve = _to_resolve(group, member, updated, around)
    began = None
    if epoch != group.epoch:
        began = cause if bump else Cause.TOPICS_CHANGED
    return Step(moved, has_moved, began, look, resolve)


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


def next_epoch(
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
) -> tuple[int, TopicPartitions | None]:
    """The target's epoch, and the member's share of it if it had to be computed anew."""
    interval_ms = around.settings.assignment_interval_ms
    if group.target_epoch >= epoch or not may_assign(group, interval_ms, around.now_ms):
        return group.target_epoch, None
    assignor = preferred_assignor(group, around.config.assignors[0], member, updated)
    new, target = assign_target(
        group, epoch, updated, replaced, assignor, around.topics, around.now_ms
    )
    records += new
    return epoch, target
