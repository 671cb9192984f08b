"""An epoch is written once: a transaction for each epoch and Spark partition, which says so itself.

Theory of operation. A sink has a name that outlives its tasks: the query's id, or a `write_id`.
Each of its Spark partitions has a transactional id and, to keep offsets in, a group of its own. The
transaction that writes the rows of an epoch also commits `epoch + 1` as an offset in that group
(for partition 0 of the topic, whatever rows were written where: brokers want one that exists), with
the number and a digest of the rows as metadata. So rows and mark are there together or not at all.
A task

    1. makes its producer: the broker ends what an earlier attempt left open, and refuses that
       attempt from now on (it may still run: a speculative one, or on a machine that was given up)
    2. reads the mark, stable: what was prepared to commit counts only when it is committed
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

from streams.errors import OutcomeUnknown, StreamsError, TaskMigrated
from streams.positions import Committed, Partition
from streams.runtime.clients import (
    DataProducer,
    group_metadata,
    stable_offset,
)
from streams.spark.source.access import TIMEOUT_S, Access

TRANSACTION_TIMEOUT = "transaction.timeout.ms"
TRANSACTION_TIMEOUT_MS = 300_000
"""From a task's first row to its end. While a task that died is not tried again, nothing behind its
rows is read (read_committed); brokers take 15 minutes at most unless told otherwise."""

_PRODUCER = {
    "linger.ms": 100,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 1_000_000,
    # What a task holds at most; what is left of it goes out within the time-out of a commit.
    "queue.buffering.max.kbytes": 64 << 10,
    TRANSACTION_TIMEOUT: TRANSACTION_TIMEOUT_MS,
}
_FORCED = {"partitioner": "murmur2_random", "enable.idempotence": True}
_ASKING_MAX = 16
_METADATA = re.compile(r"rows=(\d+) digest=([0-9a-f]{16})")
_DIGEST_BITS = 64
_MIX, _NULL = 0x9E3779B9, 0x5BD1E995
"""Any numbers of 32 bits."""

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Sink:
    """Where a query, or a write of that name, writes to. Everything that it keeps has its name."""

    name: str
    topic: str

    def transactional_id(self, partition: int) -> str:
        return f"{self.name}-{partition}"

    def group(self, partition: int) -> str:
        return f"{self.name}-{partition}"

    @property
    def mark(self) -> Partition:
        """Under which the group of each Spark partition keeps its epoch."""
        return Partition(self.topic, 0)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as a producer takes them, a list for each column. Partitions of the topic, where rows
    name them, else None for Kafka's own choice; timestamps in ms since 1970, None for now."""

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    partitions: Sequence[int | None] | None = None
    timestamps: Sequence[int | None] | None = None
    headers: Sequence[list[Header] | None] | None = None

    def __len__(self) -> int:
        return len(self.values)


@dataclass(slots=True)
class Tally:
    """How many rows, and a digest of their keys and values that their order does not matter to:
    the rows of a Spark partition come in another order when it is computed again."""

    rows: int = 0
    digest: int = 0

    def add(self, rows: Rows) -> None:
        # Mixed: the checksum of a value that goes on from its key's is that of both in one.
        keys = [_NULL if key is None else crc32(key) ^ _MIX for key in rows.keys]
        pairs = zip(rows.values, keys, strict=True)
        sums = (crc32(v, k) if v is not None else ~k for v, k in pairs)
        # Squares: sums alone are the same where bits moved from one checksum to another.
        self.digest += sum(each * each for each in sums)
        self.digest %= 1 << _DIGEST_BITS
        self.rows += len(rows)

    def to_metadata(self) -> str:
        return f"rows={self.rows} digest={self.digest:016x}"

    @classmethod
    def from_metadata(cls, text: str) -> Tally | None:
        """What `to_metadata` wrote; None for anything else."""
        found = _METADATA.fullmatch(text)
        return None if found is None else cls(int(found[1]), int(found[2], 16))


def written(access: Access, sink: Sink, partition: int, epoch: int) -> Tally | None:
    """What an epoch was written with, or None if it was not.

    Raises StreamsError where the mark is above it, is none of ours, or is not known in time.
    """
    doing = _doing(sink, partition, epoch)
    found = _mark(access, sink, partition, doing)
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
            f"{doing}: the offset in group {sink.group(partition)!r} is none that a sink commits "
            f"(metadata {found.metadata!r}): nothing else may use this group"
        )
    return tally


