"""Advance a group and its member after the member was created or updated, by either protocol.

1. If what the group is subscribed to has changed, or its topics have, it gets its next epoch.
2. If the group's epoch is above the target's, the next target is computed.
3. The member takes its next step towards the target (`reconcile`).

Source: GroupMetadataManager, which does the same for a heartbeat and for a classic member's join.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from coordinator.groups.consumer.config import ConsumerGroupConfig, ConsumerGroupSettings
from coordinator.groups.consumer.effects import (
    ConsumerEffect,
    ConsumerTimer,
    CountEpochSettled,
    CountEpochStart,
    CountTargetAssignment,
    RememberTopicsVersion,
    ResolveRegexes,
    SetMemberTimer,
    select_rebalance_timer,
)
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
    ComputedTarget,
    compute_target_assignment,
    count_moved_partitions,
    has_assignment_interval_passed,
    select_assignor,
)
from coordinator.groups.consumer.topics import TopicList, compute_metadata_hash, find_topic_ids
from coordinator.shard.decision import Decision

NeedsNewEpoch: TypeAlias = bool


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
    began_ns: int = 0  # the monotonic time at which the request began


def advance_member(
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    updated: ConsumerGroupMember,
    replaced_member_id: str | None,
    owned: OwnedPartitions,
    context: GroupContext,
    session_timeout_ms: int,
) -> Decision[Record, ConsumerGroupMember]:
    """Decide the next step of a created or updated member and its group; respond with the member.

    `member` says what `updated` is by now; `replaced_member_id`: whose place it takes, if it has
    another id than before.

    Raises Refused: FENCED_MEMBER_EPOCH, INVALID_REGULAR_EXPRESSION.
    """
    records: list[Record] = []
    if updated is not member:
        records.append(updated.to_member_record(group.group_id))
    topics_changed = updated.topics != member.topics
    regex_changed = updated.regex != member.regex
    must_bump_epoch = topics_changed
    if regex_changed:
        must_bump_epoch |= _validate_regex_change(group, member.regex, updated.regex)
        records += _build_tombstone_if_last_subscriber(group, member.regex)
    epoch = group.epoch
    checks_topics = (
        must_bump_epoch or context.transient_state.hashed_topics_version != context.topics.version
    )
    if checks_topics:
        epoch, epoch_records = compute_group_epoch(
            group, member, updated, context.topics, must_bump=must_bump_epoch
        )
        records += epoch_records
    counted: tuple[ConsumerEffect, ...] = ()
    target_epoch, target = group.target_epoch, None
    if target_epoch < epoch and _is_target_due(group, context):
        target_epoch = epoch
        computed, count_target = _compute_target(
            group, epoch, member, updated, replaced_member_id, context
        )
        records += computed.records
        target, counted = computed.of_member, (count_target,)
    moved = updated
    subscription_changed = topics_changed or regex_changed
    if subscription_changed or not updated.has_reached(target_epoch):
        moved = _reconcile_with_target(
            group, updated, target_epoch, target, owned, context, subscription_changed
        )
        if moved is not updated:
            records.append(moved.to_assignment_record(group.group_id))
    effects: list[ConsumerEffect] = [
        SetMemberTimer(ConsumerTimer.SESSION, moved.member_id, session_timeout_ms),
        *counted,
    ]
    if epoch != group.epoch:
        cause = _select_epoch_cause(group, updated, must_bump_epoch=must_bump_epoch)
        effects.append(CountEpochStart(cause, (moved.member_id,)))
    if moved is not updated:
        effects += (select_rebalance_timer(moved), CountEpochSettled())
    if checks_topics:
        effects.append(RememberTopicsVersion(context.topics.version))
    regexes = _select_regexes_if_refresh_due(group, member, updated, context)
    if regexes:
        effects.append(ResolveRegexes(regexes))
    return Decision(records, moved, effects)


def _compute_target(
    group: ConsumerGroup,
    epoch: int,
    member: ConsumerGroupMember,
    updated: ConsumerGroupMember,
    replaced_member_id: str | None,
    context: GroupContext,
) -> tuple[ComputedTarget, ConsumerEffect]:
    """Return a new target with the updated member's part of it, and the effect that counts it."""
    assignor = select_assignor(group, context.config.assignors[0], member, updated)
    target = compute_target_assignment(
        group, epoch, updated, replaced_member_id, assignor, context.topics, context.now_ms
    )
    moved_count = count_moved_partitions(group, target.records)
    return target, CountTargetAssignment(assignor, moved_count, context.began_ns)


