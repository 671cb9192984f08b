"""Describe a topology as plain data, without its functions, to be rendered and compared.

It has what Kafka Streams' TopologyDescription has, and beside it what decides what becomes of
state: how each store is kept, where it is restored from, and what the repartition topics are.
Written as JSON it can be read back by a later version, which then knows what the earlier one was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import PlainSerializer, TypeAdapter, ValidationError

from streams.command_lines import format_command
from streams.errors import ConfigError
from streams.graph.global_store_spec import find_topic_serdes
from streams.graph.nodes import (
    GlobalTableSpec,
    Node,
    ProcessorNode,
    SinkNode,
    SourceNode,
    StoreSpec,
)
from streams.serdes.described_types import DescribedType, type_to_plain
from streams.settings.timestamp_extractors import TimestampPolicy
from streams.topology.build import Subtopology, Topology

FORMAT = 1
"""The version of the JSON. A change that an earlier reader would misunderstand adds one."""

PlainType = Annotated[DescribedType | None, PlainSerializer(type_to_plain)]
"""The type of messages, where a serde declares one, without its defaults in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedStep:
    """Describes one step, with those directly before and behind it.

    A source or a sink has a topic with its serdes; `chosen` names the function that chooses a
    sink's topic for each record. Those of internal topics have the types of their messages, too, so
    far as the serdes declare them. `operator` is Kafka Streams' word for what a processor does,
    whatever its name.
    """

    kind: Literal["source", "processor", "sink"]
    name: str
    predecessors: tuple[str, ...] = ()
    successors: tuple[str, ...] = ()
    operator: str | None = None
    stores: tuple[str, ...] = ()
    topic: str | None = None
    chosen: str | None = None
    internal: bool = False
    key: str | None = None
    value: str | None = None
    key_type: PlainType = None
    value_type: PlainType = None
    timestamp_extractor: str | None = None
    """Of a source: the policy, or the name of the function, that says the time of its records."""
    offset_reset: str | None = None
    """Of a source: its own policy for partitions without a committed offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedStore:
    """Describes a store and how it is kept; times in ms.

    `changelog` is the topic that it is restored from, if any; it may be the store's source.
    """

    name: str
    kind: str
    key: str
    value: str
    persistent: bool
    logged: bool
    caching: bool
    changelog: str | None = None
    source_is_changelog: bool = False
    topic_settings: dict[str, str] = field(default_factory=dict)
    retention_ms: int | None = None
    window_size_ms: int | None = None
    segment_ms: int | None = None
    retain_duplicates: bool = False
    history_ms: int | None = None
    ttl_ms: int | None = None
    key_type: PlainType = None
    value_type: PlainType = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedSubtopology:
    """Describes steps that run in one task; one that fills a global store makes no tasks."""

    number: int
    steps: tuple[DescribedStep, ...]
    stores: tuple[DescribedStore, ...] = ()
    is_global: bool = False

    @property
    def sources(self) -> list[str]:
        """Return the topics that are read."""
        return [step.topic for step in self.steps if step.kind == "source" and step.topic]

    @property
    def internal_sinks(self) -> list[str]:
        """Return the repartition topics that are written."""
        sinks = [step for step in self.steps if step.kind == "sink" and step.internal]
        return [step.topic for step in sinks if step.topic]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepartitionTopic:
    """Describes a repartition topic.

    `partitions`: as declared; None where they follow from what is upstream.
    """

    name: str
    partitions: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentSettings:
    """Holds what an application's settings add to the topology that its streams group is told.

    `topics` has the settings of each internal topic, `replication_factor` is theirs; -1 is the
    brokers' default.
    """

    topics: dict[str, dict[str, str]]
    replication_factor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyDescription:
    """Describes a whole topology.

    `partitions`: the input topics' counts, so far as they were known when it was saved.
    `copartitioned`: groups of topics that have equal counts. `sent_settings`: None where only the
    topology is known, and not the application's settings.
    """

    format: int = FORMAT
    application_id: str
    input_topics: tuple[str, ...]
    repartition_topics: tuple[RepartitionTopic, ...]
    subtopologies: tuple[DescribedSubtopology, ...]
    copartitioned: tuple[tuple[str, ...], ...] = ()
    partitions: dict[str, int] = field(default_factory=dict)
    sent_settings: SentSettings | None = None

    @property
    def topics(self) -> list[str]:
        """Return all topics that are read or written, sorted."""
        steps = [step for sub in self.subtopologies for step in sub.steps]
        return sorted({step.topic for step in steps if step.topic})


_DESCRIPTION_ADAPTER = TypeAdapter(TopologyDescription)


@dataclass(frozen=True, slots=True)
class _Format:
    """Reads the format number of a description, and skips the rest."""

    format: int


_FORMAT_ADAPTER = TypeAdapter(_Format)


def describe_topology(topology: Topology) -> TopologyDescription:
    """Describe a topology as plain data."""
    sinks = [sink for sub in topology.subtopologies for sink in sub.sinks]
    declared = {sink.topic_name: sink.partitions for sink in sinks if sink.internal}
    return TopologyDescription(
        application_id=topology.application_id,
        input_topics=topology.input_topics,
        repartition_topics=tuple(
            RepartitionTopic(name=topic, partitions=declared[topic]) for topic in sorted(declared)
        ),
        subtopologies=(
            *(_describe_subtopology(sub, topology) for sub in topology.subtopologies),
            *(
                _describe_global_table(number, table, topology)
                for number, table in enumerate(topology.global_tables, len(topology.subtopologies))
            ),
        ),
        copartitioned=tuple(tuple(sorted(group)) for group in topology.copartitioned),
    )


def _describe_global_table(
    number: int, table: GlobalTableSpec, topology: Topology
) -> DescribedSubtopology:
    """Describe a global table as Kafka Streams does: a source, and a processor that fills it."""
    spec, source = table.store, f"{table.name}-source"
    key, value = find_topic_serdes(table)
    steps = (
        DescribedStep(
            kind="source",
            name=source,
            successors=(table.name,),
            topic=table.topic,
            key=key.name,
            value=value.name,
        ),
        DescribedStep(
            kind="processor", name=table.name, predecessors=(source,), stores=(spec.name,)
        ),
    )
    store = replace(
        _describe_store(replace(spec, logged=False), topology),
        changelog=table.topic,
        source_is_changelog=True,
    )
    return DescribedSubtopology(number=number, steps=steps, stores=(store,), is_global=True)


def _describe_subtopology(sub: Subtopology, topology: Topology) -> DescribedSubtopology:
    """Describe a sub-topology."""
    return DescribedSubtopology(
        number=sub.number,
        steps=tuple(_describe_steps(sub)),
        stores=tuple(_describe_store(spec, topology) for spec in sub.stores),
    )


def _describe_steps(sub: Subtopology) -> Iterator[DescribedStep]:
    """Yield the descriptions of a sub-topology's steps."""
    after: dict[Node, list[str]] = {node: [] for node in sub.nodes}
    for node in sub.nodes:
        for parent in node.parents:
            after[parent].append(node.name)
    for node in sub.nodes:
        predecessors = tuple(parent.name for parent in node.parents)
        match node:
            case SourceNode() | SinkNode():
                topic = node.topic if isinstance(node.topic, str) else None
                yield DescribedStep(
                    kind="source" if isinstance(node, SourceNode) else "sink",
                    name=node.name,
                    predecessors=predecessors,
                    successors=tuple(after[node]),
                    topic=topic,
                    chosen=node.topic_name if isinstance(node, SinkNode) and not topic else None,
                    internal=node.internal,
                    key=node.key.name,
                    value=node.value.name,
                    key_type=node.key.message_type if node.internal else None,
                    value_type=node.value.message_type if node.internal else None,
                    timestamp_extractor=_describe_extractor(node),
                    offset_reset=_describe_offset_reset(node),
                )
            case ProcessorNode():
                yield DescribedStep(
                    kind="processor",
                    name=node.name,
                    predecessors=predecessors,
                    successors=tuple(after[node]),
                    operator=node.kind or None,
                    stores=tuple(node.stores),
                )
            case _:
                raise AssertionError(f"a step of an unknown kind: {node}")


