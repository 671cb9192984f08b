"""Declare the clients that the runtime needs as types, for Kafka's own and for those in memory.

`streams.runtime.clients` reaches a broker, `streams.testing.clients` a cluster in memory, which a
test decides about. What a method does and raises is written where it reaches a broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from streams.membership.transactions import Identity
from streams.positions import Committed, Partition
from streams.runtime.clients.written import Written
from streams.runtime.queues import Consuming


class ConsumerClient(Consuming, Protocol):
    """Reads assigned partitions: see `DataConsumer`."""

    def add(self, positions: Mapping[Partition, int]) -> None: ...

    def remove(self, partitions: Iterable[Partition]) -> None: ...

    def take(self, records_max: int, timeout_s: float) -> list[Any]: ...

    def strayed(self) -> dict[Partition, int]: ...

    def positions(self, partitions: Iterable[Partition]) -> dict[Partition, int]: ...

    def close(self) -> None: ...


class ProducerClient(Protocol):
    """Writes records, with or without transactions: see `StreamsProducer`."""

    name: str
    transactional: bool
    written: Written | None
    identity: Identity | None

    @property
    def produce(self) -> Callable[..., None]:
        """Return the function that queues a record to be sent.

        Its parameters are those of confluent-kafka's `Producer.produce`. It raises BufferError
        where the queue is full.
        """
        ...

    def partition_count(self, topic: str) -> int: ...

    def begin(self) -> None: ...

    def make_room(self) -> None: ...

    def poll(self) -> None: ...

    def flush(self) -> None: ...

    def commit(self, offsets: Iterable[tuple[Partition, Committed]], group: bytes) -> None: ...

    def end(self) -> None: ...

    def discard(self) -> None: ...

    def close(self) -> bool: ...


class AdminClient(Protocol):
    """Looks up topics and offsets, and creates topics: see `Admin`."""

    def partition_counts(self) -> dict[str, int]: ...

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]: ...

    def topic_settings(self, topics: Sequence[str]) -> dict[str, dict[str, str]]: ...

    def create_topics(
        self, partitions: Mapping[str, int], settings: Mapping[str, dict[str, str]], factor: int
    ) -> None: ...

    def groups(self) -> list[str]: ...

    def delete_before(self, offsets: Mapping[Partition, int]) -> None: ...

    def earliest(self, partitions: Sequence[Partition]) -> dict[Partition, int]: ...

    def latest(self, partitions: Sequence[Partition]) -> dict[Partition, int]: ...

    def since(self, partitions: Sequence[Partition], timestamp_ms: int) -> dict[Partition, int]: ...
