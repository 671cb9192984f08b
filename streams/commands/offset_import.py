"""Plan how the offsets of a Kafka Streams application become those of Millrace, task by task.

Each input goes on at exactly the offset that Kafka Streams has committed. Beside it the metadata
name where the changelogs end, on which the state rests: from then on a start judges these offsets
as its own. What could not go on as it was is refused before anything is committed:

    what is looked at               what is refused
    the committed offsets           one that Kafka Streams has not written, or of another input
    the internal topics             other names, or other numbers of partitions (`imported_topics`)
    the stores of this application  a layout that is Millrace's own, if Kafka Streams has filled it
    the records of changelogs       a store that lacks some, unless `changelog_out_of_range` lets it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from streams.app import App
from streams.commands.cluster_clients import ClusterClients
from streams.commands.imported_topics import advise_internal_names, check_imported_topics
from streams.commands.offset_evidence import TaskInputs, describe_first_committed_record
from streams.commands.offset_positions import current_time_ms
from streams.commands.plan_changelogs import find_unrestorable_stores
from streams.commands.restorable_tasks import list_restorable_tasks
from streams.commands.restored_metadata import RestoredTask
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import ConfigError
from streams.graph.nodes import Node, ProcessorNode, StoreKind, StoreSpec
from streams.runtime.offsets.kafka_streams_metadata import (
    KafkaStreamsMetadata,
    decode_kafka_streams_metadata,
)
from streams.runtime.offsets.offset_metadata import (
    METADATA_BYTES_MAX,
    OffsetMetadata,
    decode_metadata,
    encode_metadata,
    has_changelog_positions,
)
from streams.runtime.offsets.topic_ids import fetch_topic_id_hashes
from streams.topology.build import Subtopology
from streams.topology.resolve import resolve_topology
from streams.topology.rules import AggregationRule
from streams.windows import TimeWindows

_SAME_LAYOUTS = frozenset(set(StoreKind) - {StoreKind.BUFFER, StoreKind.VERSIONED})


@dataclass(frozen=True, slots=True)
class ImportedOffset:
    """Describes one input: the offset that is committed, which stays, and its new metadata."""

    task: str
    partition: Partition
    offset: int
    metadata: str


class OffsetImport:
    """Plans the offsets of one application, which has the id of the one with Kafka Streams.

    `committed` are all committed offsets of the group, stable ones.
    """

    def __init__(self, clients: ClusterClients, app: App, committed: CommittedOffsets) -> None:
        if committed.pending:
            raise ConfigError(
                f"a transaction is still open on {committed.pending[0]}: try again later"
            )
        self._clients = clients
        self._app = app
        self._topology = resolve_topology(app.topology(), clients.partition_counts)
        self._committed = committed.offsets
        self.accepted_losses: tuple[str, ...] = ()
        """The losses of stores that `changelog_out_of_range` accepts, a line each."""

    def plan_offsets(self) -> list[ImportedOffset]:
        """Return the offsets of all inputs with their new metadata.

        Raises ConfigError for what can't go on as it was. There are none if all are Millrace's own.
        """
        if not self._committed:
            raise ConfigError(
                f"group {self._app.application_id!r} has no committed offset: is it the id of the "
                "application with Kafka Streams?"
            )
        if all(has_changelog_positions(held.metadata) for held in self._committed.values()):
            return []
        self._require_written_by_kafka_streams()
        self._refuse_offsets_of_other_inputs()
        counts, groups = self._clients.partition_counts, self._clients.admin.list_groups()
        check_imported_topics(self._topology, counts, groups)
        self._refuse_inputs_without_offset()
        self._refuse_other_changelog_layouts()
        plan = [each for task in self._tasks for each in self._plan_task(task)]
        self._refuse_lost_changelog_records(plan)
        return plan

    @cached_property
    def _tasks(self) -> list[TaskInputs]:
        return list(list_restorable_tasks(self._topology, self._clients.partition_counts))

    @cached_property
    def _specs(self) -> dict[str, StoreSpec]:
        return {spec.name: spec for sub in self._topology.subtopologies for spec in sub.stores}

    @cached_property
    def _topic_ids(self) -> Mapping[str, int]:
        topics = {topic for sub in self._topology.subtopologies for topic in sub.sources}
        topics |= {each.topic for task in self._tasks for each in task.changelogs.values()}
        return fetch_topic_id_hashes(self._clients.admin, topics)

    def _require_written_by_kafka_streams(self) -> None:
        """Raise ConfigError for offsets that another program has set."""
        foreign = sorted(
            partition
            for partition, held in self._committed.items()
            if decode_kafka_streams_metadata(held.metadata) is None
            and not has_changelog_positions(held.metadata)
        )
        if foreign:
            raise ConfigError(
                f"the offset of {foreign[0]} was not committed by Kafka Streams: a tool has set "
                "it, or a plain consumer has this group. State may not rest on it, so nothing is "
                "imported. Start and stop the application with Kafka Streams once, or delete the "
                "offset if nothing reads the topic"
            )

    def _refuse_offsets_of_other_inputs(self) -> None:
        """Raise ConfigError for inputs that this application does not read."""
        mine = {topic for sub in self._topology.subtopologies for topic in sub.sources}
        theirs = {partition.topic for partition in self._committed}
        if others := sorted(theirs - mine):
            names = advise_internal_names(self._topology, self._clients.partition_counts)
            raise ConfigError(
                f"Kafka Streams has committed offsets of {', '.join(map(repr, others))}, which "
                f"this application does not read (it reads {', '.join(sorted(mine))}). Give its "
                "steps the names that they have in Java: name= of group_by and of repartition "
                f"names a repartition topic{names}"
            )

    def _refuse_inputs_without_offset(self) -> None:
        """Raise ConfigError for inputs with records that Kafka Streams did not read."""
        ends = self._clients.admin.fetch_latest_offsets(
            [p for task in self._tasks for p in task.partitions if p not in self._committed]
        )
        if lost := sorted(partition for partition, end in ends.items() if end):
            raise ConfigError(
                f"Kafka Streams has committed no offset of {lost[0]}, which has records: it did "
                "not read that topic, or has not come to it. Where it did not, begin with it after "
                "the import"
            )

    def _refuse_other_changelog_layouts(self) -> None:
        """Raise ConfigError for a store that has records of another layout in its changelog."""
        for task in self._tasks:
            for store, changelog in task.changelogs.items():
                reason = _explain_unreadable_layout(self._specs[store], task.subtopology)
                if reason and describe_first_committed_record(self._clients, {changelog: 0}):
                    raise ConfigError(
                        f"store {store!r} can't be taken over, as {reason}, and {changelog} has "
                        "records. Let it run empty (no records for as long as it keeps them), or "
                        "start the application under another id"
                    )

    def _refuse_lost_changelog_records(self, plan: Iterable[ImportedOffset]) -> None:
        """Raise ConfigError for stores that a start could not restore as they were.

        It is found as a start would find it, by the offsets that are to be committed.
        """
        held = {each.partition: OffsetAndMetadata(each.offset, each.metadata) for each in plan}
        config = self._app.config
        review = find_unrestorable_stores(
            self._topology,
            config.model_copy(update={"changelog_out_of_range": "earliest"}),
            self._clients.admin,
            lambda: CommittedOffsets(held, []),
            self._clients.partition_counts,
            current_time_ms(),
        )
        if review.unknown or review.refusals:
            # A refusal of a start advises a reset, which would delete what is to be taken over.
            changed = f"the changelogs of {', '.join(map(repr, review.refusals))} have changed"
            raise ConfigError(
                f"whether stores can be restored is not known: {review.unknown or changed}. "
                "Nothing was committed: try again"
            )
        self.accepted_losses = tuple(review.losses.values())
        if review.losses and not config.accepts_changelog_loss:
            windows = (
                " A window that was removed while it was open begins at nothing if more records "
                "come for it, and is not emitted when it closes."
                if any("with windows" in loss for loss in self.accepted_losses)
                else ""
            )
            raise ConfigError(
                f"{'. '.join(self.accepted_losses)}. Nothing was committed: a start would restore "
                "the store without them, as Kafka Streams does where it has no copy of it."
                f"{windows} If that is right, set changelog_out_of_range=earliest for this "
                "command (MILLRACE_CHANGELOG_OUT_OF_RANGE=earliest) and for the first start of "
                "the workers. Else start Kafka Streams where it has its state directory, let it "
                "process records of today, stop it, and import then"
            )

    def _plan_task(self, task: TaskInputs) -> Iterator[ImportedOffset]:
        """Yield the offsets to commit for a task's inputs, all with the same store metadata."""
        held = {p: self._committed[p] for p in task.partitions if p in self._committed}
        if not held:
            return
        decoded = {p: _decode_offset(each) for p, each in held.items()}
        topics = {p.topic for p in held}
        changelogs = task.changelogs
        ends = self._clients.admin.fetch_latest_offsets(list(changelogs.values()))
        limit = self._clients.admin.fetch_strictest_broker_limit_or_default(
            "offset.metadata.max.bytes", METADATA_BYTES_MAX
        )
        restored = RestoredTask(
            task.subtopology,
            positions={store: ends[each] for store, each in changelogs.items()},
            known=[build_metadata_of_emitted_windows(task.subtopology, decoded.values())],
            inputs=topics,
            decided=topics,
            topic_ids=self._topic_ids,
            changelog_ids={
                store: self._topic_ids[each.topic]
                for store, each in changelogs.items()
                if each.topic in self._topic_ids
            },
            bytes_max=limit,
            is_at_least_once=not self._app.config.exactly_once,
        )
        for partition, offset in held.items():
            own = OffsetMetadata(decoded[partition].partition_time_ms)
            text = restored.encode_offset(partition, own)
            yield ImportedOffset(task.name, partition, offset.offset, text)


