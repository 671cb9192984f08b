"""confluent-kafka's clients as the runtime uses them: the only file that imports them.

Every error that leaves this file is named by its recovery (`streams.errors`). Calls that wait are
bounded by `request_timeout_ms`.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from streams.config import StreamsConfig
from streams.errors import ConfigError, OutcomeUnknown, StreamsError, TaskMigrated
from streams.positions import Committed, Partition

log = logging.getLogger(__name__)

_MIGRATED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.INVALID_PRODUCER_ID_MAPPING,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
}
_UNKNOWN_TOPIC = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}
_HOPELESS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.INVALID_TRANSACTION_TIMEOUT,
    KafkaError.OFFSET_METADATA_TOO_LARGE,
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.INVALID_PARTITIONS,
    KafkaError.INVALID_CONFIG,
    KafkaError.POLICY_VIOLATION,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError._AUTHENTICATION,
    *_UNKNOWN_TOPIC,
}


def group_metadata(group: str, generation: int, member_id: str, instance_id: str | None) -> bytes:
    """What `send_offsets_to_transaction` wants, for a membership that librdkafka doesn't hold.

    The layout is rd_kafka_consumer_group_metadata_write's of librdkafka 2.16 (CGMDv2).
    """
    instance = b"\x01" if instance_id is None else b"\x00" + instance_id.encode() + b"\x00"
    names = group.encode() + b"\x00" + member_id.encode() + b"\x00"
    return b"CGMDv2:" + struct.pack("=i", generation) + names + instance


def recovery_from(error: KafkaException, doing: str) -> Exception:
    """The error named by its recovery. Anything that isn't known to be final is unknown."""
    cause: KafkaError = error.args[0]
    what = f"{doing}: {cause.str()} ({cause.name()})"
    if cause.code() in _MIGRATED:
        return TaskMigrated(what)
    if cause.code() in _HOPELESS:
        return StreamsError(what)
    return OutcomeUnknown(what)


def recovery_from_produce(error: Exception, doing: str) -> Exception | None:
    """The error named by its recovery if it is `produce`'s, which is called without a wrapper: that
    would cost each record. A producer that was fenced or timed out meanwhile refuses there."""
    return recovery_from(error, doing) if isinstance(error, KafkaException) else None


