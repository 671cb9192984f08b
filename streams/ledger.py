"""The ledger: for each committed transaction of an application what it read and what it wrote.

With `ledger=True` each transaction writes one record of its own to `<application.id>-ledger` (one
partition), so that record is committed and aborted with all the others. A committed record of any
output, repartition or changelog topic is in exactly one entry that a reader of committed records
sees; and it belongs to a cut of the application iff the entry does: iff what the entry's tasks had
read, and the commits by which they said so, are not beyond the cut's. So it can be decided for any
record whether it is in the cut, those on their way through repartition topics included.

The value is JSON; the key is the transactional id:

    {"v": 1, "producer": [id, epoch],
     "inputs": {task: {topic: {partition: next offset}}},
     "written": {topic: {partition: [[first, last], ...]}},
     "commits": {task: number of the commit}}

`commits` is what the metadata of the offsets say (`streams.runtime.offsets`); an earlier release
writes none. `written` are runs of offsets in which nothing of another producer lies, first and last
included: several threads may write to one partition at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from streams.positions import Partition

_FORMAT = 1


def ledger_topic(application_id: str) -> str:
    """Where the ledger of an application is."""
    return f"{application_id}-ledger"


class Run(NamedTuple):
    """Offsets of one transaction in one partition, without a gap; both ends belong to it."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One transaction. `inputs`: for each task the offsets that it committed, which are the next
    ones to read. `producer_id` and `producer_epoch` are what the batches carry."""

    producer_id: int
    producer_epoch: int
    inputs: Mapping[str, Mapping[Partition, int]]
    written: Mapping[Partition, tuple[Run, ...]]
    commits: Mapping[str, int] = field(default_factory=dict)
    """For each task the number of its commit."""

    def wrote(self, partition: Partition, offset: int) -> bool:
        """Whether the record there was written by this transaction."""
        return any(first <= offset <= last for first, last in self.written.get(partition, ()))

    def is_in(
        self, cut: Mapping[Partition, int], commits: Mapping[Partition, int] | None = None
    ) -> bool:
        """Whether the transaction is in a cut: what its tasks had read is not beyond its offsets.
        `cut`: the application's committed offsets at one moment; `commits`: the numbers of the
        commits that their metadata name.

        A transaction that has only punctuated commits the same offsets as the one before it. The
        two are told apart by the numbers; where one is missing, both are in the cut.
        """
        numbers = commits or {}
        for task, offsets in self.inputs.items():
            number = self.commits.get(task, -1)
            for partition, offset in offsets.items():
                held = cut.get(partition, -1)
                if offset > held:
                    return False
                if offset == held and number > numbers.get(partition, number):
                    return False
        return True


def encode(entry: Entry) -> bytes:
    """The value of a ledger record."""
    said = {
        "v": _FORMAT,
        "producer": [entry.producer_id, entry.producer_epoch],
        "inputs": {task: _by_topic(offsets) for task, offsets in entry.inputs.items()},
        "written": _by_topic({p: [[*run] for run in runs] for p, runs in entry.written.items()}),
    }
    return orjson.dumps(said | {"commits": dict(entry.commits)} if entry.commits else said)


def decode(value: bytes) -> Entry:
    """What a ledger record says. Raises ValueError for what is none, or of a later version."""
    found: Any = orjson.loads(value)
    if not isinstance(found, dict) or found.get("v") != _FORMAT:
        raise ValueError(f"not a ledger record of version {_FORMAT}: {value!r:.100}")
    producer_id, epoch = found["producer"]
    inputs = {task: dict(_partitions(offsets)) for task, offsets in found["inputs"].items()}
    written = {
        partition: tuple(Run(first, last) for first, last in runs)
        for partition, runs in _partitions(found["written"])
    }
    return Entry(producer_id, epoch, inputs, written, found.get("commits") or {})


def _by_topic(values: Mapping[Partition, Any]) -> dict[str, dict[str, Any]]:
    topics: dict[str, dict[str, Any]] = {}
    for (topic, number), value in values.items():
        topics.setdefault(topic, {})[str(number)] = value
    return topics


def _partitions(topics: Mapping[str, Mapping[str, Any]]) -> list[tuple[Partition, Any]]:
    return [
        (Partition(topic, int(number)), value)
        for topic, numbers in topics.items()
        for number, value in numbers.items()
    ]
