"""Route streams in the DSL: merge, split, repartition, and write to topics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from streams.common.names import NAME_LENGTH_MAX, explain_illegal_name
from streams.dsl.builder import require_serde
from streams.dsl.function_checks import KEY_VALUE_ARGUMENTS, check_callable
from streams.errors import TopologyError
from streams.graph.nodes import Partitioner, RepartitionNode, SinkNode, TopicNameExtractor
from streams.graph.step_traits import StepTraits
from streams.operators.routing import forward_unchanged, split_records
from streams.processor.record import Record
from streams.serdes import Serde
from streams.topics import TopicPattern, matching

if TYPE_CHECKING:
    from streams.dsl.stream import Stream

K = TypeVar("K")
V = TypeVar("V")

PARTITIONER_ARGUMENTS = (*KEY_VALUE_ARGUMENTS, "partitions")


def check_topic_name(step: str, topic: object, *, accepts_pattern: bool = False) -> None:
    """Raise TopologyError, naming the step, if `topic` is no legal name of a topic.

    If the step `accepts_pattern`, the message says how a pattern is given.
    """
    if isinstance(topic, TopicPattern):
        raise TopologyError(
            f"step {step!r} takes one topic by its name, not {topic!r}: stream() and add_source() "
            "read topics by a pattern; to_table() makes a table of such a stream"
        )
    if isinstance(topic, re.Pattern):
        raise TopologyError(
            f"step {step!r}: {topic!r} is not a topic's name: topics.matching({topic.pattern!r}) "
            "reads the topics that match"
        )
    if explain_illegal_name(topic) is not None:
        pattern_advice = _suggest_pattern(topic) if accepts_pattern else ""
        raise TopologyError(
            f"step {step!r}: {topic!r} is not a topic's name: letters, digits, '.', '_' and '-', "
            f"at most {NAME_LENGTH_MAX} of them, and neither '.' nor '..'{pattern_advice}"
        )


def _suggest_pattern(topic: object) -> str:
    """Return how topics are read by a pattern, for a text that looks like one; else empty.

    A text with braces is rather a template that nobody has filled in.
    """
    if not isinstance(topic, str) or re.search(r"[*+?|\[\]()^$\\]", topic) is None:
        return ""
    if "{" in topic:
        return ""
    try:
        matching(topic)
    except TopologyError:
        return ""
    return (
        f". Topics are read by a pattern: topics.matching({topic!r}), where the text is a regular "
        "expression ('orders.*' for all that begin with orders)"
    )


class StreamRouting(Generic[K, V]):
    """Adds `merge`, `split`, `repartition` and `to` to a `Stream[K, V]`."""

    __slots__ = ()

    def merge(
        self,
        *others: Stream[K, V],
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        name: str | None = None,
        co_partitioned: bool = True,
    ) -> Stream[K, V]:
        """Merge this stream with others; the records of each stay in order.

        A serde that all have stays. Where a step behind it keeps state by key, the topics of all
        must have equal partition counts. `co_partitioned=False` says that they need not, since
        equal keys are in partitions of one number, or need not meet.

        >>> returns = app.stream("returns", key=serdes.string, value=serdes.int64)
        >>> run(orders.merge(returns.map_values(lambda total: -total)))
        [('ann', 5), ('bob', 50), ('ann', 7)]
        """
        return merge_streams((self, *others), key, value, name, co_partitioned=co_partitioned)

    def split(
        self,
        branches: Mapping[str, Callable[[K, V], object]],
        *,
        default: str | None = None,
        name: str | None = None,
    ) -> dict[str, Stream[K, V]]:
        """Split the records into one stream for each branch, returned by name.

        Kafka Streams' `KStream.split`, with the branches in a dict instead of a chain of `branch`.

        A record goes to the first branch whose predicate is true of `(key, value)`, else to the one
        named `default`, else nowhere.

        >>> branches = orders.split({"large": lambda name, total: total > 10}, default="small")
        >>> run(branches["small"])
        [('ann', 5), ('ann', 7)]
        """
        return split_stream(self, branches, default, name)

    def repartition(
        self,
        *,
        partitions: int | None = None,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        partitioner: Callable[[K, V, int], int | Iterable[int] | None] | None = None,
        name: str | None = None,
    ) -> Stream[K, V]:
        """Send the records through a repartition topic of the application's own.

        It has `partitions` partitions, by default as many as the topics that are read upstream.
        `partitioner` is as in `to`.

        >>> run(orders.repartition(partitions=4, name="spread"))
        [('ann', 5), ('bob', 50), ('ann', 7)]
        >>> sorted(app.topology().repartition_topics)
        ['shop-spread-repartition']
        """
        return repartition_stream(self, partitions, key, value, partitioner, name)

    def to(
        self,
        topic: str | Callable[[Record[K, V]], str],
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        partitioner: Callable[[K, V, int], int | Iterable[int] | None] | None = None,
        name: str | None = None,
    ) -> None:
        """Write the records to a topic, or to the one that a function of the record names.

        The topic must exist. The partition is chosen by the key, as Kafka's own producers do, or by
        `partitioner(key, value, partitions)`, where None leaves it to the key. Each of several
        partitions that it returns gets the record (KIP-837); with none the record is dropped.

        >>> orders.to(lambda record: f"orders-of-{record.key}")
        >>> with TopologyTestDriver(app) as driver:
        ...     driver.topic("orders").pipe_many([("ann", 5), ("bob", 50)])
        ...     driver.topic("orders-of-bob").read_values()
        [50]
        """
        write_stream(self, topic, key, value, partitioner, name)


def merge_streams(
    streams: Sequence[Any],
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    name: str | None,
    *,
    co_partitioned: bool = True,
) -> Stream[Any, Any]:
    """Return one stream of the records of all `streams`. Raises TopologyError."""
    from streams.dsl.stream import Stream

    first = streams[0]
    builder = first._builder
    step = builder.graph.choose_step_name("KSTREAM-MERGE", name)
    for other in streams[1:]:
        if not isinstance(other, Stream):
            raise TopologyError(
                f"step {step!r} merges streams, and got {other!r}: a table first becomes one by "
                "to_stream()"
            )
        check_same_application(step, first, other)
    node = builder.add_step(
        "KSTREAM-MERGE",
        tuple(s._node for s in streams),
        forward_unchanged,
        name=step,
        traits=StepTraits(is_stateless=True, drops_records=False, forwards_unchanged=True),
        co_partitioned=co_partitioned,
    )
    return Stream(
        builder,
        node,
        key or _find_common_serde([stream._key for stream in streams]),
        value or _find_common_serde([stream._value for stream in streams]),
        any(stream._rekeyed for stream in streams),
    )


def _find_common_serde(serdes: list[Serde[Any] | None]) -> Serde[Any] | None:
    """Return the serde that all streams have; None if they differ."""
    return serdes[0] if all(serde == serdes[0] for serde in serdes) else None


def check_same_application(step: str, one: Any, other: Any) -> None:
    """Raise TopologyError if two streams or tables belong to two applications."""
    if one._builder is not other._builder:
        raise TopologyError(
            f"step {step!r} puts streams of two applications together, "
            f"{one._builder.application_id!r} and {other._builder.application_id!r}: what one "
            "writes the other reads from a topic"
        )


def split_stream(
    stream: Any,
    branches: Mapping[str, Callable[[Any, Any], object]],
    default: str | None,
    name: str | None,
) -> dict[str, Stream[Any, Any]]:
    """Return a stream for each branch, by name; a record goes to the first that fits.

    Raises TopologyError.
    """
    from streams.dsl.stream import Stream

    builder = stream._builder
    step = builder.graph.choose_step_name("KSTREAM-BRANCH", name)
    if not isinstance(branches, Mapping) or not branches:
        raise TopologyError(f"step {step!r} needs its branches as {{name: predicate}}")
    if default in branches:
        raise TopologyError(f"step {step!r}: the default {default!r} is one of the branches too")
    for predicate in branches.values():
        check_callable(step, predicate, KEY_VALUE_ARGUMENTS)
    names = {each: f"{step}-{each}" for each in (*branches, default) if each is not None}
    choices = [(predicate, names[each]) for each, predicate in branches.items()]
    operator = split_records(choices, None if default is None else names[default])
    node = builder.add_step(
        "KSTREAM-BRANCH",
        stream._node,
        operator,
        name=step,
        traits=StepTraits(is_stateless=True, forwards_unchanged=True, names_children=True),
    )
    return {
        each: Stream(
            builder,
            builder.add_step(
                "KSTREAM-BRANCHCHILD",
                node,
                forward_unchanged,
                name=child,
                traits=StepTraits(is_stateless=True, forwards_unchanged=True),
            ),
            stream._key,
            stream._value,
            stream._rekeyed,
        )
        for each, child in names.items()
    }


def repartition_stream(
    stream: Any,
    partitions: int | None,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    partitioner: Partitioner | None,
    name: str | None,
) -> Stream[Any, Any]:
    """Return the stream behind a repartition topic of its own. Raises TopologyError."""
    from streams.dsl.stream import Stream

    graph = stream._builder.graph
    base = graph.choose_step_name("KSTREAM-REPARTITION", name)
    if partitions is not None and (type(partitions) is not int or partitions < 1):
        raise TopologyError(f"step {base!r}: partitions={partitions!r}, at least 1 is needed")
    if partitioner is not None:
        check_callable(base, partitioner, PARTITIONER_ARGUMENTS)
    node = RepartitionNode(
        name=f"{base}-repartition",
        parents=(stream._node,),
        base_name=base,
        key=require_serde(key or stream._key, "key", base),
        value=require_serde(value or stream._value, "value", base),
        partitions=partitions,
        partitioner=partitioner,
        is_explicit=True,
    )
    graph.add_node(node)
    return Stream(stream._builder, node, node.key, node.value)


def write_stream(
    stream: Any,
    topic: str | TopicNameExtractor,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    partitioner: Partitioner | None,
    name: str | None,
) -> None:
    """Add a sink that writes the stream to a topic. Raises TopologyError."""
    graph = stream._builder.graph
    step = graph.choose_step_name("KSTREAM-SINK", name)
    if callable(topic):
        check_callable(step, topic, ("record",))
    else:
        check_topic_name(step, topic)
    if partitioner is not None:
        check_callable(step, partitioner, PARTITIONER_ARGUMENTS)
    graph.add_node(
        SinkNode(
            name=step,
            parents=(stream._node,),
            topic=topic,
            key=require_serde(key or stream._key, "key", step),
            value=require_serde(value or stream._value, "value", step),
            partitioner=partitioner,
        )
    )