def _decode_offset(committed_offset: OffsetAndMetadata) -> KafkaStreamsMetadata:
    """Decode the metadata of an offset, with no time for one that Millrace has committed."""
    return decode_kafka_streams_metadata(committed_offset.metadata) or KafkaStreamsMetadata(-1)


def build_metadata_of_emitted_windows(
    subtopology: Subtopology, offsets: Iterable[KafkaStreamsMetadata]
) -> OffsetMetadata:
    """Return metadata with the times of steps that emit windows when they close.

    Kafka Streams notes up to which end of a window such a step has emitted; here that follows from
    the time of the step. Other steps begin without one, as after a restart of Kafka Streams. Of the
    partitions of a task the greatest time counts (ProcessorMetadata.update).
    """
    figures: dict[str, int] = {}
    for each in offsets:
        for name, figure in each.figures.items():
            figures[name] = max(figure, figures.get(name, figure))
    times = {}
    for node in subtopology.nodes:
        rule = _find_rule_of_closed_windows(node)
        if rule is not None and isinstance(node, ProcessorNode):
            closed_ms = figures.get(node.stores[0])
            if closed_ms is not None and isinstance(rule.windows, TimeWindows):
                times[node.name] = closed_ms + rule.windows.grace_ms
    return decode_metadata(encode_metadata({}, step_times=times))


def _find_rule_of_closed_windows(node: Node) -> AggregationRule | None:
    """Return the rule of a step that emits its windows when they have closed; None for others."""
    rule = (node.rule or node.wrapped_rule) if isinstance(node, ProcessorNode) else None
    return rule if isinstance(rule, AggregationRule) and rule.on_close else None


def _explain_unreadable_layout(spec: StoreSpec, subtopology: Subtopology) -> str:
    """Return why Kafka Streams' changelog of a store can't be read here; empty if it can."""
    if spec.kind is StoreKind.VERSIONED:
        return "its changelog also has versions that came too late and were not kept"
    if spec.kind not in _SAME_LAYOUTS:
        return f"the layout of a {spec.kind} store is Millrace's own"
    for node in subtopology.nodes:
        rule = _find_rule_of_closed_windows(node)
        if rule is None or isinstance(rule.windows, TimeWindows):
            continue
        if isinstance(node, ProcessorNode) and spec.name in node.stores:
            return "which of its windows Kafka Streams has emitted can't be told"
    return ""
