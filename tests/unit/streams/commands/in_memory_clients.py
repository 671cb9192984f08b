"""Give commands a Kafka in memory in place of the cluster that their options name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

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

    A record fails with the error that `failures` names for its index among all records. From index
    `unanswered_from` on no record is acknowledged, and `flush` ends without an answer. A value of
    `refused` lets the `batch_records` records fail that it is among, which are then not written.
    """

    failures: Mapping[int, KafkaError] = {}
    unanswered_from: int | None = None
    refused: Mapping[bytes, KafkaError] = {}
    refused_bytes = 1_000_000
    is_commit_lost = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.count = 0
        self.batch_records = 10_000
        self.reports: list[tuple[int, Any]] = []
        self.batch: list[tuple[dict[str, Any], Any]] = []

    def produce(  # type: ignore[override]
        self, topic: str, *, timestamp: int = 0, on_delivery: Any = None, **fields: Any
    ) -> None:
        if len(fields["value"] or b"") > self.refused_bytes:
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        index, self.count = self.count, self.count + 1
        if self.refused:
            self.batch.append(({"topic": topic, "timestamp_ms": timestamp, **fields}, on_delivery))
            if len(self.batch) == self.batch_records:
                self.deliver_batch()
        elif index in self.failures or index >= (self.unanswered_from or self.count):
            self.reports.append((index, on_delivery))
        else:
            super().produce(topic, timestamp_ms=timestamp, **fields)

    def deliver_batch(self) -> None:
        """Write the records of a batch, or report the error of the one that is refused to all."""
        batch, self.batch = self.batch, []
        errors = [self.refused[f["value"]] for f, _ in batch if f["value"] in self.refused]
        for fields, report in batch:
            if errors:
                report(errors[0], None)
            else:
                super().produce(**fields)

    def flush(self) -> None:
        self.deliver_batch()
        super().flush()
        for index, report in self.reports:
            if index in self.failures:
                report(self.failures[index], None)
        self.reports = [each for each in self.reports if each[0] not in self.failures]
        if self.reports:
            raise OutcomeUnknown(f"{len(self.reports)} not delivered: no answer")

    def purge_outstanding_records(self) -> None:
        for _, report in self.reports:
            report(KafkaError(KafkaError._PURGE_INFLIGHT), None)
        self.reports = []

    def commit_transaction(self) -> None:
        if self.is_commit_lost:
            self.abort_transaction = self.refuse_to_abort  # type: ignore[method-assign]
            raise OutcomeUnknown("commit_transaction: timed out")
        super().commit_transaction()

    def refuse_to_abort(self) -> None:
        raise OutcomeUnknown("abort_transaction: conflict")

    def try_abort_and_close(self) -> bool:
        try:
            self.abort_transaction()
        except OutcomeUnknown:
            return False
        return True


class InMemoryClients(ClusterClients):
    """Makes the clients of a command on a cluster in memory."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        self.config = StreamsConfig()
        self.servers = "memory:9092"
        self.cluster = cluster
        self.admin = CommandAdmin(cluster)  # type: ignore[assignment]
        self.readers: list[InMemoryReader] = []
        self.alter_producer: Callable[[CommandProducer], None] = lambda _: None

    def create_reader(self, *, committed_only: bool) -> Any:
        self.readers.append(InMemoryReader(self.cluster))
        return self.readers[-1]

    def create_producer(self, batch_bytes_max: int | None = None) -> Any:
        self.batch_bytes_max = batch_bytes_max
        producer = CommandProducer(
            "produce",
            self.cluster,
            transactional=self.config.exactly_once,
            reports_deliveries=False,
            now_ms=lambda: NOW_MS,
            random=Random(7),
        )
        self.alter_producer(producer)
        return producer


def use_cluster(monkeypatch: pytest.MonkeyPatch, cluster: InMemoryCluster) -> InMemoryClients:
    """Let commands find this cluster for the time of a test."""
    clients = InMemoryClients(cluster)

    def connect_clients(config: StreamsConfig) -> InMemoryClients:
        clients.config = config
        return clients

    monkeypatch.setattr("streams.commands.cluster_clients.connect_clients", connect_clients)
    return clients