def _is_target_due(group: ConsumerGroup, context: GroupContext) -> bool:
    """Return whether the assignment interval has passed since the last target was computed."""
    return has_assignment_interval_passed(
        group, context.settings.assignment_interval_ms, context.now_ms
    )


def _reconcile_with_target(
    group: ConsumerGroup,
    updated: ConsumerGroupMember,
    target_epoch: int,
    target: TopicPartitions | None,
    owned: OwnedPartitions,
    context: GroupContext,
    subscription_changed: bool,
) -> ConsumerGroupMember:
    """Return the member after its next step towards the target; the very same if it takes none.

    `target` None: the member's part of the target is what the group has as such.
    """
    if target is None:
        target = group.target_assignment_of(updated.member_id, updated.instance_id)
    moved = reconcile_member(
        updated,
        target_epoch,
        target,
        find_topic_ids(group.subscribed_topics_of(updated), context.topics),
        owned,
        group.find_owner,
        subscription_changed=subscription_changed,
    )
    return updated if moved == updated else moved


def _select_epoch_cause(
    group: ConsumerGroup, updated: ConsumerGroupMember, *, must_bump_epoch: bool
) -> GroupEpochCause:
    """Return the cause of the epoch that a member's step brings."""
    if not must_bump_epoch:
        return GroupEpochCause.TOPICS_CHANGED
    is_new = updated.member_id not in group.members
    return GroupEpochCause.MEMBER_JOINED if is_new else GroupEpochCause.SUBSCRIPTION_CHANGED


def _validate_regex_change(
    group: ConsumerGroup, old_regex: str | None, new_regex: str | None
) -> NeedsNewEpoch:
    """Return whether the group needs an epoch now, as a member has another expression than before.

    An expression that is still to be resolved needs no epoch now, but brings one then.

    Raises Refused: INVALID_REGULAR_EXPRESSION.
    """
    if not new_regex:
        return bool(old_regex)
    if new_regex not in group.regex_subscriber_counts:
        validate_regex(new_regex)
        return False
    return new_regex in group.resolved_regexes


def _build_tombstone_if_last_subscriber(
    group: ConsumerGroup, old_regex: str | None
) -> list[Record]:
    """Return the tombstone of an expression whose last subscriber gives it up."""
    if old_regex and group.regex_subscriber_counts.get(old_regex) == 1:
        return [RegexForgotten(group.group_id, old_regex)]
    return []


def _select_regexes_if_refresh_due(
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    updated: ConsumerGroupMember,
    context: GroupContext,
) -> frozenset[str]:
    """Return the regular expressions to resolve in the background, or none before they are due."""
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


class ComputedEpoch(NamedTuple):
    epoch: int
    records: list[Record]  # of a new epoch, and the tombstone of what older brokers wrote for it


def compute_group_epoch(
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    updated: ConsumerGroupMember,
    topics: TopicList,
    *,
    must_bump: bool,
) -> ComputedEpoch:
    """Return the group's epoch, one up if `must_bump` or if its topics have changed."""
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
    records: list[Record] = []
    if must_bump or new_hash != group.metadata_hash:
        epoch += 1
        records.append(ConsumerGroupSaved(group.group_id, epoch, new_hash))
    if group.has_subscription_metadata:
        records.append(SubscriptionMetadataForgotten(group.group_id))
    return ComputedEpoch(epoch, records)
