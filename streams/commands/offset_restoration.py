"""Plan which offsets `millrace group restore-offsets` commits, and what proves each.

All inputs of all tasks are looked at, those of tasks without stores too: what they read again they
write again, into repartition topics on which other tasks' state rests. Where an input gets an
offset, all offsets of its task get new metadata (`restored_metadata`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from streams.app import App
from streams.commands.cluster_clients import ClusterClients
from streams.commands.offset_evidence import (
    LedgerOffsets,
    LedgerProver,
    TaskInputs,
    describe_first_committed_record,
    read_ledger,
)
from streams.commands.output import print_message
from streams.commands.restorable_tasks import list_restorable_tasks
from streams.commands.restored_metadata import RestoredTask
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import ConfigError
from streams.runtime.offsets.offset_metadata import (
    METADATA_BYTES_MAX,
    OffsetMetadata,
    decode_metadata,
    has_changelog_positions,
    is_streams_metadata,
)
from streams.runtime.offsets.offset_refusals import (
    explain_accepted_loss,
    explain_unproven_offsets,
    suggest_reset,
)
from streams.runtime.offsets.topic_ids import fetch_topic_id_hashes, find_offsets_of_former_topics
from streams.runtime.tasks.offset_proof import is_offset_lost
from streams.settings.offset_reset import STOP_WORDS
from streams.topology.resolve import resolve_topology


@dataclass(frozen=True, slots=True)
class RestoredOffset:
    """Describes one input: its offset now, the one that is to be committed, and what proves it.

    `then` is None where nothing proves one. `is_proven`: the ledger or the application's own commit
    does, and not a person alone.
    """

    partition: Partition
    now: int | None
    then: int | None
    proof: str
    metadata: str = ""
    is_proven: bool = False


class Restoration:
    """Plans the offsets of one application; `made_again` are the inputs that a person names.

    `committed` are all stable offsets of the group."""

    def __init__(
        self,
        clients: ClusterClients,
        app: App,
        committed: CommittedOffsets,
        *,
        accept: bool,
        made_again: Collection[str],
    ) -> None:
        if committed.pending:
            raise ConfigError(
                f"a transaction is still open on {committed.pending[0]}: try again later"
            )
        self._clients = clients
        self._app = app
        self._topology = resolve_topology(app.topology(), clients.partition_counts)
        self._committed = committed.offsets
        self._accept = accept
        self._made_again = set(made_again)
        self._inputs = {topic for sub in self._topology.subtopologies for topic in sub.sources}
        if unknown := sorted(self._made_again - self._inputs):
            raise ConfigError(
                f"--made-again {unknown[0]!r}: the application reads "
                f"{', '.join(sorted(self._inputs))}, and no such topic"
            )

    def plan_offsets(self) -> Iterator[RestoredOffset]:
        """Yield the inputs of each task of which one has no offset that accounts for its state."""
        for task in self._tasks:
            found = [each for p in task.partitions if (each := self._plan_input(task, p))]
            if found:
                yield from self._add_offset_metadata(task, {each.partition: each for each in found})

    def require_offsets(self, plan: Collection[RestoredOffset]) -> None:
        """Raise ConfigError if neither stores nor ledger tell the offset of an input."""
        if unproven := [each.partition for each in plan if each.then is None]:
            kept = {p.topic for p in unproven if not self._may_have_been_recreated(p)}
            between, is_empty = self._topology.repartition_topics, not self._committed
            raise ConfigError(explain_unproven_offsets(unproven, between, kept, is_empty=is_empty))

    def require_accepted_loss(
        self, plan: Collection[RestoredOffset], *, is_accepted: bool, is_shown: bool
    ) -> None:
        """Raise ConfigError for offsets of repartition topics that nothing proves, unless accepted.

        `is_shown`: nothing is to be committed, and the loss is only told.
        """
        between = self._topology.repartition_topics
        at_risk = {
            each.partition.topic
            for each in plan
            if each.partition.topic in between and not each.is_proven
        }
        if not at_risk:
            return
        problem = explain_accepted_loss(at_risk)
        if not is_accepted and not is_shown:
            raise ConfigError(
                f"{problem}. Nothing was committed; if it is meant, add --accept-loss"
            )
        print_message(problem)

    @cached_property
    def _tasks(self) -> list[TaskInputs]:
        return list(list_restorable_tasks(self._topology, self._clients.partition_counts))

    @cached_property
    def _ledger(self) -> LedgerOffsets:
        return read_ledger(self._clients, self._app.application_id)

    @cached_property
    def _prover(self) -> LedgerProver:
        return LedgerProver(self._clients, self._topology, self._ledger, self._topic_ids)

    @cached_property
    def _topic_ids(self) -> Mapping[str, int]:
        """Return the hash of the id of each input and changelog that exists."""
        changelogs = {each.topic for task in self._tasks for each in task.changelogs.values()}
        there = (self._inputs | changelogs) & self._clients.partition_counts.keys()
        return fetch_topic_id_hashes(self._clients.admin, there)

    @cached_property
    def _end_offsets(self) -> Mapping[Partition, int]:
        """Return the end offset of each input partition and changelog."""
        inputs = {p for task in self._tasks for p in task.partitions}
        changelogs = {p for task in self._tasks for p in task.changelogs.values()}
        return self._clients.admin.fetch_latest_offsets(sorted(inputs | changelogs))

    @cached_property
    def _metadata_bytes_max(self) -> int:
        return self._clients.admin.fetch_strictest_broker_limit_or_default(
            "offset.metadata.max.bytes", METADATA_BYTES_MAX
        )

    @cached_property
    def _has_application_begun(self) -> bool:
        """Return whether something is there that the application has read or written."""
        inputs = {p for task in self._tasks for p in task.partitions}
        texts = [self._committed[p].metadata for p in inputs if p in self._committed]
        if not all(decode_metadata(t).is_reset for t in texts if is_streams_metadata(t)):
            return True
        own = {p for p in inputs if p.topic in self._topology.repartition_topics}
        own |= {p for task in self._tasks for p in task.changelogs.values()}
        return self._ledger.transaction_count > 0 or any(self._end_offsets[p] > 0 for p in own)

    @cached_property
    def _inputs_with_former_offsets(self) -> set[Partition]:
        """Return the inputs whose committed offset is of a former topic, and refused for that."""
        found = find_offsets_of_former_topics(self._committed, self._topic_ids)
        return {p for p in found if self._is_refused_after_recreation(p)}

    def _is_refused_after_recreation(self, partition: Partition) -> bool:
        """Return whether a start would refuse this input if its topic was recreated."""
        stops = self._app.config.offset_out_of_range == STOP_WORDS["offset_out_of_range"]
        return stops or partition.topic in self._topology.repartition_topics

    def _add_offset_metadata(
        self, task: TaskInputs, proven: Mapping[Partition, RestoredOffset]
    ) -> Iterator[RestoredOffset]:
        """Yield the offsets of a task with their metadata, also those that stay as they are."""
        held = {p: self._committed[p] for p in task.partitions if p in self._committed}
        own = {p: decode_metadata(each.metadata) for p, each in held.items()}
        decided = {p.topic for p, each in proven.items() if each.then is not None}
        numbers = [self._ledger.commit_numbers.get(p) for p, each in proven.items() if each.then]
        restored = RestoredTask(
            task.subtopology,
            positions={store: self._end_offsets[each] for store, each in task.changelogs.items()},
            known=[own[p] for p, each in held.items() if has_changelog_positions(each.metadata)],
            inputs={p.topic for p in held} | decided,
            decided=decided,
            topic_ids=self._topic_ids,
            changelog_ids={
                store: self._topic_ids[each.topic]
                for store, each in task.changelogs.items()
                if each.topic in self._topic_ids
            },
            bytes_max=self._metadata_bytes_max,
            is_at_least_once=not self._app.config.exactly_once,
            commit_number=max((each for each in numbers if each is not None), default=None),
        )
        for partition in task.partitions:
            text = restored.encode_offset(partition, own.get(partition, OffsetMetadata()))
            if partition in proven:
                each = proven[partition]
                yield RestoredOffset(
                    partition, each.now, each.then, each.proof, text, each.is_proven
                )
            elif partition in held:
                offset = held[partition].offset
                yield RestoredOffset(
                    partition, offset, offset, "stays, beside the task's others", text, True
                )

    def _plan_input(self, task: TaskInputs, partition: Partition) -> RestoredOffset | None:
        """Return the offset of an input as it is proven or accepted; None where it is in order."""
        if partition.topic in self._made_again:
            return self._restore_from_beginning(partition)
        held = self._committed.get(partition)
        reason = self._explain_why_offset_is_wrong(task, partition, held)
        if reason is None:
            return None
        now = None if held is None else held.offset
        if self._accept and held is not None and partition not in self._inputs_with_former_offsets:
            return RestoredOffset(partition, now, now, f"accepted: {reason}")
        then, proof = self._prover.prove_offset(task, partition)
        if then is None and held is None:
            if self._prover.is_proven_unread(partition):
                return None
            if self._end_offsets[partition] == 0 and self._may_begin_empty(task, partition):
                is_input = partition.topic not in self._topology.repartition_topics
                return RestoredOffset(partition, now, 0, "no offset; no record", is_proven=is_input)
        return RestoredOffset(
            partition, now, then, f"{reason}; {proof}", is_proven=then is not None
        )

    def _restore_from_beginning(self, partition: Partition) -> RestoredOffset:
        """Return the beginning of an input, if a person says that it was recreated.

        Raises ConfigError where its committed offset, or the ledger, names the topic that is there.
        """
        topic, held = partition.topic, self._committed.get(partition)
        named = self._find_recorded_topic_id(partition)
        if named is not None and named == self._topic_ids.get(topic):
            source = "its committed offset" if held else "another offset, or the ledger,"
            raise ConfigError(
                f"--made-again {topic!r}: {source} names the topic that is there now, so "
                f"{partition} is the one that was read"
            )
        return RestoredOffset(
            partition,
            None if held is None else held.offset,
            self._clients.admin.fetch_earliest_offsets([partition])[partition],
            "accepted: the topic was made again" + ("" if named is None else ", as its id says"),
        )

    def _may_begin_empty(self, task: TaskInputs, partition: Partition) -> bool:
        """Return whether an input without a record begins at its first one.

        Not if it was made again as its id says, or as the records show that were made of its own.
        """
        named, now = self._find_recorded_topic_id(partition), self._topic_ids.get(partition.topic)
        if None not in (named, now) and named != now:
            return False
        return not task.changelogs or partition.topic not in self._topology.repartition_topics

    def _find_recorded_topic_id(self, partition: Partition) -> int | None:
        """Return the id of an input's topic by the offsets of its task, or else by the ledger."""
        beside = (p for p in self._committed if p.number == partition.number)
        for each in sorted(beside, key=lambda p: p != partition):  # its own offset first
            named = decode_metadata(self._committed[each].metadata).topic_id_hash(partition.topic)
            if named is not None:
                return named
        return self._ledger.topic_ids.get(partition)

    def _may_have_been_recreated(self, partition: Partition) -> bool:
        """Return whether an input may be another topic than the one that was read before.

        Brokers delete all offsets of a topic with it.
        """
        named, now = self._find_recorded_topic_id(partition), self._topic_ids.get(partition.topic)
        if None not in (named, now):
            return named != now
        return not any(
            p.topic == partition.topic and is_streams_metadata(held.metadata)
            for p, held in self._committed.items()
        )

    def _explain_why_offset_is_wrong(
        self, task: TaskInputs, partition: Partition, committed_offset: OffsetAndMetadata | None
    ) -> str | None:
        """Return why the offset of an input does not account for what was done with it.

        None if it does. Raises ConfigError for an offset that a reset has marked.
        """
        if committed_offset is None:
            return self._explain_why_offset_is_needed(task, partition)
        metadata = decode_metadata(committed_offset.metadata)
        if metadata.is_reset_begun:
            raise ConfigError(
                f"a reset was begun, and not ended (task {task.name}): run it again, "
                f"{suggest_reset()}"
            )
        if partition in self._inputs_with_former_offsets:
            return "of another topic of the same name, which was deleted and created again"
        is_own = is_streams_metadata(committed_offset.metadata)
        if not task.changelogs:
            return None if is_own or not self._may_have_derived_state(task) else "set by a tool"
        # At least once a changelog may be ahead, so positions are not compared.
        if is_own and (not self._app.config.exactly_once or metadata.is_at_least_once):
            return None
        later = self._find_unaccounted_record(task, metadata, is_own=is_own)
        if later is None:
            return None
        return f"older than {later}" if is_own else "set by a tool"

    def _explain_why_offset_is_needed(self, task: TaskInputs, partition: Partition) -> str | None:
        """Return why an input has to have an offset; None if it begins as it should without one.

        That is so if it was added since, or has no record, or the application was never started.
        """
        known = self._list_known_metadata(task)
        if not is_offset_lost(partition.topic, known):
            return None
        now = self._topic_ids.get(partition.topic)
        told = {each.topic_id_hash(partition.topic) for each in known} - {None}
        if told and now is not None and now not in told:
            if not self._is_refused_after_recreation(partition):
                return None  # a start begins where `offset_out_of_range` says
            return "of another topic of the same name, which was deleted and created again"
        if self._ledger.offsets.get(partition) is not None:
            return "no offset"
        if not self._has_application_begun or self._was_partition_added_later(partition):
            return None
        if task.changelogs:
            if known:
                return "no offset"
            later = self._find_unaccounted_record(task, OffsetMetadata(), is_own=False)
            return None if later is None else "no offset"
        return None if self._is_proven_unread(partition) else "no offset"

    def _is_proven_unread(self, partition: Partition) -> bool:
        """Return whether an input of a task without changelogs was never read, by other offsets.

        A start judges so too (`streams.runtime.offsets.repeated_writes`): the application has
        committed other partitions of the topic, or topics that it does not read any more and whose
        place this one takes.
        """
        own = {p: h for p, h in self._committed.items() if is_streams_metadata(h.metadata)}
        if any(p.topic == partition.topic for p in own):
            return True
        former = [
            decode_metadata(h.metadata) for p, h in own.items() if p.topic not in self._inputs
        ]
        return bool(former) and not any(each.was_committed_with(partition.topic) for each in former)

    def _was_partition_added_later(self, partition: Partition) -> bool:
        """Return whether offsets of the topic say that it did not have this partition at first."""
        starts = [
            first.partition_count
            for p, held in self._committed.items()
            if p.topic == partition.topic and (first := decode_metadata(held.metadata).first_start)
        ]
        return bool(starts) and partition.number >= min(starts)

    def _list_known_metadata(self, task: TaskInputs) -> Sequence[OffsetMetadata]:
        """Decode the metadata of a task's committed offsets that the application itself wrote."""
        held = [self._committed[p] for p in task.partitions if p in self._committed]
        return [decode_metadata(h.metadata) for h in held if has_changelog_positions(h.metadata)]

    def _may_have_derived_state(self, task: TaskInputs) -> bool:
        """Return whether the state of this or a later task may rest on records it has read.

        It has stores itself, or writes a repartition topic. Other tasks take any offset.
        """
        return self._has_application_begun and (
            task.has_stores or any(sink.internal for sink in task.subtopology.sinks)
        )

    def _find_unaccounted_record(
        self, task: TaskInputs, metadata: OffsetMetadata, *, is_own: bool
    ) -> str | None:
        """Return a committed record of a task's changelogs that an offset does not account for."""
        starts: dict[Partition, int] = {}
        for store, changelog in task.changelogs.items():
            position = metadata.position_of_store(store)
            if is_own and position is None:
                continue  # of Kafka Streams, or of a version without the store
            starts[changelog] = position or 0
        # Only what has expired is deleted from a changelog, after a commit that says so.
        for changelog, first in self._clients.admin.fetch_earliest_offsets(list(starts)).items():
            if first > starts[changelog]:
                return f"the records of {changelog} below {first}, which have expired"
        return describe_first_committed_record(self._clients, starts)
