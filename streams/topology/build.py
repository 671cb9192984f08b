"""Build a finished topology from a graph of steps: check it as a whole, divide it.

A sub-topology is what is connected without going through a topic. Each runs as tasks, one a
partition; records go from one to another through repartition topics only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from streams.errors import TopologyError
from streams.graph.nodes import (
    GlobalTableSpec,
    Graph,
    Node,
    ProcessorNode,
    SinkNode,
    SourceNode,
    StoreSpec,
)
from streams.settings.timestamp_extractors import TimestampExtractor
from streams.settings.topology_settings import StoreMedium
from streams.topics import TopicPattern, is_pattern, parse_pattern
from streams.topology.check import check_topology
from streams.topology.copartitioning import find_topics_by_store, find_upstream_topics
from streams.topology.expand import expand_graph, name_changelog_topic
from streams.topology.partitions import (
    TopicFlow,
    UnequalPartitionCounts,
    derive_partition_counts,
)
from streams.topology.store_queries import StoreQuery


def name_ttl_stream_time(store: str) -> str:
    """Return the name under which the stream time of a store with a `ttl` is committed.

    It stands among the names of steps that have a stream time.
    """
    return f"expiry of {store}"


@dataclass(frozen=True, slots=True)
class Subtopology:
    """Represents steps that run in one task, in the order they were added (parents first)."""

    number: int
    nodes: tuple[Node, ...]
    stores: tuple[StoreSpec, ...] = ()
    reads_patterns: bool = False
    """Whether the topics that it reads may come and go, of a topology that is resolved."""
    application_id: str = ""
    """The application, whose internal topics its patterns leave out."""

    @property
    def sources(self) -> dict[str, SourceNode]:
        """Return the sources by topic; before the topology is resolved, without its patterns."""
        nodes = (node for node in self.nodes if isinstance(node, SourceNode))
        return {node.topic: node for node in nodes if not is_pattern(node.topic)}

    @property
    def declared_sources(self) -> frozenset[str]:
        """Return what is read as it was declared: topics, and the texts of patterns."""
        return frozenset(node.topic for node in self.nodes if isinstance(node, SourceNode))

    @property
    def patterns(self) -> tuple[TopicPattern, ...]:
        """Return the patterns of the topics that are read, until the topology is resolved."""
        texts = sorted(filter(is_pattern, self.declared_sources))
        return tuple(parse_pattern(text, self.application_id) for text in texts)

    @property
    def stream_time_names(self) -> tuple[str, ...]:
        """Return the names of the steps and stores whose own stream time is committed.

        These are steps, and stores whose values expire (`name_ttl_stream_time`).
        """
        steps = (n.name for n in self.nodes if isinstance(n, ProcessorNode) and n.has_stream_time)
        return *steps, *(
            name_ttl_stream_time(spec.name) for spec in self.stores if spec.ttl_ms is not None
        )

    @property
    def keyed_topics(self) -> frozenset[str]:
        """Return the topics whose records reach a step with a store, repartition topics left out.

        Steps that are declared with `co_partitioned=False` don't count.
        """
        keeping = [
            n for n in self.nodes if isinstance(n, ProcessorNode) and n.stores and n.co_partitioned
        ]
        topics = set(find_upstream_topics(keeping, through_any_merge=False))
        known = self.sources
        return frozenset(t for t in topics if t in known and not known[t].internal)

    def find_first_step_using(self, store: str) -> str:
        """Return the name of the first step that uses `store`."""
        users = (n.name for n in self.nodes if isinstance(n, ProcessorNode) and store in n.stores)
        return next(users)

    @property
    def sinks(self) -> tuple[SinkNode, ...]:
        """Return the sinks, in the order they were added."""
        return tuple(node for node in self.nodes if isinstance(node, SinkNode))


@dataclass(frozen=True, slots=True)
class Topology:
    """Represents a finished, immutable topology."""

    application_id: str
    subtopologies: tuple[Subtopology, ...]
    global_tables: tuple[GlobalTableSpec, ...] = ()
    copartitioned: tuple[frozenset[str], ...] = ()
    """Groups of topics that must have equal partition counts, because their records meet by key: in
    a join, or in a store."""
    topics_by_store: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By store the topics whose records reach it, where no join demands equal counts of them."""
    topics_after_patterns: frozenset[str] = frozenset()
    """The repartition topics downstream of a pattern: without topics that match it, their partition
    counts may not be derivable."""
    queries: tuple[StoreQuery, ...] = ()
    """The queries that are registered by name."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError that says how a topology is described."""
            if name.startswith("_") or name == "application_id":  # as a copy is made
                raise AttributeError(name)
            hint = ": app.describe() returns it as text" if name == "describe" else ""
            raise AttributeError(f"Topology of {self.application_id!r} has no {name!r}{hint}")

    @property
    def patterns(self) -> tuple[TopicPattern, ...]:
        """Return the patterns of the topics that are read, until the topology is resolved."""
        return tuple(pattern for sub in self.subtopologies for pattern in sub.patterns)

    @property
    def source_topics(self) -> tuple[str, ...]:
        """Return all topics that are read, repartition topics included, sorted."""
        return tuple(sorted(topic for sub in self.subtopologies for topic in sub.sources))

    @property
    def input_topics(self) -> tuple[str, ...]:
        """Return the topics that must exist before the application starts, sorted."""
        internal = self.repartition_topics
        return tuple(topic for topic in self.source_topics if topic not in internal)

    @property
    def read_topics(self) -> frozenset[str]:
        """Return all topics that the application reads: inputs, global tables, internal topics."""
        stores = (spec.name for sub in self.subtopologies for spec in sub.stores if spec.logged)
        return frozenset(
            (
                *self.source_topics,
                *(table.topic for table in self.global_tables),
                *map(self.restore_topic_of, stores),
            )
        )

    def reads_topic(self, topic: str) -> bool:
        """Return whether the application reads a topic, by its name or by a pattern."""
        return topic in self.read_topics or any(each.matches_topic(topic) for each in self.patterns)

    @property
    def repartition_topics(self) -> frozenset[str]:
        """Return the internal topics that sinks write."""
        sinks = (sink for sub in self.subtopologies for sink in sub.sinks)
        return frozenset(s.topic for s in sinks if s.internal and isinstance(s.topic, str))

    def resolve_global_store(self, name: str) -> str | None:
        """Return the store of a global table by the store's name or, if no store has it, its topic.

        Returns None if there is no such table.
        """
        stores = {table.store.name for table in self.global_tables}
        if name in stores or any(
            name == spec.name for s in self.subtopologies for spec in s.stores
        ):
            return name if name in stores else None
        return next((t.store.name for t in self.global_tables if t.topic == name), None)

    def restore_topic_of(self, store: str) -> str:
        """Return the topic that a store is restored from: a changelog, or the table's own topic."""
        for spec in (each for sub in self.subtopologies for each in sub.stores):
            if spec.name == store and spec.source_topic is not None:
                return spec.source_topic
        return name_changelog_topic(self.application_id, store)

    def derive_partition_counts(self, input_counts: Mapping[str, int]) -> dict[str, int]:
        """Return the partition count of each source topic, derived from those of the inputs.

        Repartition topics' counts follow from them (see `streams.topology.partitions`). Raises
        TopologyError for topics that meet by key and whose counts differ.
        """
        sinks = [sink for sub in self.subtopologies for sink in sub.sinks if sink.internal]
        flows = [
            TopicFlow(frozenset(s.sources), frozenset(k.topic_name for k in s.sinks if k.internal))
            for s in self.subtopologies
        ]
        declared_counts = {sink.topic_name: sink.partitions for sink in sinks}
        try:
            counts = derive_partition_counts(
                flows, declared_counts, self.copartitioned, input_counts
            )
        except UnequalPartitionCounts as error:
            raise self._add_store_to_error(error) from None
        missing = self.repartition_topics - self.topics_after_patterns - counts.keys()
        if missing:
            raise TopologyError(
                f"the partitions of repartition topics {sorted(missing)} can't be derived: they "
                "follow from no input; say them, repartition(partitions=...)"
            )
        return counts

    def _add_store_to_error(self, error: UnequalPartitionCounts) -> TopologyError:
        """Return an error about unequal partition counts, with the step and store that need them.

        It is returned as it is where the topics meet in a join.
        """
        for store, topics in self.topics_by_store.items():
            if len({error.counts[topic] for topic in topics if topic in error.counts}) > 1:
                users = (
                    s.find_first_step_using(store)
                    for s in self.subtopologies
                    if topics & s.sources.keys()
                )
                return TopologyError(
                    f"step {next(users)!r} keeps state by key in store {store!r}: {error}. Where "
                    "equal keys are in partitions of one number all the same, say "
                    "co_partitioned=False at the merge(), stream([...]) or process() that brings "
                    "the topics together"
                )
        return error


