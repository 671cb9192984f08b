"""Resolve a group's regular expressions to topics, and decide when that is due.

Theory of operation. A member may subscribe to an expression in the syntax of RE2; whether it is one
is checked at once, which topics it stands for is found out in the background, for all expressions
of the group together, so that what they find costs one epoch. A heartbeat asks for that when

- none is under way, and the last one was more than 10 seconds ago; and
- an expression has not been resolved yet, a topic has been made since, or the last one is older
  than `group.consumer.regex.refresh.interval.ms`.

What was found becomes records: an expression with its topics, and the group's epoch if that
changes what the group is subscribed to. Until then the expression stands for no topic.
Source: maybeUpdateRegularExpressions and handleRegularExpressionsResult of GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator.errors import Code, Refused
from coordinator.groups.consumer.effects import CountEpochStart
from coordinator.groups.consumer.epoch_cause import GroupEpochCause
from coordinator.groups.consumer.record_types import ConsumerGroupSaved, Record, RegexResolved
from coordinator.groups.consumer.state import ConsumerGroup
from coordinator.groups.consumer.topics import TopicList, compute_metadata_hash
from coordinator.shard.decision import Decision

MIN_REFRESH_INTERVAL_MS = 10_000


def validate_regex(regex: str) -> None:
    """Raise Refused if a text is no regular expression of RE2.

    Raises Refused: INVALID_REGULAR_EXPRESSION.
    """
    import re2  # imported here as few groups need it

    try:
        re2.compile(regex, _create_re2_options())
    except re2.error as error:
        raise Refused(
            Code.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: "
            f"{_describe_re2_error(error)}.",
        ) from error


def resolve_regexes(
    regexes: Iterable[str], topic_names: Iterable[str]
) -> dict[str, frozenset[str]]:
    """Return the topic names that match each expression as a whole, none for an invalid one."""
    import re2

    topic_names = list(topic_names)
    topics_by_regex = {}
    for regex in regexes:
        try:
            pattern = re2.compile(regex, _create_re2_options())
        except re2.error:  # It stands in the log of another broker.
            topics_by_regex[regex] = frozenset[str]()
            continue
        topics_by_regex[regex] = frozenset(name for name in topic_names if pattern.fullmatch(name))
    return topics_by_regex


def is_regex_refresh_due(
    group: ConsumerGroup,
    regexes: Mapping[str, int],
    topics: TopicList,
    resolved_topics_version: int,
    refresh_interval_ms: int,
    now_ms: int,
) -> bool:
    """Return whether a group's regular expressions are to be resolved now and nobody does yet.

    `regexes`: those the group is subscribed to by now. `resolved_topics_version`: of the topics,
    when the group's expressions were resolved last.
    """
    last_resolution = next(iter(group.resolved_regexes.values()), None)
    if last_resolution is None:
        return True
    if now_ms <= last_resolution.resolved_at_ms + MIN_REFRESH_INTERVAL_MS:
        return False
    return (
        not regexes.keys() <= group.resolved_regexes.keys()
        or resolved_topics_version < topics.created_version
        or now_ms > last_resolution.resolved_at_ms + refresh_interval_ms
    )


def save_resolved_regexes(
    group: ConsumerGroup,
    topics_by_regex: Mapping[str, frozenset[str]],
    topics_version: int,
    topics: TopicList,
    resolved_at_ms: int,
) -> Decision[Record, None]:
    """Decide what becomes of resolved expressions: their records and, if one is due, a new epoch.

    It is due if the subscription changes. Expressions that nobody is subscribed to any more are
    left out. `topics_version`: of the topics that were searched.
    """
    records: list[Record] = []
    resolved = {regex: known.topics for regex, known in group.resolved_regexes.items()}
    changed = False
    for regex, matching in topics_by_regex.items():
        if regex not in group.regex_subscriber_counts:
            continue
        changed |= resolved.get(regex, frozenset()) != matching
        resolved[regex] = matching
        records.append(
            RegexResolved(
                group.group_id, regex, tuple(sorted(matching)), topics_version, resolved_at_ms
            )
        )
    new_hash = compute_metadata_hash({*group.subscriber_counts}.union(*resolved.values()), topics)
    if not changed and new_hash == group.metadata_hash:
        return Decision(records, None)
    records.append(ConsumerGroupSaved(group.group_id, group.epoch + 1, new_hash))
    return Decision(records, None, (CountEpochStart(GroupEpochCause.REGEX_RESOLVED),))


def _create_re2_options() -> object:
    import re2

    options = re2.Options()
    options.log_errors = False
    return options


def _describe_re2_error(error: Exception) -> str:
    """Return RE2's own message, which the Python binding gives as bytes."""
    [reason] = error.args or ("",)
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
