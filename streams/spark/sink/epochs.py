"""Write each epoch exactly once, in a transaction that also commits an offset as the epoch's mark.

Theory of operation. A sink has a name that outlives its tasks: the query's id, or a `write_id`.
Each of its Spark partitions has a transactional id, and a consumer group of its own to keep offsets
in. The transaction that writes the rows of an epoch also commits its mark: the offset `epoch + 1`
in that group (for partition 0 of the topic, whatever partitions rows were written to: brokers want
one that exists), with the number and a digest of the rows as metadata. So rows and mark are there
together or not at all. A task

    1. makes its producer: the broker ends what an earlier attempt left open, and fences that
       attempt from now on (it may still run: a speculative one, or on a machine that was given up)
    2. reads the mark, stable: an offset that is about to be committed counts only when it is
    3. finds its epoch marked, and compares the rows; or writes them, and the mark

In that order: a mark that is read before the earlier attempt is fenced says nothing about what that
attempt may still commit. Two attempts that run at once fence each other; one of them commits.

    mark            means
    none, below     the epoch is to be written
    epoch + 1       it was written, with these rows: others are an error (`Tally`)
    above           the checkpoint is older than the topic: an error
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from streams.common.message_headers import Header
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown, StreamsError, TaskMigrated
from streams.runtime.clients import (
    StreamsProducer,
    encode_group_metadata,
    fetch_stable_offset,
)
from streams.runtime.clients.errors import TopicRefused
from streams.spark.sink.refused_rows import RefusedRows
from streams.spark.source.broker_access import REQUEST_TIMEOUT_S, BrokerAccess

TRANSACTION_TIMEOUT_SETTING = "transaction.timeout.ms"
TRANSACTION_TIMEOUT_MS = 300_000
"""From a task's first row to its end. While a task that died is not tried again, nothing behind its
rows is read (read_committed); brokers take 15 minutes at most unless told otherwise."""

_PRODUCER_DEFAULTS = {
    "linger.ms": 100,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 1_000_000,
    # The most that a task holds: what is left of it must be sent within the time-out of a commit.
    "queue.buffering.max.kbytes": 64 << 10,
    TRANSACTION_TIMEOUT_SETTING: TRANSACTION_TIMEOUT_MS,
}
_PRODUCER_OVERRIDES = {"partitioner": "murmur2_random", "enable.idempotence": True}
_TOPIC_OPERATIONS = ["Read", "Write"]
"""What has to be allowed on the topic: offsets of it are committed, as the marks of epochs."""
_LOOKUP_THREADS_MAX = 16
_TALLY_METADATA = re.compile(r"rows=(\d+) digest=([0-9a-f]{16})")
_DIGEST_BITS = 64
_KEY_SALT, _NULL_KEY_HASH = 0x9E3779B9, 0x5BD1E995
"""Any numbers of 32 bits."""


@dataclass(frozen=True, slots=True)
class EpochSink:
    """Represents the destination of one query or named write: a topic, and a name that lasts.

    Transactional ids and consumer groups are made of the name, which outlives the tasks.
    """

    name: str
    topic: str

    def build_partition_id(self, partition: int) -> str:
        """Return the id of a Spark partition: of its transactions, and of its consumer group.

        The group's committed offset marks the partition's last epoch.
        """
        return f"{self.name}-{partition}"

    @property
    def mark_partition(self) -> Partition:
        """Return the topic partition for which groups commit the offsets that mark epochs."""
        return Partition(self.topic, 0)


@dataclass(frozen=True, slots=True)
class ProducerRows:
    """Represents a batch of rows as a producer takes them, with a list for each column.

    `partitions` are of the topic, where rows name them, else None for Kafka's own choice;
    `timestamps_ms` since 1970, None for now.
    """

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    partitions: Sequence[int | None] | None = None
    timestamps_ms: Sequence[int | None] | None = None
    headers: Sequence[list[Header] | None] | None = None

    def __len__(self) -> int:
        return len(self.values)


@dataclass(slots=True)
class Tally:
    """Counts rows, and digests their keys and values independently of their order.

    The rows of a Spark partition come in another order when it is computed again.
    """

    rows: int = 0
    digest: int = 0

    def add_rows(self, rows: ProducerRows) -> None:
        """Add rows to the count and the digest."""
        # Without the salt ("a", "bc") and ("ab", "c") would have the same checksum, that of "abc".
        keys = [_NULL_KEY_HASH if key is None else crc32(key) ^ _KEY_SALT for key in rows.keys]
        pairs = zip(rows.values, keys, strict=True)
        sums = (crc32(v, k) if v is not None else ~k for v, k in pairs)
        # Squares, since sums alone are equal where bits moved from one checksum to another.
        self.digest += sum(each * each for each in sums)
        self.digest %= 1 << _DIGEST_BITS
        self.rows += len(rows)

    def to_metadata(self) -> str:
        """Encode the tally as the metadata of a committed offset."""
        return f"rows={self.rows} digest={self.digest:016x}"

    @classmethod
    def from_metadata(cls, text: str) -> Tally | None:
        """Decode the tally that `to_metadata` encoded, or return None for any other text."""
        found = _TALLY_METADATA.fullmatch(text)
        return None if found is None else cls(int(found[1]), int(found[2], 16))


def read_written_tally(
    access: BrokerAccess, sink: EpochSink, partition: int, epoch: int
) -> Tally | None:
    """Return the tally that a Spark partition committed with an epoch, or None if it did not.

    Raises StreamsError where the mark is above the epoch, is no sink's, or is not known in time.
    """
    doing = _describe_epoch_write(sink, partition, epoch)
    group = sink.build_partition_id(partition)
    try:
        found = fetch_stable_offset(
            access.client_settings(), group, sink.mark_partition, REQUEST_TIMEOUT_S
        )
    except OutcomeUnknown as unknown:
        raise StreamsError(
            f"{doing}: whether it was written can't be told; no coordinator answers, or the "
            f"transaction of an earlier attempt is still open: {unknown}"
        ) from unknown
    if found is None or found.offset <= epoch:
        return None
    if found.offset > epoch + 1:
        raise StreamsError(
            f"{doing} is to be written, and epoch {found.offset - 1} was already: the checkpoint "
            "is an older one than that by which this topic was written. Go on from the newest, or "
            "begin a new query with a checkpoint of its own"
        )
    tally = Tally.from_metadata(found.metadata)
    if tally is None:
        raise StreamsError(
            f"{doing}: the offset in group {group!r} is none that a sink "
            f"commits (metadata {found.metadata!r}): nothing else may use this group"
        )
    return tally


def find_extra_partitions(
    access: BrokerAccess, sink: EpochSink, partition_count: int, epoch: int
) -> list[int]:
    """Find the Spark partitions from `partition_count` on that have already written the epoch.

    There are some if an earlier attempt at the epoch had more partitions.
    """
    admin, stem = access.create_admin(), f"{sink.name}-"
    names = [group.removeprefix(stem) for group in admin.list_groups() if group.startswith(stem)]
    numbers = sorted(
        int(each) for each in names if each.isdecimal() and int(each) >= partition_count
    )

    def has_written(partition: int) -> bool:
        return read_written_tally(access, sink, partition, epoch) is not None

    # Threads mostly wait; an epoch of many partitions leaves a group for each of them for days.
    with ThreadPoolExecutor(_LOOKUP_THREADS_MAX) as pool:
        return [n for n, has in zip(numbers, pool.map(has_written, numbers), strict=True) if has]


def _describe_epoch_write(sink: EpochSink, partition: int, epoch: int) -> str:
    """Return a phrase that names the epoch, the Spark partition and the topic, for messages."""
    return f"epoch {epoch} of Spark partition {partition} into topic {sink.topic!r}"


class EpochAttempt:
    """Represents one task's attempt at one epoch of a sink, in one transaction.

    Close it after any error, as `open_epoch_attempt` does.
    """

    def __init__(self, access: BrokerAccess, sink: EpochSink, partition: int, epoch: int) -> None:
        self._sink = sink
        self._partition = partition
        self._epoch = epoch
        self._tally = Tally()
        self._refused = RefusedRows()
        transactional_id = sink.build_partition_id(partition)
        self._producer = StreamsProducer(
            transactional_id,
            {
                **_PRODUCER_DEFAULTS,
                **access.client_settings(),
                **_PRODUCER_OVERRIDES,
                "transactional.id": transactional_id,
                **self._refused.settings,
            },
            transactional=True,
            timeout_s=REQUEST_TIMEOUT_S,
        )

    def produce_rows(self, rows: ProducerRows) -> None:
        """Write rows into the epoch's transaction.

        Raises StreamsError, with the row, if brokers have refused one.
        """
        self._producer.begin_transaction()
        self._tally.add_rows(rows)
        self._refused.add_times(rows.timestamps_ms)
        try:
            self._produce_row_by_row(rows)
        except Exception as error:
            with suppress(TaskMigrated, OutcomeUnknown):
                self._producer.poll_delivery_reports()
            self._refused.raise_if_any(str(self))
            recovery = self._producer.translate_produce_error(
                error, f"{self} is not written", self._sink.topic
            )
            if recovery is None:
                raise
            raise recovery from error
        self._producer.poll_delivery_reports()
        self._refused.raise_if_any(str(self))

    def commit_epoch(self) -> Tally:
        """Commit the transaction with the offset that marks the epoch; return the rows' tally.

        Raises StreamsError, with the row, if brokers have refused one.
        """
        self._producer.begin_transaction()
        try:
            self._producer.flush()
        finally:
            self._refused.raise_if_any(str(self))
        mark = OffsetAndMetadata(self._epoch + 1, self._tally.to_metadata())
        group = encode_group_metadata(self._sink.build_partition_id(self._partition), -1, "", None)
        self._producer.send_offsets_to_transaction([(self._sink.mark_partition, mark)], group)
        self._producer.commit_transaction()
        return self._tally

    def close(self) -> None:
        """Close the producer, which aborts a transaction that was not committed."""
        self._producer.try_abort_and_close()

    def __str__(self) -> str:
        return _describe_epoch_write(self._sink, self._partition, self._epoch)

    def _produce_row_by_row(self, rows: ProducerRows) -> None:
        """Produce each row, waiting for room whenever the producer's queue is full."""
        topic, produce = self._sink.topic, self._producer.produce
        chosen = {
            name: column
            for name, column in (
                ("partition", rows.partitions),
                ("timestamp", rows.timestamps_ms),
                ("headers", rows.headers),
            )
            if column is not None
        }
        for at, (key, value) in enumerate(zip(rows.keys, rows.values, strict=True)):
            more: dict[str, Any] = {}
            if chosen:
                more = {n: column[at] for n, column in chosen.items() if column[at] is not None}
            try:
                try:
                    produce(topic, value, key, **more)
                except BufferError:
                    self._producer.wait_for_queue_room()
                    produce(topic, value, key, **more)
            except Exception as error:
                self._refused.note_exception(error, key, value)
                raise