def build_topology(
    application_id: str,
    graph: Graph,
    optimizations: Collection[str] = (),
    default_timestamp_extractor: TimestampExtractor | None = None,
    *,
    default_store: StoreMedium = "rocksdb",
    wrap_steps: Callable[[Graph], Graph] | None = None,
) -> Topology:
    """Check the graph and divide it into sub-topologies. Raises TopologyError naming the step.

    `wrap_steps` puts the application's processor wrapper around the steps that run.
    """
    if not graph.nodes:
        raise TopologyError(f"{application_id!r} has no steps: begin with app.stream('a-topic')")
    graph = expand_graph(
        application_id,
        graph,
        optimizations,
        default_timestamp_extractor,
        wrap_steps=wrap_steps,
        default_store=default_store,
    )
    check_topology(graph, partial(name_changelog_topic, application_id))
    subtopologies = tuple(
        Subtopology(
            number,
            nodes,
            tuple(graph.stores[name] for name in _list_store_names(nodes)),
            application_id=application_id,
        )
        for number, nodes in enumerate(_find_connected_nodes(graph.nodes))
    )
    joined = [frozenset(find_upstream_topics(group)) for group in graph.copartitioned]
    topics_by_store = find_topics_by_store(graph.nodes, joined)
    return Topology(
        application_id,
        subtopologies,
        tuple(graph.global_tables.values()),
        tuple(dict.fromkeys([*joined, *topics_by_store.values()])),
        topics_by_store,
    )


