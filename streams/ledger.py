"""Encode the ledger, which says of each committed transaction what it read and wrote.

With `ledger=True` each transaction writes one record of its own to `<application.id>-ledger` (one
partition), which is committed and aborted with all the others. A committed record of any output,
repartition or changelog topic is in exactly one `LedgerTransaction` that a reader of committed
records sees. A record belongs to a consistent cut of the application if and only if its transaction
does: if what the transaction's tasks had read, and the numbers of their commits, are not beyond the
cut's. So it can be decided for any record whether it is in the cut, including those in transit
through repartition topics.

The value is JSON; the key is the transactional id:

    {"v": 1, "producer": [id, epoch],
     "inputs": {task: {topic: {partition: next offset}}},
     "written": {topic: {partition: [[first, last], ...]}},
     "commits": {task: number of the commit},
     "topic_ids": {topic: hash of its id},
     "order": {task: the order in which it took the records of its inputs},
     "lookups": {task: {step: the states in which it found a global table}}}

`commits` are the numbers in the metadata of the committed offsets
(`streams.runtime.offsets.offset_metadata`). `topic_ids` are those of the inputs, as in the same
metadata: an offset is one of a topic, and not of a later one of the same name. Brokers without
topic ids give none. `written` are runs of offsets in which no record of another producer lies,
first and last included: several threads may write to one partition at a time.

`order` tells how many records each task took, and in which order (decision 80): pairs of a
partition's place among the sorted ones of the task and how many records were taken from it in a
row. The numbers are varints (LEB128), compressed by zlib, in base64. A transaction of very many
runs leaves it out.

`lookups` tell of each step that joins with a global table which states of the worker's copy its
look-ups found, in the same encoding: the hash of the topic's id (0: none), and for each state the
number of the transaction's first look-up in it, from 0, the number of partitions, and the offset up
to which each of them had been copied.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import orjson

from streams.common.topic_partitions import Partition

TakenRun: TypeAlias = tuple[int, int]
"""The place of an input among a task's sorted partitions, from 0, and how many records were taken
from it in a row."""
TopicIdHash: TypeAlias = int

_VERSION = 1


def ledger_topic(application_id: str) -> str:
    """Return the name of an application's ledger topic."""
    return f"{application_id}-ledger"


