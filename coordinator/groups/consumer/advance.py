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

from coordinator.groups.consumer.config import ConsumerGroupConfig, ConsumerGroupSettings
from coordinator.groups.consumer.epoch_cause import GroupEpochCause
from coordinator.groups.consumer.reconcile import OwnedPartitions, reconcile_member
from coordinator.groups.consumer.record_types import (
    ConsumerGroupSaved,
    Record,
    RegexForgotten,
    SubscriptionMetadataForgotten,
    TopicPartitions,
)
from coordinator.groups.consumer.regex import is_regex_refresh_due, validate_regex
from coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroupMember
from coordinator.groups.consumer.target import (
    compute_target_assignment,
    is_assignment_due,
    select_assignor,
)
from coordinator.groups.consumer.topics import TopicList, compute_metadata_hash, find_topic_ids


@dataclass(slots=True)
class TransientGroupState:
    """Tracks the state of a group that no record has, so that a restart loses it.

    That is the version of the topics that its metadata hash, and its regular expressions, have been
    compared with, and since when it hasn't been Stable.
    """

    hashed_topics_version: int = -1
    resolved_topics_version: int = -1
    is_resolving: bool = False
    unstable_since_ms: int | None = None


class GroupContext(NamedTuple):
    """Holds what a decision reads beside the group: topics, settings, transient state, time."""

    topics: TopicList
    config: ConsumerGroupConfig
    settings: ConsumerGroupSettings
    transient_state: TransientGroupState
    now_ms: int


class AdvanceResult(NamedTuple):
    """Holds the advanced member, and the effects to apply once the records are written.

    `has_moved`: it has taken a step towards its target. `epoch_cause`: the cause of the group's
    next epoch, if there is one. `regexes_to_resolve`: the regular expressions to resolve in the
    background.
    """

    member: ConsumerGroupMember
    has_moved: bool
    epoch_cause: GroupEpochCause | None
    has_checked_topics: bool
    regexes_to_resolve: frozenset[str]


def advance_member(
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    updated: ConsumerGroupMember,
    replaced_member_id: str | None,
    owned: OwnedPartitions,
    context: GroupContext,
    records: list[Record],
) -> AdvanceResult:
    """Advance a created or updated member, and its group, by one step; add the records for it.

    `member` says what `updated` is by now; `replaced_member_id`: whose place it takes, if it has
    another id than before.

    Raises Refused: FENCED_MEMBER_EPOCH, INVALID_REGULAR_EXPRESSION.
    """
    if updated is not member:
        records.append(updated.to_member_record(group.group_id))
    topics_changed = updated.topics != member.topics
    regex_changed = updated.regex != member.regex
    must_bump_epoch = topics_changed
    if regex_changed:
        must_bump_epoch |= _replace_regex(group, member.regex, updated.regex, records)
    epoch = group.epoch
    is_new = updated.member_id not in group.members
    cause = GroupEpochCause.MEMBER_JOINED if is_new else GroupEpochCause.SUBSCRIPTION_CHANGED
    checks_topics = (
        must_bump_epoch or context.transient_state.hashed_topics_version != context.topics.version
    )
    if checks_topics:
        epoch = update_group_epoch(
            group, member, updated, context.topics, records, must_bump=must_bump_epoch
        )
    target_epoch, target = _update_target(
        group, epoch, member, updated, replaced_member_id, context, records
    )
    moved = updated
    has_moved = False
    subscription_changed = topics_changed or regex_changed
    if subscription_changed or not updated.has_reached(target_epoch):
        moved = reconcile_member(
            updated,
            target_epoch,
            group.target_assignment_of(updated.member_id, updated.instance_id)
            if target is None
            else target,
            find_topic_ids(group.subscribed_topics_of(updated), context.topics),
            owned,
            group.find_owner,
            subscription_changed=subscription_changed,
        )
        has_moved = moved != updated
        if has_moved:
            records.append(moved.to_assignment_record(group.group_id))
    regexes_to_resolve = _select_regexes_to_resolve(group, member, updated, context)
    epoch_cause = None
    if epoch != group.epoch:
        epoch_cause = cause if must_bump_epoch else GroupEpochCause.TOPICS_CHANGED
    return AdvanceResult(moved, has_moved, epoch_cause, checks_topics, regexes_to_resolve)


