"""Put the records of a task's topics in the order in which the ledger says the task took them.

The ledger has, for each commit of a task, up to which offsets it had read, and runs of records as
counts (`streams.ledger`). The records that are there are counted along: where they are more or
fewer than the ledger says, nothing follows from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streams.errors import ConfigError
from streams.ledger import (
    LedgerTransaction,
    LookupState,
    TakenRun,
    TopicIdHash,
    decode_global_lookup_states,
    decode_order,
)
from streams.topology.build import Topology

NumberedPosition = tuple[int, int]
"""The number of a task's commit, and the index of a record among those of that commit."""


@dataclass(frozen=True, slots=True)
class TaskCommit:
    """Represents one commit of a task: the next offset of each topic, and the order of records.

    `order` is encoded (`streams.ledger.encode_order`), None where the ledger has none. Its runs
    name topics by their indexes in `topics`. `lookups`: the states in which each step found a
    global table, by step (`streams.ledger.encode_global_lookup_states`).
    """

    ends: Mapping[str, int]
    order: str | None
    lookups: Mapping[str, str] = field(default_factory=dict)

    @property
    def topics(self) -> list[str]:
        """Return the task's topics in the order by which runs name them."""
        return sorted(self.ends)


LedgerOrder = dict[int, list[TaskCommit]]
"""The commits of each task of one sub-topology, by its partition."""


def collect_ledger_orders(
    entries: Iterable[LedgerTransaction], topology: Topology
) -> dict[int, LedgerOrder]:
    """Collect the commits of all tasks, by the number of their sub-topology.

    `entries`: those of a cut, in the order of the ledger. Of a sub-topology whose tasks have read
    other topics, in an earlier version of the application, nothing is known.
    """
    orders: dict[int, LedgerOrder] = {sub.number: {} for sub in topology.subtopologies}
    topics = {sub.number: sub.sources.keys() for sub in topology.subtopologies}
    for entry in entries:
        for task, offsets in entry.inputs.items():
            number, partition = map(int, task.split("_"))
            ends = {each.topic: offset for each, offset in offsets.items()}
            if number not in orders:
                continue
            if not ends.keys() <= topics[number]:
                del orders[number]
                continue
            commit = TaskCommit(ends, entry.order.get(task), entry.lookups.get(task, {}))
            orders[number].setdefault(partition, []).append(commit)
    return orders


class PartitionOrder:
    """Tells the order in which a task took the records of one partition of its topics."""

    def __init__(self, commits: Sequence[TaskCommit], partition: int) -> None:
        self._commits = commits
        self._partition = partition

    def number_records_of_topic(
        self, topic: str, offsets: Iterable[int]
    ) -> Iterator[NumberedPosition]:
        """Yield the position of each record of a topic, whose offsets ascend.

        Raises ConfigError for a record that the ledger doesn't know.
        """
        at, end = -1, -1
        indexes: Iterator[int] = iter(())
        for offset in offsets:
            while offset >= end:
                at += 1
                if at == len(self._commits):
                    raise ConfigError(
                        f"the ledger has no commit in which {topic}[{self._partition}] at offset "
                        f"{offset} was read"
                    )
                end = self._commits[at].ends.get(topic, -1)
                indexes = self._iterate_indexes(self._commits[at], topic)
            index = next(indexes, None)
            if index is None:
                raise ConfigError(
                    f"{topic}[{self._partition}] at offset {offset} is not among the records that "
                    "the ledger says were read up to there"
                )
            yield at, index

    def check_record_counts(
        self, counts: Mapping[int, int], from_commit: int, to_commit: int
    ) -> None:
        """Check that all records of the commits `from_commit` to below `to_commit` are there.

        `counts`: how many records there are, by the commit's number. Raises ConfigError.
        """
        for number in range(from_commit, to_commit):
            said = sum(length for _, length in self._decode_runs(self._commits[number]))
            if said != (found := counts.get(number, 0)):
                raise ConfigError(
                    f"of {said} records that the ledger says were read at a time from partition "
                    f"{self._partition}, {found} are there"
                )

    def find_lookups(self, commit_number: int) -> Mapping[str, str]:
        """Return the states in which each step found a global table in a commit, encoded."""
        return self._commits[commit_number].lookups

    def check_no_later_records(self, from_commit: int) -> None:
        """Check that no commit from this one on has read a record. Raises ConfigError."""
        self.check_record_counts({}, from_commit, len(self._commits))

    def _iterate_indexes(self, commit: TaskCommit, topic: str) -> Iterator[int]:
        """Return the indexes of a topic's records among all of a commit. Raises ConfigError."""
        topics = commit.topics
        wanted = topics.index(topic) if topic in topics else -1
        return _iterate_record_indexes_of_run(self._decode_runs(commit), wanted)

    def _decode_runs(self, commit: TaskCommit) -> list[TakenRun]:
        """Return the runs of a commit. Raises ConfigError if they are missing or damaged."""
        if commit.order is None:
            raise ConfigError(
                "the ledger does not tell in which order the records of partition "
                f"{self._partition} were read: the order was too long"
            )
        try:
            return decode_order(commit.order)
        except ValueError as error:
            raise ConfigError(
                f"the ledger is damaged: of partition {self._partition} it has {error}"
            ) from error


def decode_step_lookups(step: str, text: str) -> tuple[TopicIdHash | None, list[LookupState]]:
    """Decode the states in which a step found a global table, as the ledger has them.

    Raises ConfigError if they are damaged.
    """
    try:
        return decode_global_lookup_states(text)
    except ValueError as error:
        raise ConfigError(f"the ledger is damaged: of step {step!r} it has {error}") from error


def _iterate_record_indexes_of_run(
    runs: Iterable[tuple[int, int]], run_number: int
) -> Iterator[int]:
    """Yield the indexes of the records of those runs that have the number `run_number`."""
    index = 0
    for number, length in runs:
        if number == run_number:
            yield from range(index, index + length)
        index += length
