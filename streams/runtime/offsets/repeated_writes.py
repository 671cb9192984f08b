"""Refuse a task that would write again what a repartition topic has, and a store behind it counts.

The stores of a task prove that its inputs had offsets (`streams.runtime.tasks.offset_proof`). A
sub-topology before a repartition topic often has none: what it has read is in the stores of another
one. Read again, its records would be written again, and count twice there. So a task whose input
has no committed offset, or one that a tool has set, is refused before it reads a record, if

- its sub-topology writes repartition topics that lead to a store, one of which holds a committed
  record, or had some that were purged; and
- nothing explains that it has no offset, as the following does:

    what else the group has committed               why the input has no offset
    an offset of the same topic                     the partition was never read: workers start
                                                    one after the other, or it was added; an offset
                                                    that a tool has set was there before the first
                                                    start, unless that offset says that none was
    an offset of another input of the               the input was added to the topology, unless that
    sub-topology                                    offset was committed together with one of it
    an offset of a topic that is not read any more  the input takes the place of that one
    nothing of these                                it is lost: the task is refused

The topics are looked at first, and then the offsets, which are committed in the same transaction:
who has written before, in a first start, has an offset then. At least once the offsets at which a
task begins are committed before it reads a record, to the same end. A log that was purged of
aborted records alone proves nothing: the purge goes by offsets that were committed, whose metadata
then name no time of a record.

Offsets that were set before a first start and afterwards are told apart by what each task commits:
it says whether a partition of its inputs' topics had such an offset when the task started. One that
was set is committed by the application itself before a record is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from streams.common.topic_partitions import NO_TIME, CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown, PositionRefused
from streams.membership.connection import ConnectionLost
from streams.runtime.clients.interfaces import AdminClient
from streams.runtime.offsets.committed_record_search import CommittedRecordSearch
from streams.runtime.offsets.offset_metadata import (
    OffsetMetadata,
    decode_metadata,
    is_streams_metadata,
)
from streams.runtime.offsets.offset_refusals import (
    describe_foreign_offsets,
    describe_missing_offsets,
    explain_untrusted_offsets,
    find_remaining_offsets,
    suggest_ways_out,
)
from streams.runtime.offsets.preset_offsets import PRESET_ENTRY
from streams.topology.build import Topology
from streams.topology.resolve import resolve_topology
from streams.topology.topics_before_stores import find_repartition_topics_before_stores

_UndecidedInputs: TypeAlias = list[Partition]

FetchOffsets = Callable[[list[Partition] | None], CommittedOffsets]
"""Fetches stable offsets of partitions, all of the group's for None. Raises ConnectionLost."""


class UntrustedInputs(NamedTuple):
    """Holds inputs without an offset that the group has committed itself.

    `inputs` are all of them, `waiting` those of which it is not known yet whether they are lost.
    `preset_by_task` says of each task that was checked what `PRESET_ENTRY` names.
    """

    inputs: list[Partition]
    waiting: list[Partition]
    preset_by_task: dict[str, bool]


@dataclass(frozen=True, slots=True)
class _GroupOffsets:
    """Holds the group's committed offsets, with their metadata decoded.

    `is_pending`: a transaction is open that may commit the first offset of an input.
    `has_preset`: an offset of an input was set by a tool.
    """

    by_partition: Mapping[Partition, OffsetMetadata]
    is_pending: bool
    has_preset: bool = False

    @property
    def rules_out_preset_offsets(self) -> bool:
        """Return whether the metadata says that no tool set an offset before the tasks started."""
        said = {each.find_entry(PRESET_ENTRY) for each in self.by_partition.values()}
        return 0 in said and 1 not in said

    def has_topic(self, topic: str) -> bool:
        """Return whether the group has a committed offset of any partition of the topic."""
        return any(partition.topic == topic for partition in self.by_partition)

    def had_offsets_of(self, topic: str) -> bool:
        """Return whether a topic had offsets; it is taken to have had some if there are none."""
        known = self.by_partition.values()
        return not known or any(metadata.was_committed_with(topic) for metadata in known)


