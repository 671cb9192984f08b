"""Check a topology as a whole: names, topics and stores that several steps share.

Every error names the step and what to do. Source: Kafka Streams' InternalTopologyBuilder, which
refuses the same. That records can't go round for ever and that no user step writes into the
application's own topics it leaves to its users.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

from streams.common.names import NAME_LENGTH_MAX, explain_illegal_name
from streams.errors import TopologyError
from streams.graph.nodes import Graph, Node, ProcessorNode, SinkNode, SourceNode
from streams.topics import is_pattern, parse_pattern


def check_topology(graph: Graph, changelog_topic_of: Callable[[str], str]) -> None:
    """Raise TopologyError, naming the step, if the graph is no valid topology.

    `changelog_topic_of` returns the changelog topic of a store.
    """
    _check_names_unique(node.name for node in graph.nodes)
    _check_topics_read_once(graph)
    _check_stores_declared_and_used(graph)
    for sink in graph.nodes:
        if isinstance(sink, SinkNode):
            _check_writes_no_internal_topic(sink, graph, changelog_topic_of)
            _check_no_endless_loop(sink)
            if topic := _get_fixed_topic(sink):
                _check_topic_name(f"step {sink.name!r}: its topic", topic)
    for name in graph.stores:
        _check_topic_name(f"store {name!r}: its changelog", changelog_topic_of(name))


def _get_fixed_topic(node: Node) -> str:
    """Return the topic of a sink with a fixed one; empty for any other node."""
    return node.topic if isinstance(node, SinkNode) and isinstance(node.topic, str) else ""


def _check_topic_name(subject: str, topic: str) -> None:
    """Raise TopologyError if a topic that is named after a step or a store has no legal name."""
    if len(topic) > NAME_LENGTH_MAX:
        raise TopologyError(
            f"{subject} would be {topic!r}, and a topic's name has at most {NAME_LENGTH_MAX} "
            f"characters: give a name that is shorter by {len(topic) - NAME_LENGTH_MAX}"
        )
    if (fault := explain_illegal_name(topic)) is not None:
        raise TopologyError(
            f"{subject} would be {topic!r}, and a topic's name is no such text ({fault}): give it "
            "another name"
        )


def _check_names_unique(names: Iterable[str]) -> None:
    """Raise TopologyError for a step without a name, or with the name of another."""
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name:
            raise TopologyError(f"a step's name=... is {name!r}: it is text, and not empty")
        if name in seen:
            raise TopologyError(f"step {name!r} is used twice: give one of them another name")
        seen.add(name)


def _check_topics_read_once(graph: Graph) -> None:
    """Raise TopologyError if two steps read one topic."""
    readers: dict[str, str] = {}
    nodes = [node for node in graph.nodes if isinstance(node, SourceNode)]
    sources = [(node.topic, node.name) for node in nodes]
    internal = {node.topic for node in nodes if node.internal}
    patterns = [(parse_pattern(text), name) for text, name in sources if is_pattern(text)]
    for topic, name in (*sources, *((t.topic, t.name) for t in graph.global_tables.values())):
        other = readers.setdefault(topic, name)
        if other is not name:
            raise TopologyError(
                f"topic {topic!r} is read by two steps, {other!r} and {name!r}: read it once and "
                "use what comes of it twice; of a table to_stream() makes a stream, of a stream "
                "to_table() a table"
            )
        matching = [each for each in patterns if each[0].matches_topic(topic)]
        if matching and topic not in internal and not is_pattern(topic):
            raise TopologyError(
                f"topic {topic!r}, which step {name!r} reads, matches {matching[0][0]!r} of step "
                f"{matching[0][1]!r}: a topic is read once; let the expression leave it out"
            )


def _check_stores_declared_and_used(graph: Graph) -> None:
    """Raise TopologyError for a store that is used and not declared, or the reverse."""
    used: set[str] = set()
    for node in graph.nodes:
        for name in node.stores if isinstance(node, ProcessorNode) else ():
            used.add(name)
            if name not in graph.stores:
                close = difflib.get_close_matches(name, graph.stores, n=1)
                raise TopologyError(
                    f"step {node.name!r} uses the store {name!r}, which nobody has declared: "
                    + (f"did you mean {close[0]!r}? " if close else "")
                    + "call app.add_store, or put the Store itself among the processor's stores"
                )
    if unused := graph.stores.keys() - used:
        raise TopologyError(
            f"store {', '.join(map(repr, sorted(unused)))} is used by no step: name it in a "
            "processor's stores, or take it away"
        )


def _check_writes_no_internal_topic(
    sink: SinkNode, graph: Graph, changelog_topic_of: Callable[[str], str]
) -> None:
    """Raise TopologyError if a user's sink writes a repartition or changelog topic."""
    if sink.internal or not (topic := _get_fixed_topic(sink)):
        return
    for node in graph.nodes:
        if isinstance(node, SinkNode) and node.internal and node.topic == topic:
            raise TopologyError(
                f"step {sink.name!r} writes {topic!r}, which is the application's own, for "
                "repartitioning: write another topic, or use repartition()"
            )
    for store in graph.stores:
        if changelog_topic_of(store) == topic:
            raise TopologyError(
                f"step {sink.name!r} writes {topic!r}, which is the changelog of store {store!r}: "
                "what is written there would be restored into the store; write another topic"
            )


def _check_no_endless_loop(sink: SinkNode) -> None:
    """Raise TopologyError if a sink writes every record back to the topic it was read from.

    A topic may lead back to itself, as where a failed record is retried; but not each record.
    """
    for node in _find_unconditional_upstream(sink.parents):
        if isinstance(node, SourceNode) and _is_read_by(node, _get_fixed_topic(sink)):
            raise TopologyError(
                f"step {sink.name!r} writes each record of {sink.topic_name!r} back into that "
                "topic, where it is read again, without an end: write another topic, or filter() "
                "first"
            )


def _is_read_by(source: SourceNode, topic: str) -> bool:
    """Return whether a source reads a topic, by its name or by a pattern."""
    if is_pattern(source.topic):
        return bool(topic) and parse_pattern(source.topic).matches_topic(topic)
    return source.topic == topic


def _find_unconditional_upstream(nodes: Iterable[Node]) -> list[Node]:
    """Return all nodes upstream whose every record reaches `nodes`.

    No step between them and `nodes` drops a record.
    """
    upstream = list(dict.fromkeys(nodes))
    for node in upstream:  # the list grows while it is walked
        if isinstance(node, ProcessorNode) and not node.traits.drops_records:
            upstream += [parent for parent in node.parents if parent not in upstream]
    return upstream
