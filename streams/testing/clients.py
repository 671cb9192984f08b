"""Implement the clients of `streams.runtime.clients.interfaces` on a cluster in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from streams.common.partitioning import partition_for_key
from streams.common.topic_partitions import OffsetsToCommit, Partition
from streams.errors import TaskMigrated, UnknownTopic
from streams.membership.producer_identity import ProducerIdentity
from streams.runtime.clients.delivered_offsets import DeliveredOffsets
from streams.runtime.clients.replication import Replication
from streams.testing.cluster import InMemoryCluster, InMemoryTransaction, Message
from streams.testing.produce_arguments import encode_argument, encode_header
from streams.testing.record_order import RecordOrder, StampHeads


class InMemoryConsumer:
    """Reads committed records in bulk, one partition after the other."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        self._cluster = cluster
        self._positions: dict[Partition, int] = {}
        self._unread: set[Partition] = set()
        """Partitions of which nothing was taken yet: librdkafka reports no position of them."""
        self._out_of_range: dict[Partition, int] = {}
        self.paused: set[Partition] = set()

    def add_partitions(self, positions: Mapping[Partition, int]) -> None:
        """Assign partitions, each to be read from its position."""
        assert not self._positions.keys() & positions.keys(), "assigned twice"
        self._positions |= positions
        self._unread |= positions.keys()

    def remove_partitions(self, partitions: Iterable[Partition]) -> None:
        """Unassign partitions."""
        for partition in partitions:
            del self._positions[partition]
            self._unread.discard(partition)
            self.paused.discard(partition)

    def pause_partition(self, partition: Partition) -> None:
        """Poll no records of a partition until it is resumed."""
        self.paused.add(partition)

    def resume_partition(self, partition: Partition) -> None:
        """Poll records of a paused partition again."""
        self.paused.discard(partition)

    def poll_at_first_record(self, records_max: int, timeout_s: float) -> list[Any]:
        """Poll records as `poll_records` does; neither waits in memory."""
        return self.poll_records(records_max, timeout_s)

    def serve_callbacks(self) -> None:
        """Do nothing: a client in memory calls nobody back."""

    def poll_records(self, records_max: int, timeout_s: float) -> list[Any]:
        """Return up to `records_max` committed records, without waiting."""
        taken: list[Message] = []
        for partition, position in self._positions.items():
            log = self._cluster.logs[partition]
            if partition in self.paused:
                continue
            if not log.start_offset <= position <= log.high_watermark:
                self._out_of_range[partition] = position
                continue
            next_position = position
            for message in log.read_committed(position):
                if len(taken) == records_max:
                    break
                taken.append(message)
                next_position = message.offset() + 1
            else:  # the rest are markers and aborted records
                next_position = log.last_stable_offset
            if next_position > position:
                self._positions[partition] = next_position
                self._unread.discard(partition)
        return taken

    def measure_lag(self, partition: Partition) -> int | None:
        """Return how many offsets lie between the position and the last stable offset."""
        return self._cluster.logs[partition].last_stable_offset - self._positions[partition]

    def pop_out_of_range_positions(self) -> dict[Partition, int]:
        """Return and forget the positions that were out of range of their logs."""
        positions, self._out_of_range = self._out_of_range, {}
        return positions

    def pop_seen_topic_ids(self) -> dict[str, str]:
        """Return nothing: a topic in memory keeps its id."""
        return {}

    @property
    def missing_topics(self) -> Collection[str]:
        """Return none: no topic in memory is deleted."""
        return ()

    def next_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the positions of those partitions of which something was read."""
        return {
            p: self._positions[p]
            for p in partitions
            if p in self._positions and p not in self._unread
        }

    def get_last_fetched_ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the high watermark of each partition."""
        return {each: self._cluster.logs[each].high_watermark for each in partitions}

    def renew_client(self, changed_settings: Mapping[str, Any]) -> None:
        """Change nothing: no connection leads to memory."""

    def close(self) -> None:
        """Unassign all partitions."""
        self._positions.clear()


