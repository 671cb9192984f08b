"""Compile a sub-topology into closures of one task; no name is looked up while records flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streams.graph.internal_context import InternalProcessorContext
from streams.graph.nodes import (
    Binding,
    ForwardRecord,
    ForwardUpdate,
    Node,
    ProcessorNode,
    SinkNode,
    SourceNode,
    StepFailureHandler,
)
from streams.operators.sink import create_topic_writer
from streams.operators.source import create_message_reader
from streams.settings.exception_handlers import Stage
from streams.topology.build import Subtopology

MessageHandler = Callable[[Any], None]
"""Processes a message as the consumer returns it."""


def compile_subtopology(
    subtopology: Subtopology, context: InternalProcessorContext
) -> dict[str, MessageHandler]:
    """Return for each source topic the function that processes one of its messages.

    The task's stores must be restored: processors are started here, upstream first. The caller
    calls `context.close_callbacks` when it discards the functions.
    """
    children: dict[Node, list[Node]] = {node: [] for node in subtopology.nodes}
    for node in subtopology.nodes:
        for parent in node.parents:
            children[parent].append(node)
    emits: dict[Node, Callable[..., None]] = {}
    # Children were added after their parents: in reverse order a step's children are bound first.
    for node in reversed(subtopology.nodes):
        after = [emits[child] for child in children[node]]
        updates = isinstance(node, ProcessorNode) and node.emits_updates
        downstream = _fan_out_updates(after) if updates else _fan_out_records(after)
        match node:
            case ProcessorNode():
                binding = Binding(
                    step=node.name,
                    context=context,
                    downstream=downstream,
                    children={child.name: emits[child] for child in children[node]},
                    only_sinks_follow=_only_sinks_follow(node, children),
                    skip_record_or_raise=_create_failure_handler(node.name, context),
                )
                emits[node] = node.operator(binding)
                if not after:
                    emits[node] = _wrap_with_latency_measurement(node, emits[node], context)
            case SinkNode():
                emits[node] = create_topic_writer(node, context)
            case _:
                emits[node] = downstream
    for start in reversed(context.start_callbacks):
        start()
    context.start_callbacks.clear()
    return {
        node.topic: create_message_reader(node, context, emits[node])
        for node in subtopology.nodes
        if isinstance(node, SourceNode)
    }


def _wrap_with_latency_measurement(
    node: ProcessorNode, process: Callable[..., None], context: InternalProcessorContext
) -> Callable[..., None]:
    """Return a function that measures the latency of records at a step that nothing follows."""
    measured = context.get_or_create_step_measurements(node.name)

    def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
        process(key, value, timestamp_ms)
        if measured.is_due:
            measured.observe_latency(timestamp_ms)

    def process_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        process(key, new, old, timestamp_ms, latest)
        if measured.is_due:
            measured.observe_latency(timestamp_ms)

    before = node.parents[0] if node.parents else None
    takes_updates = isinstance(before, ProcessorNode) and before.emits_updates
    return process_update if takes_updates else process_record


def _create_failure_handler(step: str, context: InternalProcessorContext) -> StepFailureHandler:
    """Return the function that a step calls when user code has raised."""

    def skip_record_or_raise(error: Exception, key: Any, value: Any) -> None:
        context.skip_record_or_raise(Stage.PROCESSING, step, error, key=key, value=value)

    return skip_record_or_raise


def _only_sinks_follow(node: Node, children: Mapping[Node, Sequence[Node]]) -> bool:
    """Return whether only sinks come after a node, apart from steps that only forward."""
    return all(
        isinstance(child, SinkNode)
        or (
            isinstance(child, ProcessorNode)
            and child.traits.only_forwards
            and _only_sinks_follow(child, children)
        )
        for child in children[node]
    )


def _fan_out_records(emits: Sequence[ForwardRecord]) -> ForwardRecord:
    """Return one function that hands a record to each of `emits`."""
    match emits:
        case []:
            return _discard_record
        case [only]:
            return only
        case _:
            several = tuple(emits)

            def to_each(key: Any, value: Any, timestamp_ms: int) -> None:
                for emit in several:
                    emit(key, value, timestamp_ms)

            return to_each


def _fan_out_updates(emits: Sequence[ForwardUpdate]) -> ForwardUpdate:
    """Return one function that hands a table's update to each of `emits`."""
    match emits:
        case []:
            return _discard_update
        case [only]:
            return only
        case _:
            several = tuple(emits)

            def to_each(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
                for emit in several:
                    emit(key, new, old, timestamp_ms, latest)

            return to_each


def _discard_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
    """Discard an update: nothing follows the table."""


def _discard_record(key: Any, value: Any, timestamp_ms: int) -> None:
    """Discard a record: nothing follows the branch."""
