"""Write with one producer, with or without transactions, and send offsets as a group member."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from streams.errors import OutcomeUnknown, StreamsError, TaskMigrated
from streams.positions import Committed, Partition
from streams.runtime.clients.errors import log, made, recovery_from
from streams.runtime.clients.written import Written

if TYPE_CHECKING:
    from streams.membership.transactions import Identity


def group_metadata(group: str, generation: int, member_id: str, instance_id: str | None) -> bytes:
    """Encode consumer group metadata for `send_offsets_to_transaction`, from our own membership.

    The layout is rd_kafka_consumer_group_metadata_write's of librdkafka 2.16 (CGMDv2).
    """
    instance = b"\x01" if instance_id is None else b"\x00" + instance_id.encode() + b"\x00"
    names = group.encode() + b"\x00" + member_id.encode() + b"\x00"
    return b"CGMDv2:" + struct.pack("=i", generation) + names + instance


class DataProducer:
    """Writes records with one producer, transactional or not (Kafka Streams' StreamsProducer).

    `name` is its transactional id. With `track_deliveries` it knows where everything that it wrote
    went (`delivered_offsets`), at a price for each record; `identity` is set by who needs it. After
    any error but StreamsError the producer has to be discarded.
    """

    def __init__(
        self,
        name: str,
        settings: Mapping[str, Any],
        *,
        transactional: bool,
        timeout_s: float,
        accounts: bool = False,
        new_producer: type[Producer] | None = None,
    ) -> None:
        self.name = name
        self.transactional = transactional
        self.written = Written() if accounts else None
        self.identity: Identity | None = None
        self._timeout_s = timeout_s
        self._undelivered: list[str] = []
        reports: dict[str, Any] = {}
        if self.written is not None:
            reports["on_delivery"] = self.written.report
        elif not transactional:
            reports["on_delivery"] = _failures(self._undelivered)
        self._producer = made("producer", new_producer or Producer, {**settings, **reports})
        self.produce: Callable[..., None] = self._producer.produce
        self._open = False
        if transactional:
            self._call("init_transactions", self._timeout_s)

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has.

        Raises: StreamsError if there is no topic of that name.
        """
        metadata = self._call("list_topics", topic, self._timeout_s).topics[topic]
        if metadata.error is not None:
            raise StreamsError(f"topic {topic!r}: {metadata.error.str()}")
        return len(metadata.partitions)

    def begin(self) -> None:
        """Begin a transaction, unless one is open or the producer is not transactional."""
        if self.transactional and not self._open:
            self._call("begin_transaction")
            self._open = True

    def make_room(self) -> None:
        """Wait until the producer's full queue takes records again.

        Raises: OutcomeUnknown after the time-out.
        """
        if self._call("flush", self._timeout_s):
            raise OutcomeUnknown(f"the producer's queue stayed full for {self._timeout_s:g} s")

    def poll(self) -> None:
        """Serve the delivery reports that have arrived, without waiting."""
        self._call("poll", 0)

    def flush(self) -> None:
        """Wait until all records are delivered, and raise OutcomeUnknown if one is not."""
        undelivered_count = self._call("flush", self._timeout_s)
        if undelivered_count or self._undelivered:
            reasons = ", ".join(sorted(set(self._undelivered))) or "no answer"
            raise OutcomeUnknown(
                f"{undelivered_count + len(self._undelivered)} not delivered: {reasons}"
            )

    def commit(self, offsets: Iterable[tuple[Partition, Committed]], group: bytes) -> None:
        """Send the offsets into the transaction, as the group member of `group_metadata`."""
        sent = [TopicPartition(*p, c.offset, c.metadata) for p, c in offsets]
        self._call("send_offsets_to_transaction", sent, group, self._timeout_s)

    def end(self) -> None:
        """Commit the transaction."""
        self._call("commit_transaction", self._timeout_s)
        self._open = False

    def discard(self) -> None:
        """Discard the producer with all that it holds; its successor's epoch fences it.

        The client is destroyed when the tasks that hold its `produce` are closed and the reports of
        what it had are served. Its own `close` would wait for a broker that is away, without a
        bound (measured with confluent-kafka 2.16).
        """
        self._producer.purge()
        with suppress(TaskMigrated, OutcomeUnknown, StreamsError):
            self.poll()
        del self._producer, self.produce

    def close(self) -> bool:
        """Close the producer, and abort an open transaction so that nobody waits for it.

        Returns False if that was not possible: no broker answered, or the producer was fenced.
        """
        aborted = True
        if self._open:
            try:
                self._call("abort_transaction", self._timeout_s)
            except (TaskMigrated, OutcomeUnknown, StreamsError) as error:
                log.info("the open transaction is left to its time-out: %s", error)
                aborted = False
        self.discard()
        return aborted

    def refusal(self, error: Exception, doing: str) -> Exception | None:
        """Return the recovery error for what a transactional producer's `produce` raised, or None.

        For a fatal error, such as being fenced, `produce` only says that there was one; the next
        transaction call names it.
        """
        if isinstance(error, KafkaException) and error.args[0].code() == KafkaError._FATAL:
            try:
                self._producer.begin_transaction()
            except KafkaException as fatal:
                return recovery_from(fatal, doing)
        return recovery_from_produce(error, doing)

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the client, and translate its error to the recovery error."""
        try:
            return getattr(self._producer, name)(*arguments)
        except KafkaException as error:
            raise recovery_from(error, name) from error
        except SystemError as error:
            # confluent-kafka 2.16 raises a fatal error from within the callbacks that flush and
            # poll serve, and may lose it there. The next transaction call names it.
            try:
                self._producer.begin_transaction()
            except KafkaException as fatal:
                raise recovery_from(fatal, name) from error
            raise


def recovery_from_produce(error: Exception, doing: str) -> Exception | None:
    """Return the recovery error for what `produce` raised; None if it is no client's error.

    For callers of `produce` alone: it has no wrapper, which would cost each record, and a producer
    that was fenced or timed out meanwhile refuses there. Anywhere else a client's error is of a
    user's own client.
    """
    return recovery_from(error, doing) if isinstance(error, KafkaException) else None


def _failures(undelivered: list[str]) -> Callable[[KafkaError | None, Message], None]:
    """Return a delivery report that appends each failure to `undelivered`."""

    def append_failure(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            undelivered.append(error.str())

    return append_failure