@dataclass(slots=True)
class _UntrustedInputs:
    """Holds inputs of one sub-topology without an offset that the group has committed itself.

    Those that are `lost` had one, as other offsets of their tasks say; `unexplained` are the rest.
    `is_settled`: all offsets of the tasks say that none was set by a tool.
    """

    tasks: list[str] = field(default_factory=list)
    is_settled: bool = True
    lost: list[Partition] = field(default_factory=list)
    unexplained: list[Partition] = field(default_factory=list)

    def add_inputs(
        self,
        task: str,
        partitions: Collection[Partition],
        committed: Mapping[Partition, OffsetAndMetadata],
        deleted: Collection[Partition],
    ) -> None:
        """Add the inputs of one task; those that were added to it later are in order."""
        self.tasks.append(task)
        own = _select_offsets_of_members({p: committed[p] for p in partitions if p in committed})
        untrusted = [p for p in partitions if p not in own and p not in deleted]
        said = {each.find_entry(PRESET_ENTRY) for each in own.values()}
        self.is_settled &= not untrusted and said == {0}
        if own:
            known = own.values()
            self.lost += [p for p in untrusted if any(m.was_committed_with(p.topic) for m in known)]
        else:
            self.unexplained += untrusted


class RepeatedWriteCheck:
    """Checks the inputs of tasks that are about to start, for one thread."""

    def __init__(
        self,
        topology: Topology,
        admin: AdminClient,
        search: CommittedRecordSearch,
        fetch_committed: FetchOffsets,
    ) -> None:
        self._topology = topology
        self._admin = admin
        self._search = search
        self._fetch_offsets = fetch_committed
        self._topics_before_stores = find_repartition_topics_before_stores(topology)
        self._written: set[int] = set()
        """The sub-topologies that are known to have committed a record."""

    def guards_task(self, task_name: str) -> bool:
        """Return whether a task writes repartition topics that lead to a store."""
        return _find_number(task_name) in self._topics_before_stores

    def find_untrusted_inputs(
        self,
        partitions_by_task: Mapping[str, Collection[Partition]],
        committed: Mapping[Partition, OffsetAndMetadata],
        deleted: Collection[Partition],
    ) -> UntrustedInputs:
        """Return the inputs without an offset of tasks whose records reach a store.

        `deleted` are inputs of topics that were made again, which `offset_out_of_range` decides.
        Raises: PositionRefused for an input whose offset is lost, or was set by a tool;
        OutcomeUnknown where no broker answers, or brokers don't know one of the topics.
        """
        found = UntrustedInputs([], [], {})
        by_number: dict[int, _UntrustedInputs] = defaultdict(_UntrustedInputs)
        for name, partitions in partitions_by_task.items():
            if self.guards_task(name):
                by_number[_find_number(name)].add_inputs(name, partitions, committed, deleted)
        for subtopology_number, untrusted in by_number.items():
            if untrusted.is_settled:
                found.preset_by_task.update(dict.fromkeys(untrusted.tasks, False))
                continue
            inputs = [*untrusted.lost, *untrusted.unexplained]
            is_written = self._probe_for_committed_records(subtopology_number) if inputs else False
            group = self._fetch_group_offsets(subtopology_number)
            found.preset_by_task.update(dict.fromkeys(untrusted.tasks, group.has_preset))
            found.inputs.extend(inputs)
            if is_written is None:
                found.waiting.extend(inputs)
            elif is_written:
                found.waiting.extend(self._classify_unexplained_inputs(untrusted, group, committed))
                self._refuse_lost(subtopology_number, sorted(untrusted.lost), committed)
        return found

    def _probe_for_committed_records(self, subtopology_number: int) -> bool | None:
        """Return whether a sub-topology has committed a record; None if that is not known yet."""
        if subtopology_number in self._written:
            return True
        partitions = self._list_partitions(self._topics_before_stores[subtopology_number])
        starts = self._admin.fetch_earliest_offsets(partitions)
        purged = [p for p, start in starts.items() if start > 0]
        found = True if purged and self._were_records_processed(purged) else None
        found = found or self._search.probe_for_committed_record(partitions)
        if found:
            self._written.add(subtopology_number)
        return found

    def _fetch_committed(self, partitions: list[Partition] | None) -> CommittedOffsets:
        """Fetch committed offsets, all of the group's for None. Raises OutcomeUnknown."""
        try:
            return self._fetch_offsets(partitions)
        except ConnectionLost as error:
            raise OutcomeUnknown(f"read the committed offsets: {error}") from error

    def _were_records_processed(self, purged: list[Partition]) -> bool:
        """Return whether a record was processed of partitions that were purged.

        Their offsets name its time, or where the changelog stood that it led to: restored offsets
        name the latter alone. Without offsets it is taken to be so.
        """
        held = self._fetch_committed(purged).offsets
        own = _select_offsets_of_members(held).values()
        stores = [each.name for sub in self._topology.subtopologies for each in sub.stores]
        return not own or any(
            each.partition_time_ms != NO_TIME
            or any((each.position_of_store(name) or 0) > 0 for name in stores)
            for each in own
        )

    def _list_partitions(self, topics: Collection[str]) -> list[Partition]:
        """Return all partitions of topics.

        Raises OutcomeUnknown for one that brokers don't list: some hear late of a new topic.
        """
        counts = self._admin.fetch_partition_counts()
        if missing := sorted(set(topics) - counts.keys()):
            raise OutcomeUnknown(f"find the partitions of {', '.join(missing)}: no broker has them")
        return [Partition(topic, n) for topic in sorted(topics) for n in range(counts[topic])]

    def _classify_unexplained_inputs(
        self,
        untrusted: _UntrustedInputs,
        group: _GroupOffsets,
        committed: Mapping[Partition, OffsetAndMetadata],
    ) -> _UndecidedInputs:
        """Add unexplained inputs that are lost to `untrusted`, and return the undecided ones."""
        left = []
        for partition in untrusted.unexplained:
            if not group.has_topic(partition.topic):
                left.append(partition)
            elif partition in committed and group.rules_out_preset_offsets:
                untrusted.lost.append(partition)
        if group.is_pending:
            return left
        if left and self._topology.patterns and self._fetch_committed(None).offsets:
            # Offsets of others are there: the topic is new, or was deleted and made again.
            left = [p for p in left if not self._matches_pattern(p.topic)]
        if left and not group.by_partition:
            group = self._fetch_offsets_of_unread_topics()
        untrusted.lost += [p for p in left if group.had_offsets_of(p.topic)]
        return []

    def _refuse_lost(
        self,
        subtopology_number: int,
        lost: Collection[Partition],
        committed: Mapping[Partition, OffsetAndMetadata],
    ) -> None:
        """Raise PositionRefused if the offset of an input is lost, with the ways out."""
        if not lost:
            return
        application_id = self._topology.application_id
        foreign = {p: committed[p].offset for p in lost if p in committed}
        if foreign:
            problem = describe_foreign_offsets(application_id, foreign)
            ways_out = explain_untrusted_offsets()
        else:
            left = find_remaining_offsets(lost, self._fetch_committed(None).offsets)
            problem = describe_missing_offsets(application_id, lost, left)
            ways_out = suggest_ways_out(lost, self._topology.repartition_topics, left)
        topics = ", ".join(sorted(self._topics_before_stores[subtopology_number]))
        raise PositionRefused(
            f"{problem}, though records that were made of the input's went through {topics} into a "
            "store: read from elsewhere, the input's records would count twice or be left out. "
            f"{ways_out}"
        )

    def _fetch_group_offsets(self, subtopology_number: int) -> _GroupOffsets:
        """Fetch the offsets that explain why inputs of a sub-topology have none."""
        topology = resolve_topology(self._topology, self._admin.fetch_partition_counts())
        sources = topology.subtopologies[subtopology_number].sources
        # All of a group's offsets would not name those whose first commit is under way.
        held = self._fetch_committed(self._list_partitions(sources))
        own = _select_offsets_of_members(held.offsets)
        return _GroupOffsets(own, bool(held.pending), len(own) < len(held.offsets))

    def _fetch_offsets_of_unread_topics(self) -> _GroupOffsets:
        """Fetch the offsets of topics that the application does not read any more."""
        read = set(self._topology.source_topics)
        everything = self._fetch_committed(None).offsets
        former = {
            p: each
            for p, each in everything.items()
            if p.topic not in read and not self._matches_pattern(p.topic)
        }
        return _GroupOffsets(_select_offsets_of_members(former), is_pending=False)

    def _matches_pattern(self, topic: str) -> bool:
        return any(pattern.matches_topic(topic) for pattern in self._topology.patterns)


def _find_number(task_name: str) -> int:
    """Return the number of a task's sub-topology."""
    return int(task_name.partition("_")[0])


def _select_offsets_of_members(
    committed: Mapping[Partition, OffsetAndMetadata],
) -> dict[Partition, OffsetMetadata]:
    """Return the metadata of the offsets that no tool has set."""
    return {
        p: decode_metadata(held.metadata)
        for p, held in committed.items()
        if is_streams_metadata(held.metadata)
    }