class WrittenRange(NamedTuple):
    """Represents a gapless range of offsets that one transaction wrote to one partition.

    Both ends belong to it.
    """

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class LedgerTransaction:
    """Represents one committed transaction in the ledger.

    `inputs`: for each task the offsets that it committed, which are the next ones to read.
    `producer_id` and `producer_epoch` are those of the record batches.
    """

    producer_id: int
    producer_epoch: int
    inputs: Mapping[str, Mapping[Partition, int]]
    written: Mapping[Partition, tuple[WrittenRange, ...]]
    commits: Mapping[str, int] = field(default_factory=dict)
    """The number of each task's commit."""
    topic_ids: Mapping[str, int] = field(default_factory=dict)
    """The hash of the id of each input (`streams.runtime.offsets.topic_ids`)."""
    order: Mapping[str, str] = field(default_factory=dict)
    """The order in which each task took records of its partitions (`encode_order`)."""
    lookups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By task and step, how global tables were found (`encode_global_lookup_states`)."""

    def wrote(self, partition: Partition, offset: int) -> bool:
        """Return whether this transaction wrote the record at `offset` of `partition`."""
        return any(first <= offset <= last for first, last in self.written.get(partition, ()))

    def is_in(
        self,
        cut: Mapping[Partition, int],
        commits: Mapping[Partition, int] | None = None,
    ) -> bool:
        """Return whether the transaction is in a consistent cut: it read nothing beyond it.

        `cut`: the application's committed offsets at one moment; `commits`: the
        commit numbers that the metadata of these offsets name.

        A transaction that has only punctuated commits the same offsets as the one before it. The
        two are told apart by the numbers; where one is missing, both are in the cut.
        """
        numbers = commits or {}
        for task, offsets in self.inputs.items():
            number = self.commits.get(task, -1)
            for partition, offset in offsets.items():
                cut_offset = cut.get(partition, -1)
                if offset > cut_offset:
                    return False
                if offset == cut_offset and number > numbers.get(partition, number):
                    return False
        return True


def encode_transaction(transaction: LedgerTransaction) -> bytes:
    """Encode a transaction as the value of a ledger record."""
    fields: dict[str, Any] = {
        "v": _VERSION,
        "producer": [transaction.producer_id, transaction.producer_epoch],
        "inputs": {task: _nest_by_topic(offsets) for task, offsets in transaction.inputs.items()},
        "written": _nest_by_topic(
            {p: [[*run] for run in runs] for p, runs in transaction.written.items()}
        ),
    }
    if transaction.commits:
        fields["commits"] = dict(transaction.commits)
    if transaction.topic_ids:
        fields["topic_ids"] = dict(transaction.topic_ids)
    if transaction.order:
        fields["order"] = dict(transaction.order)
    if transaction.lookups:
        fields["lookups"] = {task: dict(steps) for task, steps in transaction.lookups.items()}
    return orjson.dumps(fields)


def decode(value: bytes) -> LedgerTransaction:
    """Decode the value of a ledger record.

    Raises ValueError for another kind of record, or one of a later version.
    """
    fields: Any = orjson.loads(value)
    written = fields.get("v") if isinstance(fields, dict) else None
    if isinstance(written, int) and written > _VERSION:
        raise ValueError(
            f"it has version {written}, by a later release of Millrace; this one reads {_VERSION}"
        )
    if written != _VERSION:
        raise ValueError(f"not a ledger record of version {_VERSION}: {value!r:.100}")
    producer_id, epoch = fields["producer"]
    inputs = {
        task: dict(_flatten_partitions(offsets)) for task, offsets in fields["inputs"].items()
    }
    written = {
        partition: tuple(WrittenRange(first, last) for first, last in runs)
        for partition, runs in _flatten_partitions(fields["written"])
    }
    return LedgerTransaction(
        producer_id,
        epoch,
        inputs,
        written,
        fields.get("commits") or {},
        fields.get("topic_ids") or {},
        fields.get("order") or {},
        fields.get("lookups") or {},
    )


def encode_order(runs: Iterable[TakenRun]) -> str:
    """Encode the order in which a task took records of its inputs as ASCII text."""
    return _encode_varints(number for run in runs for number in run)


def decode_order(text: str) -> list[TakenRun]:
    """Decode the runs of records that `encode_order` has encoded. Raises ValueError."""
    try:
        numbers = _decode_varints(text)
        return list(zip(numbers, numbers, strict=True))
    except (zlib.error, ValueError) as error:
        raise ValueError(f"not an order of records: {text!r:.100}") from error


class LookupState(NamedTuple):
    """Represents a state in which look-ups found the copy of a global table.

    `first`: the number of the first look-up of the transaction in this state; `positions`: the
    offset up to which each partition of the topic had been copied, in order of the partitions.
    """

    first: int
    positions: tuple[int, ...]


def encode_global_lookup_states(topic_id_hash: int | None, states: Iterable[LookupState]) -> str:
    """Encode the states in which a step found a global table as ASCII text."""
    numbers = [topic_id_hash or 0]
    for first, positions in states:
        numbers += [first, len(positions), *positions]
    return _encode_varints(numbers)


def decode_global_lookup_states(text: str) -> tuple[TopicIdHash | None, list[LookupState]]:
    """Decode the look-ups that `encode_global_lookup_states` has encoded. Raises ValueError."""
    try:
        numbers = _decode_varints(text)
        topic_id_hash = next(numbers, 0) or None
        states = []
        for first in numbers:
            count = next(numbers)
            states.append(LookupState(first, tuple(next(numbers) for _ in range(count))))
    except (zlib.error, ValueError, StopIteration, RuntimeError) as error:
        raise ValueError(f"no states of a global table: {text!r:.100}") from error
    return topic_id_hash, states


def _encode_varints(numbers: Iterable[int]) -> str:
    """Encode numbers as varints (LEB128), compressed, in base64."""
    data = bytearray()
    for number in numbers:
        while number > 0x7F:
            data.append(number & 0x7F | 0x80)
            number >>= 7
        data.append(number)
    return b64encode(zlib.compress(data, 1)).decode()


def _decode_varints(text: str) -> Iterator[int]:
    """Yield the numbers that `_encode_varints` has encoded. Raises ValueError, zlib.error."""
    number = shift = 0
    for byte in zlib.decompress(b64decode(text, validate=True)):
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield number
            number = shift = 0


def _nest_by_topic(values: Mapping[Partition, Any]) -> dict[str, dict[str, Any]]:
    """Nest a mapping by partition into one by topic and partition number."""
    topics: dict[str, dict[str, Any]] = {}
    for (topic, number), value in values.items():
        topics.setdefault(topic, {})[str(number)] = value
    return topics


def _flatten_partitions(topics: Mapping[str, Mapping[str, Any]]) -> list[tuple[Partition, Any]]:
    """Flatten a mapping by topic and partition number to pairs of a Partition and its value."""
    return [
        (Partition(topic, int(number)), value)
        for topic, numbers in topics.items()
        for number, value in numbers.items()
    ]