@contextmanager
def open_epoch_attempt(
    access: BrokerAccess, sink: EpochSink, partition: int, epoch: int
) -> Iterator[EpochAttempt]:
    """Open a transaction for an epoch for the with block, and abort it unless the block commits.

    Raises StreamsError, which says what a failure means for the task; AuthorizationError where a
    right is missing.
    """
    doing = _describe_epoch_write(sink, partition, epoch)
    timeout = access.librdkafka_settings.get(TRANSACTION_TIMEOUT_SETTING, TRANSACTION_TIMEOUT_MS)
    made = None
    try:
        made = EpochAttempt(access, sink, partition, epoch)
        yield made
    except TopicRefused as error:
        access.create_admin().check_topic_rights({sink.topic: _TOPIC_OPERATIONS}, REQUEST_TIMEOUT_S)
        raise StreamsError(f"{doing} was not written: {error}") from error
    except TaskMigrated as error:
        raise StreamsError(
            f"{doing} was not written by this attempt: another one of the same task has taken its "
            f"place, or it took longer than {TRANSACTION_TIMEOUT_SETTING} = {timeout} (option "
            f"kafka.{TRANSACTION_TIMEOUT_SETTING}): {error}"
        ) from error
    except OutcomeUnknown as error:
        raise StreamsError(
            f"{doing}: whether it was written is not known; the next attempt finds out: {error}"
        ) from error
    finally:
        if made is not None:
            with suppress(TaskMigrated, OutcomeUnknown, StreamsError):
                made.close()
