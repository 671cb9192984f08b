"""Find what proves an offset of an input: the ledger, and the records of internal topics.

The ledger names for each transaction what every task had read by it, tasks without stores too. Its
last offset of an input is the one that was committed last if no transaction came after it that the
ledger does not know, and the offset is of the same topics:

    what is looked at                      what it would show
    the ids of the input                   the offset is of a former topic of the same name
    the task's changelogs; without any,    a committed record behind those that the ledger names: a
    all internal topics, and its sinks     transaction that it does not know, as with ledger=False
    the same topics' ends, and where       the application was reset after the offset was
    transactions begin to write them       committed: the ledger stays, and internal topics don't
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TypeAlias

from streams.commands.cluster_clients import ClusterClients
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.ledger import LedgerTransaction, WrittenRange, decode, ledger_topic
from streams.topology.build import Subtopology, Topology

ProofOrObstacle: TypeAlias = str


@dataclass(frozen=True, slots=True)
class TaskInputs:
    """Holds the input partitions of one task, and its changelogs by store."""

    name: str
    subtopology: Subtopology
    partitions: list[Partition]
    changelogs: dict[str, Partition]

    @property
    def has_stores(self) -> bool:
        """Return whether the task has stores, with a changelog or without."""
        return bool(self.subtopology.stores)


@dataclass(slots=True)
class LedgerOffsets:
    """Holds the ledger's last offsets of each input, and of each partition that was written.

    Transactions are numbered from 1, by their place among those that are read.
    """

    offsets: dict[Partition, int] = field(default_factory=dict)
    commit_numbers: dict[Partition, int] = field(default_factory=dict)
    topic_ids: dict[Partition, int | None] = field(default_factory=dict)
    """The hash of the id that each input's topic had; None where no entry names it."""
    read_by: dict[Partition, int] = field(default_factory=dict)
    """The transaction that names each input last."""
    written_ends: dict[Partition, int] = field(default_factory=dict)
    lowest_runs: dict[Partition, WrittenRange] = field(default_factory=dict)
    """The first records of each partition, since it was created last."""
    restarted_by: dict[str, int] = field(default_factory=dict)
    """For a topic that was created again, the first transaction that shows it."""
    is_whole: bool = False
    """Whether the ledger's first record is still there."""
    transaction_count: int = 0

    def add_transaction(self, transaction: LedgerTransaction) -> None:
        """Add the next transaction of the ledger."""
        self.transaction_count += 1
        for task, offsets in transaction.inputs.items():
            for partition, offset in offsets.items():
                id_hash = transaction.topic_ids.get(partition.topic)
                if None not in (before := self.topic_ids.get(partition), id_hash) and (
                    before != id_hash
                ):
                    self.restarted_by[partition.topic] = self.transaction_count
                self.offsets[partition] = offset
                self.topic_ids[partition] = id_hash
                self.read_by[partition] = self.transaction_count
                if task in transaction.commits:
                    self.commit_numbers[partition] = transaction.commits[task]
        for partition, runs in transaction.written.items():
            for run in runs:
                self._add_run_and_detect_recreation(partition, run)

    def _add_run_and_detect_recreation(self, partition: Partition, run: WrittenRange) -> None:
        """Add a range that was written; one that is there already is of a topic created again."""
        lowest = self.lowest_runs.get(partition)
        if lowest is not None and run.first <= lowest.last and run.last >= lowest.first:
            self.restarted_by[partition.topic] = self.transaction_count
            self.written_ends[partition], lowest = 0, None
        if lowest is None or run < lowest:
            self.lowest_runs[partition] = run
        self.written_ends[partition] = max(run.last + 1, self.written_ends.get(partition, 0))


