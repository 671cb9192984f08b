"""Give commands a Kafka in memory in place of the cluster that their options name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from streams.commands.cluster_clients import ClusterClients
from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown
from streams.settings.config import StreamsConfig
from streams.testing.clients import InMemoryAdmin, InMemoryProducer
from streams.testing.cluster import InMemoryCluster

NOW_MS = 1_000


class CommandAdmin(InMemoryAdmin):
    """Adds to the admin client of tests what commands ask."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        super().__init__(cluster)
        self._logs = cluster.logs

    def fetch_partition_counts_at_start(self, timeout_s: float) -> dict[str, int]:
        return self.fetch_partition_counts()

    def fetch_last_stable_offsets(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        return {each: self._logs[each].last_stable_offset for each in partitions}


class InMemoryReader:
    """Reads committed records up to given ends, or to the last stable offsets."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        self._cluster = cluster
        self.is_closed = False

    def read_records(
        self, positions: Mapping[Partition, int], ends: Mapping[Partition, int] | None = None
    ) -> Iterator[Any]:
        for partition, position in positions.items():
            for message in self._cluster.logs[partition].read_committed(position):
                if ends is not None and message.offset() >= ends[partition]:
                    break
                yield message

    def close(self) -> None:
        self.is_closed = True


class CommandProducer(InMemoryProducer):
    """Takes a record's time by the name that confluent-kafka has for it.

    With `undelivered_error_names`, those of errors, records are not delivered.
    """

    undelivered_error_names: frozenset[str] = frozenset()

    def produce(  # type: ignore[override]
        self, topic: str, *, timestamp: int = 0, **fields: Any
    ) -> None:
        super().produce(topic, timestamp_ms=timestamp, **fields)

    def flush(self) -> None:
        if self.undelivered_error_names:
            raise OutcomeUnknown("1 not delivered: Broker failed to validate record")
        super().flush()


class InMemoryClients(ClusterClients):
    """Makes the clients of a command on a cluster in memory."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        self.config = StreamsConfig()
        self.servers = "memory:9092"
        self.cluster = cluster
        self.admin = CommandAdmin(cluster)  # type: ignore[assignment]
        self.readers: list[InMemoryReader] = []
        self.undelivered_error_names: frozenset[str] = frozenset()

    def create_reader(self, *, committed_only: bool) -> Any:
        self.readers.append(InMemoryReader(self.cluster))
        return self.readers[-1]

    def create_producer(self) -> Any:
        producer = CommandProducer(
            "produce",
            self.cluster,
            transactional=False,
            reports_deliveries=False,
            now_ms=lambda: NOW_MS,
            random=Random(7),
        )
        producer.undelivered_error_names = self.undelivered_error_names
        return producer


def use_cluster(monkeypatch: pytest.MonkeyPatch, cluster: InMemoryCluster) -> InMemoryClients:
    """Let commands find this cluster for the time of a test."""
    clients = InMemoryClients(cluster)
    monkeypatch.setattr("streams.commands.cluster_clients.connect_clients", lambda _: clients)
    return clients
