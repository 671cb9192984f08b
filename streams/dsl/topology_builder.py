"""Define TopologyBuilder, which describes a topology step by step, without streams and tables.

It adds to the same graph as the DSL, so the steps of both can follow each other. Kafka Streams'
`Topology`, with its names: sources, processors and sinks name their parents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from streams.common.call_hints import explain_calls
from streams.dsl.builder import InternalStreamsBuilder, require_serde
from streams.dsl.function_checks import check_callable
from streams.dsl.global_store import declare_global_store
from streams.dsl.kafka_streams_names import create_missing_attribute_error
from streams.dsl.processor_stores import add_processor_step
from streams.dsl.routing import PARTITIONER_ARGUMENTS, check_topic_name
from streams.dsl.source_serdes import resolve_source_serdes
from streams.dsl.sources import (
    DEFAULT_OPTIONS,
    SourceOptions,
    add_pattern_source,
    add_source_node,
)
from streams.dsl.table import create_table
from streams.errors import TopologyError
from streams.graph.materialized import Store
from streams.graph.nodes import (
    Node,
    Partitioner,
    ProcessorNode,
    SinkNode,
    SourceNode,
    TopicNameExtractor,
)
from streams.graph.step_traits import StepTraits
from streams.operators.process import process_records
from streams.operators.routing import forward_unchanged
from streams.processor.processor import Processor
from streams.processor.processor_supplier import ProcessorSupplier
from streams.serdes import Serde
from streams.settings.timestamp_extractors import (
    TimestampExtractor,
    TimestampPolicy,
    TimestampPolicyName,
)
from streams.topics import TopicPattern

if TYPE_CHECKING:
    from streams.dsl.stream import Stream

    Parent = str | Stream[Any, Any]
    """A step by its name, or the stream of its records."""

_TOPIC_TIMES = SourceOptions(timestamp_extractor=TimestampPolicy.FAIL_ON_INVALID_TIMESTAMP)
"""Has the times that a restore from the topic has, before the application's default."""
_MERGE = StepTraits(
    is_stateless=True, drops_records=False, forwards_unchanged=True, is_never_wrapped=True
)