def beyond(access: Access, sink: Sink, partitions: int, epoch: int) -> list[int]:
    """The Spark partitions that have written the epoch and are none of its `partitions`: it was
    begun before, with more of them."""
    admin, stem = access.admin(), f"{sink.name}-"
    names = [group.removeprefix(stem) for group in admin.groups() if group.startswith(stem)]
    numbers = sorted(int(each) for each in names if each.isdecimal() and int(each) >= partitions)

    def has_written(partition: int) -> bool:
        return written(access, sink, partition, epoch) is not None

    # Mostly waiting, and an epoch of many partitions leaves a group for each for days.
    with ThreadPoolExecutor(_ASKING_MAX) as pool:
        return [n for n, has in zip(numbers, pool.map(has_written, numbers), strict=True) if has]


def _mark(access: Access, sink: Sink, partition: int, doing: str) -> Committed | None:
    try:
        return stable_offset(access.settings(), sink.group(partition), sink.mark, TIMEOUT_S)
    except OutcomeUnknown as unknown:
        raise StreamsError(
            f"{doing}: whether it was written can't be told; no coordinator answers, or the "
            f"transaction of an earlier attempt is still open: {unknown}"
        ) from unknown


def _doing(sink: Sink, partition: int, epoch: int) -> str:
    return f"epoch {epoch} of Spark partition {partition} into topic {sink.topic!r}"


class Attempt:
    """One task's attempt at one epoch of a sink. After any error: `discard` it (`attempt` does)."""

    def __init__(self, access: Access, sink: Sink, partition: int, epoch: int) -> None:
        self._sink = sink
        self._partition = partition
        self._epoch = epoch
        self._tally = Tally()
        transactional_id = sink.transactional_id(partition)
        self._producer = DataProducer(
            transactional_id,
            {
                **_PRODUCER,
                **access.settings(),
                **_FORCED,
                "transactional.id": transactional_id,
            },
            transactional=True,
            timeout_s=TIMEOUT_S,
        )

    def produce(self, rows: Rows) -> None:
        """Write rows into the epoch's transaction."""
        self._producer.begin()
        self._tally.add(rows)
        try:
            self._produce(rows)
        except Exception as error:
            recovery = self._producer.refusal(error, f"{self} is not written")
            if recovery is None:
                raise
            raise recovery from error
        self._producer.poll()

    def commit(self) -> Tally:
        """Commit the rows and the mark together."""
        self._producer.begin()
        mark = Committed(self._epoch + 1, self._tally.to_metadata())
        group = group_metadata(self._sink.group(self._partition), -1, "", None)
        self._producer.commit([(self._sink.mark, mark)], group)
        self._producer.end()
        return self._tally

    def close(self) -> None:
        """Give up what was not committed."""
        self._producer.close()

    def __str__(self) -> str:
        return _doing(self._sink, self._partition, self._epoch)

    def _produce(self, rows: Rows) -> None:
        topic, produce = self._sink.topic, self._producer.produce
        chosen = {
            name: column
            for name, column in (
                ("partition", rows.partitions),
                ("timestamp", rows.timestamps),
                ("headers", rows.headers),
            )
            if column is not None
        }
        for at, (key, value) in enumerate(zip(rows.keys, rows.values, strict=True)):
            more: dict[str, Any] = {}
            if chosen:
                more = {n: column[at] for n, column in chosen.items() if column[at] is not None}
            try:
                produce(topic, value, key, **more)
            except BufferError:
                self._producer.make_room()
                produce(topic, value, key, **more)


@contextmanager
def attempt(access: Access, sink: Sink, partition: int, epoch: int) -> Iterator[Attempt]:
    """An attempt, whose transaction is aborted unless it was committed.

    Raises StreamsError, with what it means for the task in words a person can use.
    """
    doing = _doing(sink, partition, epoch)
    timeout = access.kafka.get(TRANSACTION_TIMEOUT, TRANSACTION_TIMEOUT_MS)
    made = None
    try:
        made = Attempt(access, sink, partition, epoch)
        yield made
    except TaskMigrated as error:
        raise StreamsError(
            f"{doing} was not written by this attempt: another one of the same task has taken its "
            f"place, or it took longer than {TRANSACTION_TIMEOUT} = {timeout} (option "
            f"kafka.{TRANSACTION_TIMEOUT}): {error}"
        ) from error
    except OutcomeUnknown as error:
        raise StreamsError(
            f"{doing}: whether it was written is not known; the next attempt finds out: {error}"
        ) from error
    finally:
        if made is not None:
            with suppress(TaskMigrated, OutcomeUnknown, StreamsError):
                made.close()