def _replace_regex(
    group: ConsumerGroup, old_regex: str | None, new_regex: str | None, records: list[Record]
) -> bool:
    """Handle a changed regular expression of a member; return whether an epoch is due now.

    Adds the tombstone of an old expression that nobody else has. An expression that is still to be
    resolved needs no epoch now, but brings one then.

    Raises Refused: INVALID_REGULAR_EXPRESSION.
    """
    if old_regex and group.regex_subscriber_counts.get(old_regex) == 1:
        records.append(RegexForgotten(group.group_id, old_regex))
    if not new_regex:
        return bool(old_regex)
    if new_regex not in group.regex_subscriber_counts:
        validate_regex(new_regex)
        return False
    return new_regex in group.resolved_regexes


def _select_regexes_to_resolve(
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    updated: ConsumerGroupMember,
    context: GroupContext,
) -> frozenset[str]:
    """Return the regular expressions to resolve in the background; none if that isn't due."""
    if (
        not group.regex_subscriber_counts and not updated.regex
    ) or context.transient_state.is_resolving:
        return frozenset()
    regexes = count_regex_subscribers(group, member, updated)
    if not regexes or not is_regex_refresh_due(
        group,
        regexes,
        context.topics,
        context.transient_state.resolved_topics_version,
        context.config.regex_refresh_interval_ms,
        context.now_ms,
    ):
        return frozenset()
    return frozenset(regexes)


def count_regex_subscribers(
    group: ConsumerGroup,
    old_member: ConsumerGroupMember | None,
    new_member: ConsumerGroupMember | None,
) -> Mapping[str, int]:
    """Return how many members have each regular expression, once `old_member` is `new_member`."""
    old_regex = old_member.regex if old_member is not None else None
    new_regex = new_member.regex if new_member is not None else None
    if old_regex == new_regex:
        return group.regex_subscriber_counts
    counts = dict(group.regex_subscriber_counts)
    if old_regex and old_regex in counts:
        counts[old_regex] -= 1
        if not counts[old_regex]:
            del counts[old_regex]
    if new_regex:
        counts[new_regex] = counts.get(new_regex, 0) + 1
    return counts


def update_group_epoch(
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    updated: ConsumerGroupMember,
    topics: TopicList,
    records: list[Record],
    *,
    must_bump: bool,
) -> int:
    """Return the group's epoch; record a new one if `must_bump` or its topics changed."""
    names = set(group.subscriber_counts)
    if updated.topics != member.topics:
        names -= {topic for topic in member.topics if group.subscriber_counts.get(topic) == 1}
        names |= updated.topics
    dropped_regex = member.regex if updated.regex != member.regex else None
    for regex, resolution in group.resolved_regexes.items():
        if regex != dropped_regex or group.regex_subscriber_counts.get(regex) != 1:
            names |= resolution.topics
    new_hash = compute_metadata_hash(names, topics)
    epoch = group.epoch
    if must_bump or new_hash != group.metadata_hash:
        epoch += 1
        records.append(ConsumerGroupSaved(group.group_id, epoch, new_hash))
    if group.has_subscription_metadata:
        records.append(SubscriptionMetadataForgotten(group.group_id))
    return epoch


def _update_target(
    group: ConsumerGroup,
    epoch: int,
    member: ConsumerGroupMember,
    updated: ConsumerGroupMember,
    replaced_member_id: str | None,
    context: GroupContext,
    records: list[Record],
) -> tuple[int, TopicPartitions | None]:
    """Compute the next target assignment if it is due; return its epoch and the member's part.

    The part is None if the target stays as it is.
    """
    interval_ms = context.settings.assignment_interval_ms
    if group.target_epoch >= epoch or not is_assignment_due(group, interval_ms, context.now_ms):
        return group.target_epoch, None
    assignor = select_assignor(group, context.config.assignors[0], member, updated)
    target_records, target = compute_target_assignment(
        group, epoch, updated, replaced_member_id, assignor, context.topics, context.now_ms
    )
    records += target_records
    return epoch, target
