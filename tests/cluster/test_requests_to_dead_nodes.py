"""Test that a request which a dead node should answer waits, and takes no processor meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from confluent_kafka.admin import AdminClient, NewTopic

from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown
from streams.runtime.clients.factory import KafkaClientSupplier
from streams.settings.config import StreamsConfig
from tests.cluster.nodes import KafkaCluster

PARTITIONS = 6


def test_a_worker_does_not_try_a_dead_node_without_a_pause(
    cluster: KafkaCluster, unique: Callable[[str], str]
) -> None:
    topic, servers = unique("offsets"), cluster.bootstrap_servers
    creator = AdminClient({"bootstrap.servers": servers})
    creator.create_topics([NewTopic(topic, PARTITIONS, len(cluster.nodes))])[topic].result()
    partitions = [Partition(topic, number) for number in range(PARTITIONS)]
    admin = KafkaClientSupplier(topic, StreamsConfig(), servers).create_admin(retry_s=30.0)
    assert len(admin.fetch_latest_offsets(partitions)) == PARTITIONS
    cluster.nodes[1].kill()
    try:
        begin_s, processor_begin_s = time.monotonic(), time.process_time()
        with suppress(OutcomeUnknown):
            admin.fetch_latest_offsets(partitions)
        waited_s = time.monotonic() - begin_s
        processor_s = time.process_time() - processor_begin_s
    finally:
        cluster.restart(1)
    assert waited_s > 1.0  # until another node leads the partitions of the dead one
    assert processor_s < 0.2 * waited_s
