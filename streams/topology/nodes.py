"""The nodes of a topology: describe what each step is, before anything runs.

A node knows its name, the nodes before it, the names of its stores, and how to bind itself into a
task: given its `Binding` there, it returns the function that a record goes through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from streams.errors import StreamsError, TopologyError
from streams.handling import Stage
from streams.serdes import Serde

Emit = Callable[[Any, Any, int], None]
"""What a record goes through: key, value, timestamp in ms."""

Update = Callable[[Any, Any, Any, int, bool], None]
"""What a table's change goes through: key, new value, old value, timestamp in ms, and whether it is
the latest of its key, which only a versioned table may deny. No value is None. The old value is
None too unless a later step has asked for old values (`View.send_old`). Objects are the receiver's
to read, not to change: other branches see the same."""


@dataclass(slots=True)
class StepTime:
    """Holds the stream time of one step: the largest timestamp it has been given, in ms.

    -1 before the first. It is committed with the offsets, and restored after a restart.
    """

    ms: int = -1


class Watch(Protocol):
    """Observes what a task does: implemented by a test driver (`streams.testing`)."""

    def late(self, record: Any) -> None:
        """Observe a LateRecord: a record that was dropped because its window had closed."""
        ...


class Context(Protocol):
    """Gives a bound step access to the task that it runs in.

    Kafka Streams' InternalProcessorContext.
    """

    @property
    def produce(self) -> Callable[..., None]:
        """Return confluent-kafka's `produce` of the task's producer.

        Arguments by position, which is faster: topic, value, key, partition, callback, on_delivery
        (the same), timestamp, headers.
        """
        ...

    def make_room(self) -> None:
        """Wait until the producer's full queue takes records again."""
        ...

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has, as the task knows since it was bound.

        Raises StreamsError if there is no such topic.
        """
        ...

    message: Any
    """The record being processed as it came from the consumer, or with the headers that a processor
    gave it; None between records."""
    record_ms: int
    """The timestamp of the record that a processor was handed last: what it writes into its stores
    has it, if it says no other."""
    flushers: list[Callable[[], None]]
    """What to call before a commit, downstream first: steps that hold results back."""
    held: dict[str, dict[Any, Any]]
    """What the steps that write a store hold back of it until the commit, by its name."""
    starters: list[Callable[[], None]]
    """What to call when all steps are bound, downstream first."""
    closers: list[Callable[[], None]]
    """What to call when the steps are given up, upstream first."""
    task_name: str

    stream_time_ms: int
    """The largest timestamp of the task's records so far; -1 before the first."""
    dropped: int
    """Records that were passed over: somebody counts them now and then."""
    late: int
    """Of these the ones that came after their window had closed, once for each window."""
    shared: dict[str, Any]
    """What several steps of the task have in common, by the name of a store that is theirs alone.
    It goes when the steps are given up."""

    watch: Watch | None
    """Who runs the task by hand, if somebody does: then results that are otherwise looked for at
    intervals of the wall clock, which stands still, are looked for with each record."""

    @property
    def now_ms(self) -> Callable[[], int]:
        """Return the function that reads the wall clock in ms."""
        ...

    def store(self, name: str) -> Any:
        """Return a store of the task by name."""
        ...

    def global_store(self, name: str) -> Any | None:
        """Return the read-only replica of a global table by its store's name.

        None if there is no such table.
        """
        ...

    def step_time(self, step: str) -> StepTime:
        """Return the stream time of a step that has one: the same object for each caller."""
        ...

    def schedule(
        self, interval_ms: int, callback: Callable[[int], None], clock: str
    ) -> Callable[[], None]:
        """Call `callback` with the time in ms after each `interval_ms` of `clock`.

        `clock` is "stream" or "wall". Returns the function that cancels the schedule. Kafka
        Streams: a Punctuator.
        """
        ...

    def commit(self) -> None:
        """Request a commit as soon as the record being processed is done."""
        ...

    @property
    def skips_processing(self) -> bool:
        """Whether processing may go on after a step has failed."""
        ...

    def failed(
        self,
        stage: Stage,
        step: str,
        error: Exception,
        refusal: StreamsError | None = None,
        *,
        key: Any = None,
        value: Any = None,
        target: str | None = None,
    ) -> None:
        """Handle the error that a step has raised: return if the record is to be skipped.

        Otherwise raises `refusal`, or an error that names the step and the record.
        """
        ...

    def origin(self) -> str:
        """Return topic, partition and offset of the record being processed, for messages."""
        ...


Failed = Callable[[Exception, Any, Any], None]
"""What a step calls where a user's function has raised: error, key, value. It returns if the record
is to be skipped. A step guards the user's function and not what comes after it, which guards
itself: so what one branch skips the others still get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Holds all that an operator needs to bind its step into a task."""

    step: str
    context: Context
    downstream: Callable[..., None]
    """All that comes after it: an Emit, or an Update where the step makes a table."""
    children: Mapping[str, Emit]
    """What comes directly after it, each by its name."""
    passed_on: bool = False
    """Values of tables are asked for as they were passed on last (`views`): with caching a change
    that waits for the commit is not seen before it has gone out."""
    only_sinks_follow: bool
    """What comes after it reads values and keeps none."""
    failed: Failed