@explain_calls
class TopologyBuilder:
    """Describes sources, processors, sinks and stores by name (Kafka Streams' `Topology`).

    Made by `App.topology_builder`. A parent is the name of a step, or a Stream; it is added before
    its children. All methods but `stream` return the builder itself, and raise TopologyError that
    names the step.

    The examples of its methods go on from this one:

    >>> app = App("shop")
    >>> builder = app.topology_builder()
    >>> class Double(Processor):
    ...     def process(self, record):
    ...         self.context.forward(record.with_value(record.value * 2))
    >>> builder.add_source("orders", "orders", key=serdes.string, value=serdes.int64)
    <TopologyBuilder of 'shop'>
    >>> builder.add_processor("double", Double, "orders")
    <TopologyBuilder of 'shop'>
    """

    def __init__(self, builder: InternalStreamsBuilder) -> None:
        self._builder = builder

    def __repr__(self) -> str:
        return f"<TopologyBuilder of {self._builder.application_id!r}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError that says what to call instead of `name`."""
            raise create_missing_attribute_error(self, name)

    def add_source(
        self,
        name: str,
        *topics: str | TopicPattern,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | TimestampPolicyName | None = None,
        offset_reset: str | timedelta | None = None,
    ) -> TopologyBuilder:
        """Add a step `name` that reads one topic or several, which must exist.

        In their place there may be one pattern, `topics.matching`, whose topics may come and go.
        `timestamp_extractor` and `offset_reset` are as in `App.stream`.

        >>> builder.add_source("all", "returns", "gifts", key=serdes.string, value=serdes.int64)
        <TopologyBuilder of 'shop'>
        """
        if not topics:
            raise TopologyError(f"step {name!r} reads no topic: add_source(name, topic, ...)")
        several = len(topics) > 1
        if several and any(isinstance(topic, TopicPattern) for topic in topics):
            raise TopologyError(
                f"step {name!r} reads topics by a pattern and others: add_source takes names, or "
                "one pattern; add a source for each, and name both as parents"
            )
        options = SourceOptions(timestamp_extractor=timestamp_extractor, offset_reset=offset_reset)
        sources = [
            self._add_source_of_topic(
                f"{name}-{topic}" if several else name,
                topic,
                key,
                value,
                options,
                accepts_pattern=True,
            )
            for number, topic in enumerate(topics)
            if topic not in topics[:number]
        ]
        if several:
            self._builder.add_step(
                "SOURCE", tuple(sources), forward_unchanged, name=name, traits=_MERGE
            )
        return self

    def add_processor(
        self,
        name: str,
        processor: ProcessorSupplier[Any, Any, Any, Any]
        | Callable[[], Processor[Any, Any, Any, Any]],
        *parents: Parent,
        stores: Sequence[str | Store] = (),
        co_partitioned: bool = True,
    ) -> TopologyBuilder:
        """Add a step `name` that hands the records of its parents to a Processor.

        `processor`, `stores` and `co_partitioned` are as in `Stream.process`. What it forwards goes
        to all its children, or to the one that `forward(record, to=...)` names.

        >>> class Large(Processor):
        ...     def process(self, record):
        ...         if record.value > 10:
        ...             self.context.forward(record, to="out")
        >>> builder.add_processor("large", Large, "double")
        <TopologyBuilder of 'shop'>
        """
        step = self._builder.graph.choose_step_name("PROCESSOR", name)
        found = self._find_parents(step, parents)
        add_processor_step(
            self._builder,
            "PROCESSOR",
            step,
            found,
            process_records,
            processor,
            stores,
            co_partitioned=co_partitioned,
        )
        return self

    def add_sink(
        self,
        name: str,
        topic: str | TopicNameExtractor,
        *parents: Parent,
        key: Serde[Any],
        value: Serde[Any],
        partitioner: Partitioner | None = None,
    ) -> TopologyBuilder:
        """Add a step `name` that writes the records of its parents to a topic.

        `topic` may be a function of the record, and `partitioner` chooses the partition, as in
        `Stream.to`.

        >>> builder.add_sink("out", "doubled", "double", key=serdes.string, value=serdes.int64)
        <TopologyBuilder of 'shop'>
        >>> with TopologyTestDriver(app) as driver:
        ...     driver.topic("orders").pipe("ann", 5)
        ...     driver.topic("doubled").read_pairs()
        [('ann', 10)]
        """
        graph = self._builder.graph
        step = graph.choose_step_name("SINK", name)
        if callable(topic):
            check_callable(step, topic, ("record",))
        else:
            check_topic_name(step, topic)
        if partitioner is not None:
            check_callable(step, partitioner, PARTITIONER_ARGUMENTS)
        parents_found = self._find_parents(step, parents)
        graph.add_node(
            SinkNode(
                name=step,
                parents=parents_found,
                topic=topic,
                key=require_serde(key, "key", step),
                value=require_serde(value, "value", step),
                partitioner=partitioner,
            )
        )
        return self

    def add_store(self, store: Store, *processors: str) -> TopologyBuilder:
        """Add a state store, and let the processors of these names use it.

        >>> store = Store.persistent("totals", key=serdes.string, value=serdes.int64)
        >>> builder.add_store(store, "double")
        <TopologyBuilder of 'shop'>
        """
        if not isinstance(store, Store):
            raise TopologyError(f"add_store takes a Store, got {store!r}")
        self._builder.declare_shared_store(store, "add_store")
        for processor in processors:
            self.connect_processor_and_stores(processor, store.name)
        return self

    def connect_processor_and_stores(self, processor: str, *stores: str) -> TopologyBuilder:
        """Let the processor of that name use stores that are declared elsewhere.

        >>> app.add_store(Store.in_memory("seen", key=serdes.string, value=serdes.int64))
        >>> builder.connect_processor_and_stores("double", "seen")
        <TopologyBuilder of 'shop'>
        """
        if not stores:
            raise TopologyError(f"step {processor!r}: name the stores to connect")
        node = self._find_step(processor, "connect_processor_and_stores")
        if not (
            isinstance(node, ProcessorNode)
            and node.traits.runs_processor
            and isinstance(node.stores, list)
        ):
            raise TopologyError(f"step {processor!r} runs no processor that could use a store")
        for store in stores:
            if not isinstance(store, str):
                raise TopologyError(
                    f"step {processor!r}: {store!r} is no store's name: add_store declares a Store"
                )
            if store not in node.stores:
                node.stores.append(store)
        return self

    def add_global_store(
        self,
        store: Store,
        topic: str,
        processor: ProcessorSupplier[Any, Any, Any, Any]
        | Callable[[], Processor[Any, Any, Any, Any]],
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        name: str | None = None,
    ) -> TopologyBuilder:
        """Add a store that each worker fills from the whole of `topic`, by a processor.

        Every processor may read it, without naming it; `processor` alone writes it, and forwards
        nothing. `key` and `value` are the serdes of the topic, by default those of the store. The
        processor gets every record of the topic again where the store is built anew.

        >>> class Discount(Processor):
        ...     def process(self, record):
        ...         self.context.store("discounts").put(record.key, record.value // 2)
        >>> store = Store.persistent("discounts", key=serdes.string, value=serdes.int64)
        >>> builder.add_global_store(store, "prices", Discount)
        <TopologyBuilder of 'shop'>
        >>> with TopologyTestDriver(app) as driver:
        ...     driver.topic("prices").pipe("pen", 10)
        ...     driver.store("discounts").get("pen")
        5
        """
        declare_global_store(self._builder, store, topic, processor, key, value, name)
        return self

    def add_read_only_store(
        self, store: Store, topic: str, *, name: str | None = None
    ) -> TopologyBuilder:
        """Add a store that holds the latest record of each key of `topic`, for processors to read.

        It has no changelog: it is restored from the topic, which must be compacted (KIP-813). So
        its rows have the times of the topic's records, whatever `default_timestamp_extractor`. A
        processor that names it in its `stores` gets the partitions of the topic that belong to its
        task.

        >>> store = Store.persistent("stock", key=serdes.string, value=serdes.int64)
        >>> builder.add_read_only_store(store, "stock").connect_processor_and_stores(
        ...     "double", "stock"
        ... )
        <TopologyBuilder of 'shop'>
        """
        if not isinstance(store, Store):
            raise TopologyError(f"add_read_only_store takes a Store, got {store!r}")
        if store.spec_fields["ttl_ms"] is not None:
            raise TopologyError(
                f"store {store.name!r} is read only, and has the rows of topic {topic!r}: "
                "it can have no ttl="
            )
        step = name or f"{store.name}-reader"
        key, value = resolve_source_serdes(store, None, None)
        source = self._add_source_of_topic(f"{step}-source", topic, key, value, _TOPIC_TIMES)
        traits = StepTraits(takes_latest=True, reads_table_topic=True, is_never_wrapped=True)
        create_table(self._builder, "PROCESSOR", source, key, value, store, step, traits)
        stores = self._builder.graph.stores
        stores[store.name] = replace(stores[store.name], source_topic=topic, logged=True)
        return self

    def stream(
        self, parent: str, *, key: Serde[Any] | None = None, value: Serde[Any] | None = None
    ) -> Stream[Any, Any]:
        """Return the stream of what the step `parent` forwards, to go on in the DSL.

        Its keys may be in any partition, so that a group or a join repartitions it.

        >>> doubled = builder.stream("double", key=serdes.string, value=serdes.int64)
        >>> doubled.filter(lambda name, total: total > 10).to("large")
        """
        from streams.dsl.stream import Stream

        node = self._require_records(parent, self._find_step(parent, "stream"))
        return Stream(self._builder, node, key, value, not isinstance(node, SourceNode))

    def _add_source_of_topic(
        self,
        name: str,
        topic: Any,
        key: Serde[Any] | None,
        value: Serde[Any] | None,
        options: SourceOptions = DEFAULT_OPTIONS,
        *,
        accepts_pattern: bool = False,
    ) -> SourceNode:
        """Add a source that reads one topic, or if it `accepts_pattern` those of a pattern."""
        graph = self._builder.graph
        step = graph.choose_step_name("SOURCE", name)
        if accepts_pattern and isinstance(topic, TopicPattern):
            return add_pattern_source(graph, step, topic, key, value, options)
        return add_source_node(
            graph, step, topic, key, value, options, accepts_pattern=accepts_pattern
        )

    def _find_parents(self, step: str, parents: Sequence[Parent]) -> tuple[Node, ...]:
        """Return the parents of a step, each once. Raises TopologyError if there is none."""
        if not parents:
            raise TopologyError(f"step {step!r} has no parents: name the steps before it")
        found = []
        for parent in parents:
            if isinstance(parent, str):
                found.append(self._require_records(step, self._find_step(parent, step)))
            elif getattr(parent, "_builder", None) is self._builder:
                found.append(self._require_records(step, parent._node))
            else:
                raise TopologyError(
                    f"step {step!r}: the parent {parent!r} is neither the name of a step nor a "
                    "stream of this application"
                )
        return tuple(dict.fromkeys(found))

    def _find_step(self, name: str, wanted_by: str) -> Node:
        """Return the step of that name. Raises TopologyError if there is none."""
        for node in self._builder.graph.nodes:
            if node.name == name:
                return node
        names = [node.name for node in self._builder.graph.nodes]
        raise TopologyError(
            f"{wanted_by!r} names the step {name!r}, which has not been added yet: there are "
            f"{names}"
        )

    def _require_records(self, step: str, node: Node) -> Node:
        """Return `node` if it forwards records. Raises TopologyError for a table and for a sink."""
        if isinstance(node, SinkNode):
            raise TopologyError(f"step {step!r}: {node.name!r} is a sink, and nothing follows it")
        if isinstance(node, ProcessorNode) and node.emits_updates:
            raise TopologyError(
                f"step {step!r}: {node.name!r} is a table: name the stream that its to_stream() is"
            )
        return node
