"""Tell for `millrace plan` what a start would make of the internal topics that exist.

    outcome   what a start does
    refused   ends: a setting loses records, and the user may not alter it
    altered   alters settings by which records would be lost
    unwise    warns
    unknown   can't be told: the user may not look at the topic, or brokers don't answer
    created   creates the topic
    kept      leaves the topic as it is

The rights are those of the user that `--connection` names. What loses records and what is unwise is
decided where the group's leader does it (`streams.runtime.assigning.internal_topic_settings`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from streams.errors import AuthorizationError, OutcomeUnknown, StreamsError
from streams.runtime.assigning.internal_topic_settings import (
    find_loss_preventing_changes,
    find_unwise_settings,
    format_alter_command,
    format_remedy,
)
from streams.runtime.assigning.internal_topics import derive_compaction_lags_ms, list_topic_settings
from streams.runtime.clients.interfaces import AdminClient
from streams.runtime.clients.replication import Replication
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology

_SHOWN = (
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "min.compaction.lag.ms",
    "message.timestamp.type",
    "min.insync.replicas",
    "unclean.leader.election.enable",
)
"""The settings that are looked at, in the order in which they are shown."""


class TopicOutcome(StrEnum):
    """Names what a start does with an internal topic; the worst is first."""

    REFUSED = "refused"
    ALTERED = "altered"
    UNWISE = "unwise"
    UNKNOWN = "unknown"
    CREATED = "created"
    KEPT = "kept"


class TopicReview(NamedTuple):
    """Says what a start does with one internal topic, why, and what to do about it."""

    topic: str
    outcome: TopicOutcome
    settings: Mapping[str, str]
    """Those in force; empty where they are not known."""
    reasons: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()


class _Reviewer:
    """Reviews the internal topics of one application on one cluster."""

    def __init__(
        self, topology: Topology, config: StreamsConfig, admin: AdminClient, bootstrap_servers: str
    ) -> None:
        self.wanted = list_topic_settings(
            topology, has_ledger=config.ledger, defaults=config.topic_defaults
        )
        self._lags_ms = derive_compaction_lags_ms(topology, config.cut_retention_ms)
        self._replication_factor = config.replication_factor
        self._admin = admin
        self._servers = bootstrap_servers
        self._is_secured = bool(config.connection)

    def review_missing_topic(self, topic: str) -> TopicReview:
        """Say that a topic which is not listed is created, unless it may not be described."""
        refusal = self._explain_refusal(
            lambda: self._admin.check_topic_rights({topic: ("Describe",)})
        )
        if refusal:
            return TopicReview(topic, TopicOutcome.UNKNOWN, {}, (refusal,))
        return TopicReview(topic, TopicOutcome.CREATED, {})

    def review_existing_topic(self, topic: str, replication: Replication | None) -> TopicReview:
        """Return what a start would do with an internal topic that exists."""
        try:
            found = self._admin.fetch_topic_settings([topic])[topic]
        except (OutcomeUnknown, StreamsError) as error:
            return TopicReview(topic, TopicOutcome.UNKNOWN, {}, (str(error),))
        changes = find_loss_preventing_changes(self.wanted[topic], found)
        outcome, reasons, remedies = TopicOutcome.KEPT, list[str](), list[str]()
        if changes:
            outcome = TopicOutcome.ALTERED
            changed = ", ".join(
                f"{name}={found.get(name, '?')} -> {to}" for name, to in changes.items()
            )
            refusal = self._explain_refusal(
                lambda: self._admin.check_topic_rights({topic: ("AlterConfigs",)})
            )
            reasons.append(
                f"{changed}: records would be lost" + (f"; {refusal}" if refusal else "")
            )
            if refusal:
                outcome = TopicOutcome.REFUSED
                remedies.append(
                    format_alter_command(topic, changes, self._servers, is_secured=self._is_secured)
                )
        if replication is not None:
            for unwise in find_unwise_settings(
                topic,
                {**found, **changes},
                replication,
                replication_factor=self._replication_factor,
                cut_retention_ms=self._lags_ms.get(topic, 0),
            ):
                outcome = TopicOutcome.UNWISE if outcome is TopicOutcome.KEPT else outcome
                reasons.append(unwise.description)
                remedies.append(
                    format_remedy(topic, unwise, self._servers, is_secured=self._is_secured)
                )
        return TopicReview(topic, outcome, found, tuple(reasons), tuple(remedies))

    def _explain_refusal(self, check: Callable[[], None]) -> str:
        """Return the message of the error that a check raises, or nothing."""
        try:
            check()
        except (AuthorizationError, OutcomeUnknown, StreamsError) as error:
            return str(error)
        return ""


def review_internal_topics(
    topology: Topology,
    config: StreamsConfig,
    admin: AdminClient,
    bootstrap_servers: str,
    existing_topics: Collection[str],
) -> list[TopicReview]:
    """Describe what a start would do with each internal topic, the worst first.

    Nothing is altered. `bootstrap_servers` are the addresses in the commands.
    """
    reviewer = _Reviewer(topology, config, admin, bootstrap_servers)
    existing = [topic for topic in reviewer.wanted if topic in existing_topics]
    try:
        replication = admin.fetch_replication(existing) if existing else None
    except (OutcomeUnknown, StreamsError):
        replication = None
    reviews = [
        reviewer.review_existing_topic(topic, replication)
        if topic in existing_topics
        else reviewer.review_missing_topic(topic)
        for topic in reviewer.wanted
    ]
    order = list(TopicOutcome)
    return sorted(reviews, key=lambda each: (order.index(each.outcome), each.topic))


def list_review_lines(reviews: Collection[TopicReview]) -> Iterator[str]:
    """Yield the lines that say what a start does with internal topics; none if there are none."""
    if not reviews:
        return
    yield "internal topics on the brokers, and what a start does with them:"
    for review in reviews:
        shown = ", ".join(
            f"{name}={review.settings[name]}" for name in _SHOWN if name in review.settings
        )
        yield f"  {review.outcome}: {review.topic}" + (f" ({shown})" if shown else "")
        yield from (f"    {reason}" for reason in review.reasons)
        yield from (f"    remedy: {remedy}" for remedy in review.remedies)