class InMemoryOrderedConsumer(InMemoryConsumer):
    """Takes one committed record at a time, from the partition that the order chooses."""

    def __init__(self, cluster: InMemoryCluster, order: RecordOrder, stamp: StampHeads) -> None:
        super().__init__(cluster)
        self._order, self._stamp_heads = order, stamp

    def find_next_records(self) -> dict[Partition, Message]:
        """Return each unpaused partition's next committed record, and move positions up to it."""
        heads: dict[Partition, Message] = {}
        for partition, position in self._positions.items():
            if partition not in self.paused:
                message, self._positions[partition] = self._cluster.logs[
                    partition
                ].find_first_committed(position)
                if message is not None:
                    heads[partition] = message
        return heads

    def measure_lag(self, partition: Partition) -> int | None:
        """Return 0, so that tasks wait for no partition: records come in the chosen order."""
        return 0

    def poll_records(self, records_max: int, timeout_s: float) -> list[Any]:
        """Return a list of the one next record that the order chooses; empty if there is none."""
        heads = self._stamp_heads(self.find_next_records())
        if not heads:
            return []
        partition = self._order.choose_partition(heads)
        self._positions[partition] += 1
        return [heads[partition]]

    def next_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the positions, moved past markers and aborted records."""
        logs = self._cluster.logs
        return {
            p: logs[p].find_first_committed(self._positions[p])[1]
            for p in partitions
            if p in self._positions
        }


class InMemoryProducer:
    """Queues records until `flush`, and writes them in a transaction of the cluster.

    `now_ms` is for records without a timestamp; `random` finds partitions for those without a key.
    """

    def __init__(
        self,
        name: str,
        cluster: InMemoryCluster,
        *,
        transactional: bool,
        reports_deliveries: bool,
        now_ms: Callable[[], int],
        random: Random,
    ) -> None:
        self.name = name
        self.transactional = transactional
        self.delivered_offsets = DeliveredOffsets() if reports_deliveries else None
        self.identity: ProducerIdentity | None = None
        self._cluster = cluster
        self._now_ms = now_ms
        self._random = random
        self._queue: list[tuple[Partition, Any, Any, int, Any, Any]] = []
        self._transaction: InMemoryTransaction | None = None
        if transactional:
            self._epoch = cluster.init_producer(name)
            self.identity = ProducerIdentity(
                sorted(cluster.producer_epochs).index(name), self._epoch
            )

    def produce(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        callback: Callable[[Any, Any], None] | None = None,
        on_delivery: Callable[[Any, Any], None] | None = None,
        timestamp_ms: int = 0,
        headers: Any = None,
    ) -> None:
        """Queue a record, with the arguments of confluent-kafka's `Producer.produce`."""
        self._ensure_topic(topic)
        value, key = encode_argument("value", value), encode_argument("key", key)
        at = Partition(topic, self._choose_partition(topic, key) if partition < 0 else partition)
        if at not in self._cluster.logs:
            raise ValueError(
                f"topic {topic!r} has {self._cluster.partition_counts[topic]} partitions, and a "
                f"record is to go to partition {partition}"
            )
        # librdkafka takes 0 for no timestamp, and writes the current time.
        time_ms = timestamp_ms or self._now_ms()
        if not isinstance(headers, list | dict | None):
            raise TypeError("expected headers to be dict or list of (key, value) tuples")
        given = headers.items() if isinstance(headers, dict) else headers or ()
        pairs = tuple(map(encode_header, given))
        self._queue.append((at, key, value, time_ms, pairs, callback or on_delivery))

    def fetch_partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has; one that does not exist is created."""
        self._ensure_topic(topic)
        return self._cluster.partition_counts[topic]

    def _ensure_topic(self, topic: str) -> None:
        """Create a topic, whose name a record gave, unless it exists.

        Raises UnknownTopic where the cluster creates none.
        """
        if not self._cluster.creates_topics and topic not in self._cluster.partition_counts:
            raise UnknownTopic(f"topic {topic!r} does not exist: create it, or correct its name")
        self._cluster.create_topic(topic, 1)

    def _choose_partition(self, topic: str, key: bytes | None) -> int:
        """Return the partition of a key; a random one without a key."""
        count = self._cluster.partition_counts[topic]
        return self._random.randrange(count) if key is None else partition_for_key(key, count)

    def begin_transaction(self) -> None:
        """Begin a transaction unless there is one."""
        if self.transactional and self._transaction is None:
            self._transaction = InMemoryTransaction()

    def wait_for_queue_room(self) -> None:
        """Write the queued records."""
        self._deliver_queue()

    def find_transaction_error(self) -> Exception | None:
        """Return None: no transaction in memory fails."""

    def poll_delivery_reports(self) -> None:
        """Do nothing: nothing is delivered before it is flushed."""

    def flush(self) -> None:
        """Write the queued records."""
        self._deliver_queue()

    def _deliver_queue(self) -> None:
        """Write the queued records and call their delivery callbacks."""
        queue, self._queue = self._queue, []
        transaction = self._register_transaction() if queue and self.transactional else None
        account = None if self.delivered_offsets is None else self.delivered_offsets.note_delivery
        for partition, key, value, time_ms, headers, report in queue:
            message = self._cluster.append_record(
                partition, key, value, time_ms, headers, transaction
            )
            on_delivery = report or account
            # Without transactions the client reports failures only (delivery.report.only.error).
            if self.transactional and on_delivery is not None:
                on_delivery(None, message)

    def send_offsets_to_transaction(
        self, offsets: OffsetsToCommit, group_metadata: bytes, limit_s: float = math.inf
    ) -> None:
        """Add offsets to the transaction."""
        self._register_transaction().offsets |= dict(offsets)

    def commit_transaction(self) -> None:
        """Write the queued records and commit the transaction."""
        self._deliver_queue()
        self._cluster.end_transaction(self._register_transaction(), committed=True)
        self._transaction = None

    def _register_transaction(self) -> InMemoryTransaction:
        """Register the transaction with the cluster and return it.

        The cluster learns of it from its first records or offsets. Raises TaskMigrated if a newer
        producer has the transactional id.
        """
        if self._epoch != self._cluster.producer_epochs[self.name]:
            raise TaskMigrated("a newer producer has this id")
        assert self._transaction is not None, "no transaction was begun"
        self._cluster.open_transactions[self.name] = self._transaction
        return self._transaction

    def discard(self) -> None:
        """Drop the queued records, and leave the transaction open."""
        self._queue = []

    def try_abort_and_close(self) -> bool:
        """Drop the queued records, abort the transaction, and return True."""
        self._drop_uncommitted_work()
        return True

    def abort_transaction(self) -> None:
        """Drop the queued records, and abort the transaction if there is one."""
        self._drop_uncommitted_work()

    def _drop_uncommitted_work(self) -> None:
        self._queue = []
        transaction, self._transaction = self._transaction, None
        if (
            transaction is not None
            and self._cluster.open_transactions.get(self.name) is transaction
        ):
            self._cluster.end_transaction(transaction, committed=False)


class InMemoryAdmin:
    """Implements AdminClient on a cluster in memory."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        self._cluster = cluster

    def fetch_partition_counts(self) -> dict[str, int]:
        return dict(self._cluster.partition_counts)

    def fetch_strictest_broker_limit_or_default(self, setting: str, default: int) -> int:
        return default  # a cluster in memory has no settings

    def check_topic_rights(self, operations: object, timeout_s: float = 0.0) -> None:
        pass  # everybody may do everything in a cluster in memory

    def fetch_topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        return {topic: self._cluster.topic_ids[topic] for topic in topics}

    def fetch_topic_settings(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        return {topic: dict(self._cluster.topic_settings[topic]) for topic in topics}

    def fetch_replication(self, topics: Sequence[str]) -> Replication:
        return Replication(1, dict.fromkeys(topics, 1))

    def fetch_replica_racks(self, topics: Sequence[str]) -> dict[Partition, frozenset[str]]:
        return {}

    def alter_topic_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        self._cluster.topic_settings[topic] = {**self._cluster.topic_settings[topic], **settings}

    def create_topics(
        self,
        partition_counts: Mapping[str, int],
        settings: Mapping[str, dict[str, str]],
        replication_factor: int,
    ) -> None:
        for topic, number in partition_counts.items():
            self._cluster.create_topic(topic, number, settings.get(topic))

    def list_groups(self) -> list[str]:
        return []

    def delete_records(self, offsets: Mapping[Partition, int]) -> None:
        """Delete the records before the given offset of each partition."""
        for partition, offset in offsets.items():
            self._cluster.logs[partition].start_offset = offset

    def renew_client(self, changed_settings: Mapping[str, Any]) -> None:
        """Change nothing: no connection leads to memory."""

    def fetch_earliest_offsets(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Return the first offset of each partition."""
        return {p: self._cluster.logs[p].start_offset for p in partitions}

    def fetch_latest_offsets(
        self, partitions: Sequence[Partition], timeout_s: float = math.inf
    ) -> dict[Partition, int]:
        """Return the end offset of each partition, at once."""
        return {p: self._cluster.logs[p].high_watermark for p in partitions}

    fetch_available_latest_offsets = fetch_latest_offsets

    def fetch_last_stable_offsets(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        return {p: self._cluster.logs[p].last_stable_offset for p in partitions}

    def fetch_offsets_for_time(
        self, partitions: Sequence[Partition], timestamp_ms: int
    ) -> dict[Partition, int]:
        """Return the offset of each partition's first record since `timestamp_ms`, else its end."""
        return {p: self._find_offset_since(p, timestamp_ms) for p in partitions}

    def _find_offset_since(self, partition: Partition, timestamp_ms: int) -> int:
        """Return the offset of a partition's first record not older than `timestamp_ms`."""
        log = self._cluster.logs[partition]
        late = (
            m.offset() for m in log.entries[log.start_offset :] if m.timestamp()[1] >= timestamp_ms
        )
        return next(late, log.high_watermark)