def _list_store_names(nodes: Iterable[Node]) -> list[str]:
    """Return the names of the nodes' stores, each once, in the order of their first use."""
    names = (name for node in nodes if isinstance(node, ProcessorNode) for name in node.stores)
    return list(dict.fromkeys(names))


def _find_connected_nodes(nodes: list[Node]) -> list[tuple[Node, ...]]:
    """Return the connected components of the graph, in the order of their first step.

    A store connects the steps that use it: they must see the records of one partition, so they run
    in the same task.
    """
    group_of: dict[Node, list[Node]] = {}
    first_user: dict[str, Node] = {}
    for node in nodes:
        group = [node]
        names = node.stores if isinstance(node, ProcessorNode) else ()
        users = [first_user.setdefault(name, node) for name in names]
        for neighbour in (*node.parents, *(user for user in users if user is not node)):
            other = group_of[neighbour]
            if other is not group:
                other.extend(group)
                group = other
            for member in group:
                group_of[member] = group
        group_of[node] = group
    order = {node: index for index, node in enumerate(nodes)}
    groups = {id(group): group for group in group_of.values()}
    ordered = (tuple(sorted(group, key=order.__getitem__)) for group in groups.values())
    return sorted(ordered, key=lambda group: order[group[0]])


def format_task_id(subtopology: Subtopology, partition: int) -> str:
    """Return a task's name in Kafka Streams' manner: `<sub-topology>_<partition>`."""
    return f"{subtopology.number}_{partition}"
