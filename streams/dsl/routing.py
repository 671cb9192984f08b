"""Route streams in the DSL: merge, split, repartition, and write to topics."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from streams.dsl.builder import known
from streams.dsl.functions import KEY_VALUE, callable_for
from streams.errors import TopologyError
from streams.operators.routing import branch, pass_on
from streams.serdes import Serde
from streams.topology.nodes import Partitioner, RepartitionNode, SinkNode, TopicOf

if TYPE_CHECKING:
    from streams.dsl.stream import Stream

_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""Kafka's Topic.LEGAL_CHARS and its longest name."""
_PARTITIONER = (*KEY_VALUE, "partitions")


def check_topic(step: str, topic: object) -> None:
    """Raise TopologyError, naming the step, if `topic` is no legal name of a topic."""
    if not isinstance(topic, str) or not _LEGAL_TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise TopologyError(
            f"step {step!r}: {topic!r} is not a topic's name: letters, digits, '.', '_' and '-', "
            "at most 249 of them"
        )


def merged(
    streams: tuple[Stream[Any, Any], ...],
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    name: str | None,
) -> Stream[Any, Any]:
    """Return one stream of the records of all `streams`. Raises TopologyError."""
    from streams.dsl.stream import Stream

    first = streams[0]
    builder = first._builder
    step = builder.graph.name("KSTREAM-MERGE", name)
    for other in streams[1:]:
        if not isinstance(other, Stream):
            raise TopologyError(
                f"step {step!r} merges streams, and got {other!r}: a table first becomes one by "
                "to_stream()"
            )
        same_application(step, first, other)
    node = builder.step(
        "KSTREAM-MERGE", tuple(s._node for s in streams), pass_on, name=step, keeps_records=True
    )
    return Stream(
        builder,
        node,
        key or _common([stream._key for stream in streams]),
        value or _common([stream._value for stream in streams]),
        any(stream._rekeyed for stream in streams),
    )


def _common(serdes: list[Serde[Any] | None]) -> Serde[Any] | None:
    """Return the serde that all streams have; None if they differ."""
    return serdes[0] if all(serde == serdes[0] for serde in serdes) else None


def same_application(step: str, one: Any, other: Any) -> None:
    """Raise TopologyError if two streams or tables belong to two applications."""
    if one._builder is not other._builder:
        raise TopologyError(
            f"step {step!r} puts streams of two applications together, "
            f"{one._builder.application_id!r} and {other._builder.application_id!r}: what one "
            "writes the other reads from a topic"
        )


def split(
    stream: Stream[Any, Any],
    branches: Mapping[str, Callable[[Any, Any], object]],
    default: str | None,
    name: str | None,
) -> dict[str, Stream[Any, Any]]:
    """Return a stream for each branch, by name; a record goes to the first that fits.

    Raises TopologyError.
    """
    from streams.dsl.stream import Stream

    builder = stream._builder
    step = builder.graph.name("KSTREAM-BRANCH", name)
    if not isinstance(branches, Mapping) or not branches:
        raise TopologyError(f"step {step!r} needs its branches as {{name: predicate}}")
    if default in branches:
        raise TopologyError(f"step {step!r}: the default {default!r} is one of the branches too")
    for predicate in branches.values():
        callable_for(step, predicate, KEY_VALUE)
    names = {each: f"{step}-{each}" for each in (*branches, default) if each is not None}
    choices = [(predicate, names[each]) for each, predicate in branches.items()]
    operator = branch(choices, None if default is None else names[default])
    node = builder.step("KSTREAM-BRANCH", stream._node, operator, name=step, keeps_records=True)
    return {
        each: Stream(
            builder,
            builder.step("KSTREAM-BRANCHCHILD", node, pass_on, name=child, keeps_records=True),
            stream._key,
            stream._value,
            stream._rekeyed,
        )
        for each, child in names.items()
    }


def repartitioned(
    stream: Stream[Any, Any],
    partitions: int | None,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    partitioner: Partitioner | None,
    name: str | None,
) -> Stream[Any, Any]:
    """Return the stream behind a repartition topic of its own. Raises TopologyError."""
    from streams.dsl.stream import Stream

    graph = stream._builder.graph
    base = graph.name("KSTREAM-REPARTITION", name)
    if partitions is not None and (type(partitions) is not int or partitions < 1):
        raise TopologyError(f"step {base!r}: partitions={partitions!r}, at least 1 is needed")
    if partitioner is not None:
        callable_for(base, partitioner, _PARTITIONER)
    node = RepartitionNode(
        name=f"{base}-repartition",
        parents=(stream._node,),
        base=base,
        key=known(key or stream._key, "key", base),
        value=known(value or stream._value, "value", base),
        partitions=partitions,
        partitioner=partitioner,
        asked_for=True,
    )
    graph.add(node)
    return Stream(stream._builder, node, node.key, node.value)


def written(
    stream: Stream[Any, Any],
    topic: str | TopicOf,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    partitioner: Partitioner | None,
    name: str | None,
) -> None:
    """Add a sink that writes the stream to a topic. Raises TopologyError."""
    graph = stream._builder.graph
    step = graph.name("KSTREAM-SINK", name)
    if callable(topic):
        callable_for(step, topic, ("record",))
    else:
        check_topic(step, topic)
    if partitioner is not None:
        callable_for(step, partitioner, _PARTITIONER)
    graph.add(
        SinkNode(
            name=step,
            parents=(stream._node,),
            topic=topic,
            key=known(key or stream._key, "key", step),
            value=known(value or stream._value, "value", step),
            partitioner=partitioner,
        )
    )
