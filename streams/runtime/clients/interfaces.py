"""Declare the clients that the runtime needs as types, for Kafka's own and for those in memory.

`streams.runtime.clients` reaches a broker, `streams.testing.clients` a cluster in memory, which a
test decides about. What a method does and raises is written where it reaches a broker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.membership.producer_identity import ProducerIdentity
from streams.runtime.clients.delivered_offsets import DeliveredOffsets
from streams.runtime.clients.replication import Replication


class FlowControl(Protocol):
    """Gives a partition's lag, and pauses and resumes the partition, as the consumer does."""

    def measure_lag(self, partition: Partition) -> int | None:
        """Return how many records on the broker are not polled yet; None if unknown."""
        ...

    def pause_partition(self, partition: Partition) -> None: ...

    def resume_partition(self, partition: Partition) -> None: ...


class ConsumerClient(FlowControl, Protocol):
    """Reads assigned partitions: see `DataConsumer`."""

    def add_partitions(self, positions: Mapping[Partition, int]) -> None: ...

    def remove_partitions(self, partitions: Iterable[Partition]) -> None: ...

    def poll_records(self, records_max: int, timeout_s: float) -> list[Any]: ...

    def poll_at_first_record(self, records_max: int, timeout_s: float) -> list[Any]: ...

    def serve_callbacks(self) -> None: ...

    def take_out_of_range_positions(self) -> dict[Partition, int]: ...

    def take_seen_topic_ids(self) -> dict[str, str]: ...

    @property
    def missing_topics(self) -> Collection[str]: ...

    def next_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]: ...

    def known_ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]: ...

    def renew_client(self, changed_settings: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


class ProducerClient(Protocol):
    """Writes records, with or without transactions: see `StreamsProducer`."""

    name: str
    transactional: bool
    delivered_offsets: DeliveredOffsets | None
    identity: ProducerIdentity | None

    @property
    def produce(self) -> Callable[..., None]:
        """Return the function that queues a record to be sent.

        Its parameters are those of confluent-kafka's `Producer.produce`. It raises BufferError
        where the queue is full.
        """
        ...

    def fetch_partition_count(self, topic: str) -> int: ...

    def find_transaction_error(self) -> Exception | None: ...

    def begin_transaction(self) -> None: ...

    def wait_for_queue_room(self) -> None: ...

    def poll_delivery_reports(self) -> None: ...

    def flush(self) -> None: ...

    def send_offsets_to_transaction(
        self,
        offsets: Iterable[tuple[Partition, OffsetAndMetadata]],
        group_metadata: bytes,
        limit_s: float = ...,
    ) -> None: ...

    def commit_transaction(self) -> None: ...

    def abort_transaction(self) -> None: ...

    def discard(self) -> None: ...

    def close(self) -> bool: ...


class AdminClient(Protocol):
    """Looks up topics and offsets, and creates topics: see `Admin`."""

    def fetch_partition_counts(self) -> dict[str, int]: ...

    def fetch_broker_limit(self, setting: str, default: int) -> int: ...

    def check_topic_rights(
        self, operations: Mapping[str, Sequence[str]], timeout_s: float = ...
    ) -> None: ...

    def fetch_topic_ids(self, topics: Sequence[str]) -> dict[str, str]: ...

    def fetch_topic_settings(self, topics: Sequence[str]) -> dict[str, dict[str, str]]: ...

    def fetch_replication(self, topics: Sequence[str]) -> Replication: ...

    def alter_topic_settings(self, topic: str, settings: Mapping[str, str]) -> None: ...

    def create_topics(
        self,
        partition_counts: Mapping[str, int],
        settings: Mapping[str, dict[str, str]],
        replication_factor: int,
    ) -> None: ...

    def list_groups(self) -> list[str]: ...

    def delete_records(self, offsets: Mapping[Partition, int]) -> None: ...

    def renew_client(self, changed_settings: Mapping[str, Any]) -> None: ...

    def fetch_earliest_offsets(self, partitions: Sequence[Partition]) -> dict[Partition, int]: ...

    def fetch_latest_offsets(
        self, partitions: Sequence[Partition], timeout_s: float = ...
    ) -> dict[Partition, int]: ...

    def fetch_known_latest_offsets(
        self, partitions: Sequence[Partition], timeout_s: float
    ) -> dict[Partition, int]: ...

    def fetch_last_stable_offsets(
        self, partitions: Sequence[Partition]
    ) -> dict[Partition, int]: ...

    def fetch_offsets_for_time(
        self, partitions: Sequence[Partition], timestamp_ms: int
    ) -> dict[Partition, int]: ...
