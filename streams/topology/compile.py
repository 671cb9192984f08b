"""Compile a sub-topology into closures over one task: nothing is looked up by name for a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streams.operators.sink import write_topic
from streams.operators.source import read_topic
from streams.topology.build import Subtopology
from streams.topology.nodes import Context, Emit, Node, ProcessorNode, SinkNode, SourceNode

Receive = Callable[[Any], None]
"""Takes a message as the consumer returns it."""


def compile_subtopology(subtopology: Subtopology, context: Context) -> dict[str, Receive]:
    """For each source topic the function that processes one of its messages in this task."""
    children: dict[Node, list[Node]] = {node: [] for node in subtopology.nodes}
    for node in subtopology.nodes:
        for parent in node.parents:
            children[parent].append(node)
    emits: dict[Node, Emit] = {}
    # Children were added after their parents: going backwards, what comes after a step is bound.
    for node in reversed(subtopology.nodes):
        downstream = _fan_out([emits[child] for child in children[node]])
        match node:
            case ProcessorNode():
                emits[node] = node.operator(context, downstream)
            case SinkNode():
                emits[node] = write_topic(node, context)
            case _:
                emits[node] = downstream
    return {
        node.topic: read_topic(node, context, emits[node])
        for node in subtopology.nodes
        if isinstance(node, SourceNode)
    }


def _fan_out(emits: Sequence[Emit]) -> Emit:
    match emits:
        case []:
            return _nowhere
        case [only]:
            return only
        case _:
            several = tuple(emits)

            def to_each(key: Any, value: Any, timestamp_ms: int) -> None:
                for emit in several:
                    emit(key, value, timestamp_ms)

            return to_each


def _nowhere(key: Any, value: Any, timestamp_ms: int) -> None:
    """The end of a branch that nothing follows."""
