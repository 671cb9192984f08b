"""Advance a group and its member after the member was created or updated, by either protocol.

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
    """Tracks what is known of a group beside its records, and lost with a restart.

    That is the version of the topics that its metadata hash, and its regular expressions, have been
    compared with, and since when it hasn't been Stable.
    """

    hashed_version: int = -1
    resolved_version: int = -1
    is_resolving: bool = False
    unstable_ms: int | None = None


class Surroundings(NamedTuple):
    """Holds what a decision reads beside the group: topics, settings, transient state, time."""

    topics: TopicList
    config: ConsumerGroupConfig
    settings: GroupSettings
    seen: Seen
    now_ms: int


class Step(NamedTuple):
    """Tells what became of the member, and what is to follow once the records are written.

    `has_moved`: it has taken a step towards its target. `epoch_cause`: the cause of the group's
    next epoch, if there is one. `regexes_to_resolve`: the regular expressions to resolve in the
    background.
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
    """Advance a created or updated member, and its group, by one step; add the records for it.

    `member` says what `updated` is by now; `replaced_member_id`: whose place it takes, if it has
    another id than before.

    Raises Refused: FENCED_MEMBER_EPOCH, INVALID_REGULAR_EXPRESSION.
    """
    if updated is not member:
        records.append(updated.saved(group.group_id))
    topics_changed = updated.topics != member.topics
    regex_changed = updated.regex != member.regex
    must_bump_epoch = topics_changed
    if regex_changed:
        must_bump_epoch |= _change_regex(group, member.regex, updated.regex, records)
    epoch = group.epoch
    is_new = updated.member_id not in group.members
    cause = Cause.MEMBER_JOINED if is_new else Cause.SUBSCRIPTION_CHANGED
    checks_topics = must_bump_epoch or around.seen.hashed_version != around.topics.version
    if checks_topics:
        epoch = next_epoch(group, member, updated, around.topics, records, bump=must_bump_epoch)
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
    regexes_to_resolve = _to_resolve(group, member, updated, around)
    epoch_cause = None
    if epoch != group.epoch:
        epoch_cause = cause if must_bump_epoch else Cause.TOPICS_CHANGED
    return Step(moved, has_moved, epoch_cause, checks_topics, regexes_to_resolve)


def _change_regex(
    group: ConsumerGroup, old: str | None, new: str | None, records: list[Record]
) -> bool:
    """Record a member's change of expression; return whether the group needs an epoch now.

    It doesn't for an expression that is still to be resolved, which will bring one then.

    Raises Refused: INVALID_REGULAR_EXPRESSION.
    """
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
    """Return the expressions to resolve in the background, none if it isn't time for it."""
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
    """Return how many members subscribe to each expression once `old_member` is `new_member`."""
    old_regex = old.regex if old is not None else None
    new_regex = new.regex if new is not None else None
    if old_regex == new_regex:
        return group.regex_subscribers
    counts = dict(group.regex_subscribers)
    if old_regex and old_regex in counts:
        counts[old_regex] -= 1
        if not counts[old_regex]:
            del counts[old_regex]
    if new_regex:
        counts[new_regex] = counts.get(new_regex, 0) + 1
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
    """Return the group's epoch, one up if `must_bump` or if its topics have changed.

    Adds the record of a new epoch.
    """
    names = set(group.subscribers)
    if updated.topics != member.topics:
        names -= {topic for topic in member.topics if group.subscribers.get(topic) == 1}
        names |= updated.topics
    dropped_regex = member.regex if updated.regex != member.regex else None
    for regex, resolution in group.resolved.items():
        if regex != dropped_regex or group.regex_subscribers.get(regex) != 1:
            names |= resolution.topics
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
    """Compute the next target assignment if it is due; return its epoch and the member's part.

    The part is None if the target stays as it is.
    """
    interval_ms = around.settings.assignment_interval_ms
    if group.target_epoch >= epoch or not may_assign(group, interval_ms, around.now_ms):
        return group.target_epoch, None
    assignor = preferred_assignor(group, around.config.assignors[0], member, updated)
    target_records, target = assign_target(
        group, epoch, updated, replaced, assignor, around.topics, around.now_ms
    )
    records += target_records
    return epoch, target