class DataConsumer:
    """Reads assigned partitions, committed records only; a position is set, never guessed."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._consumer = _made("consumer", Consumer, settings)

    def add(self, positions: Mapping[Partition, int]) -> None:
        """Begin to read each partition at its position."""
        self._consumer.incremental_assign([TopicPartition(*p, o) for p, o in positions.items()])

    def remove(self, partitions: Iterable[Partition]) -> None:
        self._consumer.incremental_unassign([TopicPartition(*p) for p in partitions])

    def take(self, records_max: int, timeout_s: float) -> list[Message]:
        """Up to `records_max` records. Raises StreamsError where a position can't be read."""
        messages: list[Message] = self._consumer.consume(records_max, timeout_s)
        if any(message.error() is not None for message in messages):
            return [message for message in messages if not self._failed(message)]
        return messages

    def positions(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The next offset of each partition, past transaction markers; unread ones are left out."""
        found = self._consumer.position([TopicPartition(*p) for p in partitions])
        return {Partition(f.topic, f.partition): f.offset for f in found if f.offset >= 0}

    def close(self) -> None:
        self._consumer.close()

    @staticmethod
    def _failed(message: Message) -> bool:
        error = message.error()
        if error is None:
            return False
        where = f"{message.topic()}[{message.partition()}]"
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise StreamsError(f"{where}: the position is outside the topic: {error.str()}")
        if error.code() in _HOPELESS:
            raise StreamsError(f"{where} can't be read: {error.str()}")
        log.warning("%s: %s; librdkafka goes on trying", where, error.str())
        return True


class DataProducer:
    """One producer, transactional or not. After any error but StreamsError: `discard` it."""

    def __init__(
        self, settings: Mapping[str, Any], *, transactional: bool, timeout_s: float
    ) -> None:
        self.transactional = transactional
        self._timeout_s = timeout_s
        self._undelivered: list[str] = []
        reports = {} if transactional else {"on_delivery": _failures(self._undelivered)}
        self._producer = _made("producer", Producer, {**settings, **reports})
        self.produce: Callable[..., None] = self._producer.produce
        self._open = False
        if transactional:
            self._call("init_transactions", self._timeout_s)

    def begin(self) -> None:
        """Make sure that a transaction is open."""
        if self.transactional and not self._open:
            self._call("begin_transaction")
            self._open = True

    def make_room(self) -> None:
        """Wait until the full queue takes records again. Raises OutcomeUnknown after a time."""
        if self._call("flush", self._timeout_s):
            raise OutcomeUnknown(f"the producer's queue stayed full for {self._timeout_s:g} s")

    def poll(self) -> None:
        """Serve what has been delivered, without waiting."""
        self._call("poll", 0)

    def flush(self) -> None:
        """All that was produced is delivered, or an error is raised."""
        left = self._call("flush", self._timeout_s)
        if left or self._undelivered:
            reasons = ", ".join(sorted(set(self._undelivered))) or "no answer"
            raise OutcomeUnknown(f"{left + len(self._undelivered)} not delivered: {reasons}")

    def commit(self, offsets: Iterable[tuple[Partition, Committed]], group: bytes) -> None:
        """Send the offsets into the transaction."""
        sent = [TopicPartition(*p, c.offset, c.metadata) for p, c in offsets]
        self._call("send_offsets_to_transaction", sent, group, self._timeout_s)

    def end(self) -> None:
        """Commit the transaction."""
        self._call("commit_transaction", self._timeout_s)
        self._open = False

    def discard(self) -> None:
        """Give the producer up with all that it holds. Its successor's epoch fences it.

        It is destroyed when the tasks that hold its `produce` are closed and the reports of what it
        had are served. Its own `close` would wait for a broker that is away, without a bound
        (measured with confluent-kafka 2.16).
        """
        self._producer.purge()
        with suppress(TaskMigrated, OutcomeUnknown, StreamsError):
            self.poll()
        del self._producer, self.produce

    def close(self) -> None:
        """End in order: an open transaction is aborted, so that nobody waits for it."""
        if self._open:
            try:
                self._call("abort_transaction", self._timeout_s)
            except (TaskMigrated, OutcomeUnknown, StreamsError) as error:
                log.info("the open transaction is left to its time-out: %s", error)
        self.discard()

    def _call(self, name: str, *arguments: Any) -> Any:
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


def _failures(undelivered: list[str]) -> Callable[[KafkaError | None, Message], None]:
    def report(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            undelivered.append(error.str())

    return report


def _made(what: str, kind: Any, settings: Mapping[str, Any]) -> Any:
    """A client. Raises ConfigError for a setting that librdkafka doesn't know or take."""
    try:
        return kind(dict(settings), logger=log)
    except KafkaException as error:
        raise ConfigError(f"{what} settings: {error.args[0].str()}") from error
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{what} settings: {error}") from error


class Admin:
    """Questions about topics and offsets. Raises OutcomeUnknown while no broker answers."""

    def __init__(self, settings: Mapping[str, Any], servers: str, timeout_s: float) -> None:
        self._settings = dict(settings)
        self._admin = AdminClient(self._settings, logger=log)
        self._servers = servers
        self._timeout_s = timeout_s

    def partition_counts_at_start(self, timeout_s: float) -> dict[str, int]:
        """The number of partitions of every topic. Raises ConfigError if no broker answers."""
        try:
            found = self._admin.list_topics(timeout=timeout_s)
        except KafkaException as error:
            raise ConfigError(
                f"no Kafka broker answers at bootstrap_servers={self._servers!r} within "
                f"{timeout_s:g} s ({error.args[0].str()}): check the address, or start one with "
                "`millrace broker`"
            ) from error
        return _partition_counts(found)

    def partition_counts(self) -> dict[str, int]:
        """The number of partitions of every topic."""
        try:
            found = self._admin.list_topics(timeout=self._timeout_s)
        except KafkaException as error:
            raise recovery_from(error, "list topics") from error
        return _partition_counts(found)

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """The id of each topic, which tells it from one of the same name made later."""
        if not topics:
            return {}
        answers = self._admin.describe_topics(TopicCollection(list(topics)))
        found = {topic: self._result(a, f"describe {topic}") for topic, a in answers.items()}
        return {topic: str(description.topic_id) for topic, description in found.items()}

    def create_topics(
        self, partitions: Mapping[str, int], settings: Mapping[str, dict[str, str]], factor: int
    ) -> None:
        """Create topics, each with its settings if it has any; one that exists stays as it is."""
        wanted = [
            NewTopic(topic, count, factor, config=settings.get(topic, {}))
            for topic, count in partitions.items()
        ]
        if not wanted:
            return
        for topic, answer in self._admin.create_topics(wanted).items():
            self._result(answer, f"create topic {topic}", fine={KafkaError.TOPIC_ALREADY_EXISTS})

    def earliest(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """The first offset of each partition that can be read."""
        return self._offsets(partitions, OffsetSpec.earliest())

    def latest(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """The high watermark of each partition: above every record, of open transactions too."""
        return self._offsets(partitions, OffsetSpec.latest())

    def _offsets(self, partitions: Sequence[Partition], spec: OffsetSpec) -> dict[Partition, int]:
        if not partitions:
            return {}
        answers = self._admin.list_offsets(
            {TopicPartition(*p): spec for p in partitions},
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
        )
        try:
            return {
                Partition(asked.topic, asked.partition): self._offset(asked, answer)
                for asked, answer in answers.items()
            }
        except OutcomeUnknown:
            # librdkafka's admin asks with the leader epoch that it has once seen, and does not look
            # again when that is refused (FENCED_LEADER_EPOCH, after a restart): a new one does.
            self._admin = AdminClient(self._settings, logger=log)
            raise

    def _offset(self, asked: TopicPartition, answer: Any) -> int:
        doing = f"offset of {asked.topic}[{asked.partition}]"
        offset: int = self._result(answer, doing).offset
        if offset < 0:  # what librdkafka 2.16 answers, without an error, when it was cut off
            raise OutcomeUnknown(f"{doing}: no answer")
        return offset

    def _result(self, answer: Any, doing: str, fine: Collection[int] = ()) -> Any:
        try:
            return answer.result(self._timeout_s)
        except KafkaException as error:
            code = error.args[0].code()
            if code in fine:
                return None
            if code in _UNKNOWN_TOPIC:  # a broker of several may not have heard of a new topic yet
                raise OutcomeUnknown(f"{doing}: {error.args[0].str()}") from error
            raise recovery_from(error, doing) from error
        except TimeoutError as error:
            raise OutcomeUnknown(f"{doing}: no answer in {self._timeout_s:g} s") from error


def _partition_counts(found: Any) -> dict[str, int]:
    return {t.topic: len(t.partitions) for t in found.topics.values() if t.error is None}


class Clients:
    """Makes the clients of one stream thread."""

    def __init__(self, application_id: str, config: StreamsConfig, servers: str) -> None:
        self._application_id = application_id
        self._config = config
        self._servers = servers
        self._timeout_s = config.request_timeout_ms / 1000

    def admin(self) -> Admin:
        return Admin(self._common("admin"), self._servers, self._timeout_s)

    def consumer(self, name: str) -> DataConsumer:
        """Reads committed records; an offset outside a topic is an error, not a jump."""
        return DataConsumer(
            {
                "fetch.queue.backoff.ms": 5,
                **self._common(name),
                **self._config.consumer,
                "group.id": self._application_id,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
            }
        )

    def producer(self, transactional_id: str) -> DataProducer:
        """A producer; a transactional one has fenced its predecessor when this returns."""
        return DataProducer(
            self._producer_settings(transactional_id),
            transactional=self._config.exactly_once,
            timeout_s=self._timeout_s,
        )

    def check_settings(self) -> None:
        """Raises ConfigError for a setting of the user's that librdkafka doesn't take."""
        self.consumer("check").close()
        _made("producer", Producer, self._producer_settings("check"))

    def _producer_settings(self, transactional_id: str) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "linger.ms": 100,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 1_000_000,
            **self._common(transactional_id),
            **self._config.producer,
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
        }
        if self._config.exactly_once:
            settings["transactional.id"] = transactional_id
            settings["transaction.timeout.ms"] = self._config.transaction_timeout_ms
        else:
            settings["delivery.report.only.error"] = True
        return settings

    def _common(self, name: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": self._servers,
            "client.id": f"{self._application_id}-{name}",
            # See docs/decisions/0001: with librdkafka's default a transaction hangs when all
            # brokers were away for a moment.
            "metadata.recovery.strategy": "none",
            "error_cb": _log_error,
        }


def _log_error(error: KafkaError) -> None:
    """Brokers that come and go; what a call of ours meets is raised there, by its recovery."""
    log.info("%s (%s)", error.str(), error.name())
