"""Test that racks of brokers and workers reach the assignment of tasks (KIP-925)."""

from __future__ import annotations

import logging
from pathlib import Path
from uuid import uuid4

import pytest

from streams.common.topic_partitions import Partition
from streams.runtime.clients.factory import KafkaClientSupplier
from streams.settings.config import StreamsConfig
from tests.brokers import IN_CI, SETTINGS, EmbeddedProcess
from tests.integration.cluster import PARTITIONS, Topics
from tests.integration.running import start_counting
from tests.kafka.server import RealKafka
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = IN_CI

RECORDS = 200


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_the_racks_of_brokers_are_known_and_workers_of_two_racks_share_the_tasks(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Check both workers of a node with a rack; the embedded broker has none, which is logged."""
    broker = (
        EmbeddedProcess(SETTINGS)
        if kind == "embedded"
        else RealKafka({**SETTINGS, "broker.rack": "r1"})
    )
    try:
        broker.start()
        topics = Topics(broker.bootstrap_servers, f"racks-{uuid4().hex[:8]}")
        admin = KafkaClientSupplier("racks", StreamsConfig(), topics.servers).create_admin()
        racks = frozenset() if kind == "embedded" else frozenset(["r1"])
        assert admin.fetch_replica_racks([topics.source, "none"]) == {
            Partition(topics.source, number): racks for number in range(PARTITIONS)
        }
        with caplog.at_level(logging.WARNING):
            one, two = (
                start_counting(
                    topics,
                    tmp_path / rack,
                    client_rack=rack,
                    rack_aware_assignment_strategy="min_traffic",
                )
                for rack in ("r1", "r2")
            )
            with one, two:
                for worker in (one, two):
                    worker.wait_for("RUNNING", HANG_LIMIT_S)
                    wait_until(lambda w=worker: w.metrics()["tasks"] > 0, what="tasks")  # type: ignore[misc]
                topics.load(RECORDS)
                assert topics.wait_for_counts(RECORDS) == topics.truth
        assert ("without regard to racks" in caplog.text) == (kind == "embedded")
    finally:
        broker.close()
