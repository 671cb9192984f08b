"""Test that an application that runs for weeks without a record keeps its offsets (KIP-211)."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from coordinator import EmbeddedBroker
from coordinator.clock import ShiftedClock
from streams.processes.running import RunningApp
from tests.integration.cluster import PARTITIONS, Topics
from tests.integration.worker import build
from tests.processes import HANG_LIMIT_S, wait_until

DAY_MS = 86_400_000


def start(topics: Topics, state: Path) -> RunningApp:
    """Start an application with a repartition topic, of whose offsets only the group knows."""
    running = build(
        topics.application,
        topics.source,
        topics.target,
        kind="words",
        bootstrap_servers=topics.servers,
        state_dir=state,
    ).start()
    running.wait_for("RUNNING", HANG_LIMIT_S)
    return running


def count_offsets(topics: Topics, group: str) -> int:
    """Return for how many partitions a group has committed offsets."""
    admin = AdminClient({"bootstrap.servers": topics.servers})
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = asked[group].result(HANG_LIMIT_S).topic_partitions
    return sum(each.offset >= 0 for each in found)


def commit_without_members(topics: Topics, group: str) -> None:
    """Commit an offset for a group that nobody joins."""
    consumer = Consumer({"bootstrap.servers": topics.servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topics.source, 0, 1)], asynchronous=False)
    consumer.close()


def test_an_application_that_runs_keeps_its_offsets_and_counts_on(tmp_path: Path) -> None:
    clock = ShiftedClock()
    settings = {"offsets.retention.check.interval.ms": 100}
    with EmbeddedBroker(settings=settings, clock=clock) as broker:
        topics = Topics(broker.bootstrap_servers, "idle")
        commit_without_members(topics, "witness")
        with start(topics, tmp_path):
            topics.load(100)
            wait_until(lambda: topics.counts()["value"] == 100, what="the counts")
            wait_until(lambda: count_offsets(topics, "idle") == 2 * PARTITIONS, what="all offsets")
            clock.shift_ms = 60 * DAY_MS
            wait_until(lambda: count_offsets(topics, "witness") == 0, what="a group to expire")
            assert count_offsets(topics, "idle") == 2 * PARTITIONS
        with start(topics, tmp_path):
            topics.load(1)
            wait_until(lambda: topics.counts()["value"] == 101, what="the count to go on")