def _describe_extractor(node: Node) -> str | None:
    """Return the policy or the function that says the time of a source's records, by name."""
    extractor = node.timestamp_extractor if isinstance(node, SourceNode) else None
    if callable(extractor):
        return str(getattr(extractor, "__qualname__", type(extractor).__name__))
    is_default = extractor in (None, TimestampPolicy.FAIL_ON_INVALID_TIMESTAMP)
    return None if is_default else str(extractor)


def _describe_offset_reset(node: Node) -> str | None:
    """Return a source's own offset reset policy; None if it has none."""
    policy = node.offset_reset if isinstance(node, SourceNode) else None
    return None if policy is None else policy.strategy.value


def _describe_store(spec: StoreSpec, topology: Topology) -> DescribedStore:
    """Describe a store."""
    return DescribedStore(
        name=spec.name,
        kind=str(spec.kind),
        key=spec.key.name,
        value=spec.value.name,
        persistent=spec.persistent,
        logged=spec.logged,
        caching=spec.caching,
        changelog=topology.restore_topic_of(spec.name) if spec.logged else None,
        source_is_changelog=spec.source_topic is not None,
        topic_settings=dict(spec.topic_settings),
        retention_ms=spec.retention_ms,
        window_size_ms=spec.window_size_ms,
        segment_ms=spec.segment_ms,
        retain_duplicates=spec.retain_duplicates,
        history_ms=spec.history_ms,
        ttl_ms=spec.ttl_ms,
        key_type=spec.key.message_type,
        value_type=spec.value.message_type,
    )


def description_to_json(description: TopologyDescription) -> str:
    """Encode a description as JSON, which `description_from_json` reads."""
    return _DESCRIPTION_ADAPTER.dump_json(description, indent=2, exclude_none=True).decode()


def description_from_json(text: str | bytes, name: str) -> TopologyDescription:
    """Decode the JSON of a topology's description, as `description_to_json` writes it.

    Raises ConfigError, which calls it `name`, if it is something else or of a format that this
    version does not know.
    """
    try:
        saved = _FORMAT_ADAPTER.validate_json(text).format
        if saved > FORMAT:
            raise ConfigError(
                f"{name} has format {saved}, and this version of millrace reads {FORMAT}: use the "
                "version that saved it, or a later one"
            )
        return _DESCRIPTION_ADAPTER.validate_json(text)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "the whole"
        raise ConfigError(
            f"{name} is no description of a topology ({where}: {error.errors()[0]['msg']}): save "
            f"one with {format_command('plan', '--save', 'FILE')}"
        ) from None
