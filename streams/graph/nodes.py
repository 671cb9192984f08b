"""Define the nodes of a topology, which describe each step before anything runs.

A node knows its name, the nodes before it, the names of its stores, and how to bind itself into a
task: given its `Binding` there, it returns the function that a record goes through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from streams.common.names import check_step_name
from streams.errors import TopologyError
from streams.graph.internal_context import InternalProcessorContext, StepStreamTime
from streams.graph.step_traits import UNKNOWN_STEP, StepTraits
from streams.serdes import Serde
from streams.settings.offset_reset import OffsetResetPolicy
from streams.settings.timestamp_extractors import TimestampExtractor, TimestampPolicy

ForwardRecord = Callable[[Any, Any, int], None]
"""Forwards a record: key, value, timestamp in ms."""

ForwardUpdate = Callable[[Any, Any, Any, int, bool], None]
"""Forwards a table's change: key, new value, old value, timestamp in ms, and whether it is the
latest of its key, which only a versioned table may deny. None means no value. The old value is None
too unless a later step has asked for old values (`TableView.enable_sending_old_values`). Receivers
may read the objects, not change them: other branches see them too."""


StepFailureHandler = Callable[[Exception, Any, Any], None]
"""Called by a step when a user's function has raised: error, key, value. It returns if the record
is to be skipped. A step guards the user's function and not the steps after it, which guard
themselves: so what one branch skips the others still get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Holds all that an operator needs to bind its step into a task."""

    step: str
    context: InternalProcessorContext
    downstream: Callable[..., None]
    """All that comes after the step: a ForwardRecord, or a ForwardUpdate if it makes a table."""
    children: Mapping[str, ForwardRecord]
    """The steps directly after it, by name."""
    reads_emitted_values: bool = False
    """Whether values of tables are looked up as they were emitted last (`views`): with caching a
    change that waits for the commit is not seen before it is emitted."""
    only_sinks_follow: bool
    """Whether the steps after it only read values and keep none."""
    skip_record_or_raise: StepFailureHandler
    shares_time_with: str | None = None
    """The step whose stream time it has, of several that close windows together."""

    @property
    def stream_time(self) -> StepStreamTime:
        """Return the stream time of the step."""
        return self.context.get_or_create_stream_time(self.shares_time_with or self.step)


Operator = Callable[[Binding], Callable[..., None]]
"""Binds a step into a task and returns the function that records go through: a ForwardRecord in a
stream, a ForwardUpdate in a table."""
TopicNameExtractor = Callable[[Any], str]
"""Record -> the topic that it is written to."""
Partitioner = Callable[[Any, Any, int], int | Iterable[int] | None]
"""Key, value, number of partitions -> the partition, or several (KIP-837), of which none drops the
record; None: the producer chooses it by key."""


class StoreKind(StrEnum):
    """Names the kinds of stores, which differ in what they can be asked."""

    KEY_VALUE = "key-value"
    WINDOW = "window"
    SESSION = "session"
    VERSIONED = "versioned"
    BUFFER = "buffer"
    """Records that wait for their time: for the steps that need it, not for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSpec:
    """Describes a store as the topology declares it: name, kind, serdes and how it is kept.

    Times are in ms.
    """

    name: str
    key: Serde[Any]
    value: Serde[Any]
    kind: StoreKind = StoreKind.KEY_VALUE
    persistent: bool = True
    caching: bool = True
    logged: bool = True
    source_topic: str | None = None
    """The topic that has the same rows and replaces the changelog."""
    topic_settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the changelog topic, over the defaults of the kind."""
    retention_ms: int | None = None
    """Window and session stores: how far behind stream time an entry is kept."""
    window_size_ms: int | None = None
    segment_ms: int | None = None
    """How much time of a window store one segment on disk covers; None: half of the retention."""
    is_ordered_by_time: bool = False
    """Whether a window or session store can be read in the order of time."""
    retain_duplicates: bool = False
    history_ms: int | None = None
    """Versioned stores: how far behind stream time can be asked for."""
    ttl_ms: int | None = None
    extract_time_ms: Callable[[bytes], int] | None = None
    """Returns the time in ms that a key of a buffer has in it."""
    rocksdb: Callable[[Any], object] | None = None
    """Called with rocksdict's Options of this store, to change them in place."""
    has_default_medium: bool = False
    """True if the application's `default_store` decides between disk and memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalTableSpec:
    """Describes a topic that every worker replicates as a whole into `store`.

    `name` is that of its step.
    """

    name: str
    topic: str
    store: StoreSpec


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """Represents one step; two nodes are never equal, whatever their fields."""

    name: str
    parents: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceNode(Node):
    """Reads a topic; an `internal` one is written by a sink of this topology (repartition).

    `topic` may be the text of a pattern (`streams.topics`), until the topology is resolved.
    """

    topic: str
    key: Serde[Any]
    value: Serde[Any]
    internal: bool = False
    timestamp_extractor: TimestampExtractor | None = None
    """None before the graph is expanded: the application's default."""
    offset_reset: OffsetResetPolicy | None = None
    """The policy for partitions without a committed offset; None: the application's."""
    co_partitioned: bool = True
    """True if the topics of a pattern must have equal partition counts before state by key."""

    @property
    def takes_each_record(self) -> bool:
        """Return whether it forwards each record of its topic, with its own timestamp, or fails."""
        return self.timestamp_extractor in (None, TimestampPolicy.FAIL_ON_INVALID_TIMESTAMP)

    @property
    def has_record_times(self) -> bool:
        """Return whether its records have their own timestamps, if they are processed."""
        return self.takes_each_record or (
            self.timestamp_extractor is TimestampPolicy.LOG_AND_SKIP_ON_INVALID_TIMESTAMP
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProcessorNode(Node):
    """Transforms records by an operator, with the stores that it names."""

    operator: Operator
    kind: str = ""
    """Kafka Streams' name of the operation, as KSTREAM-FILTER, whatever the step's name: for people
    and generated names, never to conclude from (`traits`)."""
    stores: Sequence[str] = ()
    """The names of its stores; a list until the topology is built (`Graph.attach_store`)."""
    emits_updates: bool = False
    """True if it forwards updates of a table: its children take a ForwardUpdate each."""
    traits: StepTraits = UNKNOWN_STEP
    """The traits tell what the step does to records, whatever its kind and its operator."""
    has_stream_time: bool = False
    """Whether it has a stream time of its own, which is committed with the offsets
    (`InternalProcessorContext.get_or_create_stream_time`)."""
    grace_ms: int | None = None
    """If it makes windows: how far stream time is past the end of one when it closes."""
    rule: object | None = None
    """The rule of what it computes, as data, if there is one (`topology/rules`)."""
    wrapped_rule: object | None = None
    """The rule of a step within a processor of the application's wrapper, which may change records:
    so it has no `rule`, but keeps its state as this one says."""
    co_partitioned: bool = True
    """Whether the topics that it merges, or has stores for, must have equal partition counts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SinkNode(Node):
    """Writes a topic, or the one that a function of the record names.

    An `internal` one is the application's own, of as many `partitions` as were asked for, or as
    follow from what is upstream.
    """

    topic: str | TopicNameExtractor
    key: Serde[Any]
    value: Serde[Any]
    internal: bool = False
    partitions: int | None = None
    partitioner: Partitioner | None = None

    @property
    def topic_name(self) -> str:
        """Return the topic, or the name of the function that chooses it, for people."""
        if isinstance(self.topic, str):
            return self.topic
        return f"chosen by {getattr(self.topic, '__qualname__', self.topic)}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RepartitionNode(Node):
    """Sends records through the topic `<application.id>-<base>-repartition`.

    Behind it the records of a key are in one task. Becomes a filter of null keys, a sink and a
    source when the topology is built; null keys stay where a step further down joins without a key
    (`null_keys.py`).
    """

    base_name: str
    key: Serde[Any]
    value: Serde[Any]
    partitions: int | None = None
    partitioner: Partitioner | None = None
    keeps_null_keys: bool = False
    is_explicit: bool = False
    """Whether the user asked for it by `repartition()`: it is never merged with another."""


@dataclass(slots=True)
class Graph:
    """Collects the steps of an application while it is described, in the order they were added."""

    nodes: list[Node] = field(default_factory=list)
    stores: dict[str, StoreSpec] = field(default_factory=dict)
    """The declared stores by name."""
    global_tables: dict[str, GlobalTableSpec] = field(default_factory=dict)
    """The global tables by the names of their stores."""
    copartitioned: list[tuple[Node, ...]] = field(default_factory=list)
    """Groups of steps: the topics read upstream of one group must have equal partition counts."""
    generated_names: set[str] = field(default_factory=set)
    """The names that the application has not given: of steps, or of their stores and topics."""
    internal_names: Mapping[str, str] = field(default_factory=dict)
    """The names to use instead of those of stores and topics that no argument can name."""
    replaceable_names: set[str] = field(default_factory=set)
    """The names that `internal_names` may replace, as they were asked for."""
    _store_owners: dict[str, object] = field(default_factory=dict)

    def attach_store(self, node: ProcessorNode, spec: StoreSpec) -> None:
        """Declare a store that a step turned out to need, and add it to the step."""
        self.declare_store(spec, owner=node)
        assert isinstance(node.stores, list), f"step {node.name!r} is finished"
        node.stores.append(spec.name)

    def add_node(self, node: Node) -> None:
        """Append a step behind its parents."""
        self.nodes.append(node)

    def declare_store(self, spec: StoreSpec, owner: object) -> None:
        """Declare a store; the same `owner` may declare it again.

        Raises TopologyError if another owner has a store of that name.
        """
        if self._store_owners.setdefault(spec.name, owner) is not owner or (
            self.stores.setdefault(spec.name, spec) != spec
        ):
            raise TopologyError(
                f"store {spec.name!r} is used twice: give one of them another name, or share one "
                "Store through app.add_store"
            )

    def declare_global_table(self, table: GlobalTableSpec) -> None:
        """Declare a global table. Raises TopologyError if the name of its store is taken."""
        if table.store.name in self.stores or table.store.name in self.global_tables:
            raise TopologyError(
                f"step {table.name!r}: store {table.store.name!r} is used already: give one of "
                "them another name"
            )
        self._store_owners[table.store.name] = table
        self.global_tables[table.store.name] = table

    def choose_step_name(self, kind: str, given_name: str | None = None) -> str:
        """Return `given_name`, or a generated name in Kafka Streams' manner: kind and number.

        Raises TopologyError for an illegal name.
        """
        if given_name is not None:
            return check_step_name(given_name)
        generated_name = f"{kind}-{len(self.nodes) + len(self.global_tables):010}"
        self.generated_names.add(generated_name)
        return generated_name

    def resolve_internal_name(self, name: str) -> str:
        """Return the name that the application has given in `internal_names` for `name`, or that.

        It is of a store, or of a topic without the application's id.
        """
        self.replaceable_names.add(name)
        return self.internal_names.get(name, name)