class LedgerProver:
    """Proves offsets of one application's inputs by its ledger.

    `topic_ids` are the hashes of the inputs' ids now.
    """

    def __init__(
        self,
        clients: ClusterClients,
        topology: Topology,
        ledger: LedgerOffsets,
        topic_ids: Mapping[str, int],
    ) -> None:
        self._clients = clients
        self._topology = topology
        self._ledger = ledger
        self._topic_ids = topic_ids
        self._find_unknown = lru_cache(maxsize=None)(self._find_unknown_record)

    def prove_offset(
        self, task: TaskInputs, partition: Partition
    ) -> tuple[int | None, ProofOrObstacle]:
        """Return the offset that the ledger proves for an input, or None, and what was found."""
        ledger, topic = self._ledger, partition.topic
        offset = ledger.offsets.get(partition)
        if offset is None:
            return None, "no ledger has it"
        then, now = ledger.topic_ids.get(partition), self._topic_ids.get(topic)
        if None not in (then, now) and then != now:
            return None, (
                f"the ledger's offset {offset} is of another topic of the same name: "
                f"{topic!r} was deleted and created again"
            )
        own = list(task.changelogs.values()) or self._list_internal_outputs(task.subtopology)
        if restarted := self._find_recreated_topic(own, ledger.read_by[partition]):
            return None, (
                f"the ledger's offset {offset} was committed before {restarted!r} was deleted and "
                "created again"
            )
        watched = own
        if not task.changelogs:
            watched = [*self._internal_partitions, *self._list_external_sinks(task.subtopology)]
        later = self._find_unknown(tuple(watched))
        if later is not None:
            return None, f"the ledger does not know who wrote {later}"
        return offset, "by the ledger"

    def is_proven_unread(self, partition: Partition) -> bool:
        """Return whether the ledger proves that nothing was ever committed for an input.

        It has all transactions since its internal topics were created, and none names the input.
        """
        if not self._ledger.is_whole or partition in self._ledger.offsets:
            return False
        internal = self._internal_partitions
        return self._has_all_records and self._find_unknown(tuple(internal)) is None

    @cached_property
    def _internal_partitions(self) -> list[Partition]:
        """Return the partitions of the changelogs and repartition topics that exist."""
        stores = [s for sub in self._topology.subtopologies for s in sub.stores if s.logged]
        topics = {self._topology.restore_topic_of(s.name) for s in stores if not s.source_topic}
        return self._list_partitions(topics | self._topology.repartition_topics)

    @cached_property
    def _has_all_records(self) -> bool:
        """Return whether the ledger knows all internal topics from their first record on."""
        ends = self._fetch_ends(self._internal_partitions)
        lowest = self._ledger.lowest_runs
        return all(
            p in lowest and lowest[p].first == 0 and self._ledger.written_ends[p] <= end
            for p, end in ends.items()
            if end > 0
        )

    def _find_recreated_topic(
        self, own: Collection[Partition], since_transaction: int
    ) -> str | None:
        """Return a topic that was created again after a transaction; None if none was.

        `own` are partitions that the task writes, of internal topics.
        """
        ledger = self._ledger
        for topic in sorted({p.topic for p in own}):
            if ledger.restarted_by.get(topic, 0) > since_transaction:
                return topic
        for partition, end in self._fetch_ends(own).items():
            if ledger.written_ends.get(partition, 0) > end:
                return partition.topic
        return None

    def _list_internal_outputs(self, subtopology: Subtopology) -> list[Partition]:
        """Return the partitions of internal topics that a sub-topology writes.

        One that writes none is judged by all of the application's.
        """
        topics = {s.topic for s in subtopology.sinks if s.internal and isinstance(s.topic, str)}
        return self._list_partitions(topics) or self._internal_partitions

    def _list_external_sinks(self, subtopology: Subtopology) -> list[Partition]:
        """Return the partitions of the outputs of a sub-topology without internal ones."""
        if any(sink.internal for sink in subtopology.sinks):
            return []
        return self._list_partitions(s.topic for s in subtopology.sinks if isinstance(s.topic, str))

    def _list_partitions(self, topics: Iterable[str]) -> list[Partition]:
        counts = self._clients.partition_counts
        return [Partition(t, n) for t in sorted(set(topics)) for n in range(counts.get(t, 0))]

    def _fetch_ends(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        return self._clients.admin.fetch_latest_offsets(list(partitions)) if partitions else {}

    def _find_unknown_record(self, partitions: tuple[Partition, ...]) -> str | None:
        """Return the place of the first committed record that the ledger does not know, if any."""
        starts = {each: self._ledger.written_ends.get(each, 0) for each in partitions}
        return describe_first_committed_record(self._clients, starts)


def describe_first_committed_record(
    clients: ClusterClients, starts: Mapping[Partition, int]
) -> str | None:
    """Return the place of the first committed record at or after the given offsets, if any."""
    partitions = list(starts)
    if not partitions:
        return None
    earliest = clients.admin.fetch_earliest_offsets(partitions)
    ends = clients.admin.fetch_last_stable_offsets(partitions)
    positions = {p: max(starts[p], earliest[p]) for p in partitions}
    reader = clients.create_reader(committed_only=True)
    try:
        for message in reader.read_records(positions, ends):
            return f"{message.topic()}[{message.partition()}]@{message.offset()}"
    finally:
        reader.close()
    return None


def read_ledger(clients: ClusterClients, application_id: str) -> LedgerOffsets:
    """Read the whole ledger, if there is one; its last record of a task says where the task is."""
    found = LedgerOffsets()
    topic = ledger_topic(application_id)
    if topic not in clients.partition_counts:
        return found
    partitions = clients.list_partitions(topic)
    starts = clients.admin.fetch_earliest_offsets(partitions)
    ends = clients.admin.fetch_last_stable_offsets(partitions)
    found.is_whole = not any(starts.values()) and any(ends.values())
    reader = clients.create_reader(committed_only=True)
    try:
        for message in reader.read_records(starts, ends):
            try:
                transaction = decode(message.value() or b"")
            except ValueError as error:
                raise ConfigError(f"{topic} at {message.offset()}: {error}") from error
            found.add_transaction(transaction)
    finally:
        reader.close()
    return found