Operator = Callable[[Binding], Callable[..., None]]
"""Binds a step into a task and returns what goes through it: an Emit behind a stream, an Update
behind a table."""
TopicOf = Callable[[Any], str]
"""Record -> the topic that it is written to."""
Partitioner = Callable[[Any, Any, int], int | None]
"""Key, value, number of partitions -> the partition; None: as the producer chooses by key."""


class StoreKind(StrEnum):
    """Names the kinds of stores, which differ in what they can be asked."""

    KEY_VALUE = "key-value"
    WINDOW = "window"
    SESSION = "session"
    VERSIONED = "versioned"
    BUFFER = "buffer"
    """What waits for its time: for the steps that need it, not for users."""


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
    """The topic that holds the same rows, and takes the place of a changelog."""
    topic_settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the changelog topic, over those that the kind has."""
    retention_ms: int | None = None
    """Window and session stores: how far behind stream time an entry is kept."""
    window_size_ms: int | None = None
    segment_ms: int | None = None
    """How much time of a window store lies together on disk; None: half of the retention."""
    by_time: bool = False
    """A window or session store that can be asked in the order of time."""
    retain_duplicates: bool = False
    history_ms: int | None = None
    """Versioned stores: how far behind stream time can be asked for."""
    ttl_ms: int | None = None
    time_of: Callable[[bytes], int] | None = None
    """Buffers whose keys have their time in ms in them: it, of a key."""
    rocksdb: Callable[[Any], object] | None = None
    """Is handed rocksdict's Options of this store, to change them in place."""


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
    """Reads a topic; an `internal` one is written by a sink of this topology (repartition)."""

    topic: str
    key: Serde[Any]
    value: Serde[Any]
    internal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProcessorNode(Node):
    """Transforms records by an operator, with the stores that it names."""

    operator: Operator
    kind: str = ""
    """Kafka Streams' word for what it does, as KSTREAM-FILTER, whatever its name."""
    stores: Sequence[str] = ()
    """A list gets more (`Graph.attach`) until the topology is built."""
    updates: bool = False
    """What it passes on are updates of a table: its children take an Update each."""
    keeps_records: bool = False
    """Every record that it passes on is one that it got."""
    only_passes_on: bool = False
    """It changes no value, keeps none and hands none to user code."""
    joins_without_key: bool = False
    """It makes results of records without a key, as left and outer joins of streams do."""
    keeps_time: bool = False
    """It has a stream time of its own (`Context.step_time`), which is committed with the
    offsets."""
    grace_ms: int | None = None
    """Where it makes windows: how far stream time is past the end of one when it closes."""
    rule: object | None = None
    """What it computes, where that is said as data (`topology/rules`)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SinkNode(Node):
    """Writes a topic, or the one that a function of the record names.

    An `internal` one is the application's own, of as many `partitions` as were asked for, or as
    follow from what is upstream.
    """

    topic: str | TopicOf
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

    base: str
    key: Serde[Any]
    value: Serde[Any]
    partitions: int | None = None
    partitioner: Partitioner | None = None
    keeps_null_keys: bool = False
    asked_for: bool = False
    """By `repartition()`: it is never merged with another."""


@dataclass(slots=True)
class Graph:
    """Collects the steps of an application while it is described, in the order they were added."""

    nodes: list[Node] = field(default_factory=list)
    stores: dict[str, StoreSpec] = field(default_factory=dict)
    """The declared stores by name."""
    global_tables: dict[str, GlobalTableSpec] = field(default_factory=dict)
    """By the names of their stores."""
    copartitioned: list[tuple[Node, ...]] = field(default_factory=list)
    """Groups of steps: what is read upstream of those of one group has equal partition counts."""
    _owners: dict[str, object] = field(default_factory=dict)

    def attach(self, node: ProcessorNode, spec: StoreSpec) -> None:
        """Declare a store that a step turned out to need, and add it to the step."""
        self.declare(spec, owner=node)
        assert isinstance(node.stores, list), f"step {node.name!r} is finished"
        node.stores.append(spec.name)

    def add(self, node: Node) -> None:
        """Append a step behind its parents."""
        self.nodes.append(node)

    def declare(self, spec: StoreSpec, owner: object) -> None:
        """Declare a store; the same `owner` may declare it again.

        Raises TopologyError if another owner has a store of that name.
        """
        if self._owners.setdefault(spec.name, owner) is not owner or (
            self.stores.setdefault(spec.name, spec) != spec
        ):
            raise TopologyError(
                f"store {spec.name!r} is used twice: give one of them another name, or share one "
                "Store through app.add_store"
            )

    def declare_global(self, table: GlobalTableSpec) -> None:
        """Declare a global table. Raises TopologyError if the name of its store is taken."""
        if table.store.name in self.stores or table.store.name in self.global_tables:
            raise TopologyError(
                f"step {table.name!r}: store {table.store.name!r} is used already: give one of "
                "them another name"
            )
        self._owners[table.store.name] = table
        self.global_tables[table.store.name] = table

    def name(self, kind: str, given: str | None = None) -> str:
        """Return `given_name`, or a generated name in Kafka Streams' manner.

        A generated name is the kind and a running number.
        """
        if given is not None:
            return given
        return f"{kind}-{len(self.nodes) + len(self.global_tables):010}"
