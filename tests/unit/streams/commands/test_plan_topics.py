"""Test what `millrace plan` says of internal topics that exist, before an application starts."""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, serdes
from streams.commands.plan_topics import TopicOutcome, list_review_lines, review_internal_topics
from streams.errors import AuthorizationError, OutcomeUnknown
from streams.runtime.assigning.internal_topics import REPARTITION_SETTINGS
from streams.runtime.clients.replication import Replication
from tests.unit.streams.runtime.fakes import FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

CHANGELOG, REPARTITION, LEDGER = "a-c-changelog", "a-c-repartition", "a-ledger"
HEAD = "internal topics on the brokers, and what a start does with them:"


class Cluster:
    """Holds a cluster in memory, and an application that counts by another key, with a ledger."""

    def __init__(self, **settings: Any) -> None:
        self.app = App("a", ledger=True, **settings)
        stream = self.app.stream("lines", key=serdes.string, value=serdes.string)
        stream.group_by(lambda key, value: value, key=serdes.string).count(store="c")
        self.kafka = Kafka({"lines": 1})
        self.admin = FakeAdmin(self.kafka, Script())

    def create_topic(self, topic: str, **settings: str) -> None:
        settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.kafka.create_topic(topic, 1, settings)

    def plan(self) -> list[str]:
        """Return the lines that are printed."""
        reviews = review_internal_topics(
            self.app.topology(),
            self.app.config,
            self.admin,
            "kafka:9092",
            self.kafka.partition_counts,
        )
        return list(list_review_lines(reviews))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_topics_that_are_as_they_are_to_be_are_kept_and_missing_ones_created(
    cluster: Cluster,
) -> None:
    cluster.kafka.create_topic(REPARTITION, 1, REPARTITION_SETTINGS)
    cluster.create_topic(CHANGELOG, cleanup_policy="compact", segment_ms="7")
    wanted = "cleanup.policy=delete, retention.ms=-1, retention.bytes=-1, "
    wanted += "message.timestamp.type=CreateTime"
    assert cluster.plan() == [
        HEAD,
        f"  created: {LEDGER}",
        f"  kept: {CHANGELOG} (cleanup.policy=compact)",
        f"  kept: {REPARTITION} ({wanted})",
    ]


def test_what_would_lose_records_is_altered_and_nothing_is_altered_by_the_plan(
    cluster: Cluster,
) -> None:
    cluster.create_topic(CHANGELOG, cleanup_policy="delete")
    cluster.create_topic(LEDGER, cleanup_policy="delete", retention_ms="5")
    assert cluster.plan() == [
        HEAD,
        f"  altered: {CHANGELOG} (cleanup.policy=delete)",
        "    cleanup.policy=delete -> compact: records would be lost",
        f"  altered: {LEDGER} (cleanup.policy=delete, retention.ms=5)",
        "    retention.ms=5 -> -1: records would be lost",
        f"  created: {REPARTITION}",
    ]
    assert cluster.kafka.topic_settings[CHANGELOG] == {"cleanup.policy": "delete"}


def test_without_the_right_to_alter_a_start_is_refused_and_the_command_is_printed(
    cluster: Cluster,
) -> None:
    cluster.create_topic(CHANGELOG, cleanup_policy="delete")
    refusal = AuthorizationError("AlterConfigs", "topic", CHANGELOG)
    # The rights to the other two, which are missing, are looked at, too.
    cluster.admin.script.fail("admin.check_topic_rights", refusal, at=2)
    _, refused, why, remedy, *_ = cluster.plan()
    assert refused == f"  refused: {CHANGELOG} (cleanup.policy=delete)"
    assert why == f"    cleanup.policy=delete -> compact: records would be lost; {refusal}"
    assert remedy == (
        f"    remedy: kafka-configs.sh --alter --entity-type topics --entity-name {CHANGELOG} "
        "--add-config 'cleanup.policy=compact' --bootstrap-server kafka:9092"
    )


def test_what_is_unwise_has_a_remedy(cluster: Cluster) -> None:
    cluster.create_topic(CHANGELOG, cleanup_policy="compact", min_insync_replicas="1")
    cluster.create_topic(LEDGER, cleanup_policy="delete")
    cluster.admin.replication = Replication(3, {CHANGELOG: 3, LEDGER: 1})
    _, unwise, why, remedy, ledger, few, add, *_ = cluster.plan()
    assert unwise == f"  unwise: {CHANGELOG} (cleanup.policy=compact, min.insync.replicas=1)"
    assert why.startswith("    min.insync.replicas=1 with 3 replicas")
    assert "--add-config 'min.insync.replicas=2'" in remedy
    assert ledger == f"  unwise: {LEDGER} (cleanup.policy=delete)"
    assert few.startswith("    replication factor 1 on 3 brokers")
    assert add == "    remedy: add replicas with kafka-reassign-partitions.sh"


@pytest.mark.parametrize(
    "error",
    [AuthorizationError("DescribeConfigs", "topic", CHANGELOG), OutcomeUnknown("no answer")],
)
def test_what_can_not_be_read_is_said_to_be_unknown(cluster: Cluster, error: Exception) -> None:
    cluster.create_topic(CHANGELOG)
    cluster.admin.script.fail("admin.fetch_topic_settings", error)
    cluster.admin.script.fail("admin.fetch_replication", error)
    _, unknown, why, *_ = cluster.plan()
    assert (unknown, why) == (f"  {TopicOutcome.UNKNOWN}: {CHANGELOG}", f"    {error}")


def test_a_topic_that_may_not_be_described_is_not_taken_for_a_missing_one(
    cluster: Cluster,
) -> None:
    refusal = AuthorizationError("Describe", "topic", REPARTITION)
    cluster.admin.script.fail("admin.check_topic_rights", refusal)
    assert cluster.plan()[1:3] == [f"  unknown: {REPARTITION}", f"    {refusal}"]


def test_nothing_is_said_of_an_application_without_internal_topics() -> None:
    assert list(list_review_lines([])) == []
