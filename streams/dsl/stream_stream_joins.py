"""Join a stream with another one within a window of time.

A stream whose keys have changed goes through a repartition topic first, so that records of equal
keys meet in one task; the topics that the two are read from must have equal numbers of partitions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from streams.common.durations import Duration, duration_to_ms
from streams.common.names import check_step_name
from streams.dsl.builder import InternalStreamsBuilder, require_serde
from streams.dsl.function_checks import check_callable
from streams.dsl.join_keys import check_join_keys
from streams.dsl.routing import check_same_application
from streams.errors import TopologyError
from streams.graph.joined_view import JoinKind
from streams.graph.materialized import Store
from streams.graph.nodes import Graph, Node, StoreKind, StoreSpec
from streams.operators.lateness import OnLate
from streams.operators.outer_join import OuterJoinOptions
from streams.operators.stream_join import Joiner, JoinWindow
from streams.serdes import Serde
from streams.serdes.join_sides import (
    create_left_or_right_values_serde,
    create_timestamped_key_serde,
)
from streams.topology.stream_join_node import JoinStepNames, StreamJoinNode

if TYPE_CHECKING:
    from streams.dsl.stream import Stream

_NOT_COMPACTED = {"cleanup.policy": "delete"}
"""The changelog keeps every record: no key is written twice."""
EMIT_INTERVAL_MS = 1_000
"""Kafka Streams' __emit.interval.ms.kstreams.outer.join.spurious.results.fix__."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJoinOptions:
    """Holds the options of a join of two streams as the user gave them.

    Kafka Streams' JoinWindows and StreamJoined.
    """

    kind: JoinKind
    with_key: bool
    name: str | None
    within: Duration | None = None
    before: Duration | None = None
    after: Duration | None = None
    grace: Duration = 0
    emit_interval: Duration = EMIT_INTERVAL_MS
    key: Serde[Any] | None = None
    this_value: Serde[Any] | None = None
    other_value: Serde[Any] | None = None
    value: Serde[Any] | None = None
    """The serde of the result."""
    store: str | Store | None = None
    other_store: str | Store | None = None
    on_late: OnLate | None = None


def join_streams(
    stream: Stream[Any, Any],
    other: Stream[Any, Any],
    joiner: Callable[..., Any],
    options: StreamJoinOptions,
) -> Stream[Any, Any]:
    """Add the join of two streams and return its result. Raises TopologyError naming the step."""
    builder, graph = stream._builder, stream._builder.graph
    if options.name is not None:
        check_step_name(options.name)
    names = name_join_steps(graph, options.name, options.kind)
    step = options.name or names.this_join
    check_same_application(step, stream, other)
    join = adapt_joiner(step, joiner, with_key=options.with_key)
    if options.on_late is not None:
        check_callable(step, options.on_late, ("late",), needs_result=False)
    window = create_join_window(options, step)
    if options.key is None:
        check_join_keys(step, stream._key, other._key)
    key = require_serde(options.key or stream._key or other._key, "key", step)
    value = require_value_serde(options.this_value or stream._value, "this_value", step)
    other_value = require_value_serde(options.other_value or other._value, "other_value", step)
    left = repartition_if_rekeyed(
        builder, stream, options.name and f"{options.name}-left", step, key, value
    )
    right = repartition_if_rekeyed(
        builder, other, options.name and f"{options.name}-right", step, key, other_value
    )
    graph.copartitioned.append((left, right))
    named = name_join_stores(graph, options, names)
    this_store = _create_window_store_spec(options.store, named.this, window, key, value, step)
    other_store = _create_window_store_spec(
        options.other_store, named.other, window, key, other_value, step
    )
    outer = None
    stores = [this_store, other_store]
    if options.kind is not JoinKind.INNER:
        waiting = create_outer_shared_store_spec(named.outer_shared, this_store, other_store)
        stores.append(waiting)
        outer = OuterJoinOptions(
            store_name=waiting.name,
            is_full_outer=options.kind is JoinKind.OUTER,
            window=window,
            joiner=join,
            emit_interval_ms=_to_non_negative_ms(options.emit_interval, "emit_interval", step),
        )
    for spec in stores:
        graph.declare_store(spec, owner=object())
    node = StreamJoinNode(
        name=names.merge,
        parents=(left, right),
        names=names,
        joiner=join,
        window=window,
        this_store=this_store.name,
        other_store=other_store.name,
        value=value,
        other_value=other_value,
        outer=outer,
        on_late=options.on_late,
    )
    graph.add_node(node)
    return type(stream)(builder, node, key, options.value)


def require_value_serde(serde: Serde[Any] | None, argument: str, step: str) -> Serde[Any]:
    """Return `serde`, or raise TopologyError if one side of a join has no value serde.

    Raises TopologyError that names the argument to pass.
    """
    if serde is None:
        side = "the stream" if argument == "this_value" else "the other stream"
        raise TopologyError(
            f"step {step!r} keeps the values of {side} and knows no value serde of it: pass "
            f"{argument}=serdes.…, or value= to the step that made the value"
        )
    if not isinstance(serde, Serde):
        raise TopologyError(f"step {step!r}: {argument}={serde!r} is not a serde")
    return serde


def repartition_if_rekeyed(
    builder: InternalStreamsBuilder,
    stream: Stream[Any, Any],
    base_name: str | None,
    step: str,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
) -> Node:
    """Return the step of `stream`, or a repartition behind it if its keys were changed.

    Behind it all records of a key are in one task.
    """
    if not stream._rekeyed:
        return stream._node
    return builder.add_repartition(stream._node, base_name or stream._node.name, step, key, value)


def adapt_joiner(step: str, joiner: Callable[..., Any], *, with_key: bool) -> Joiner:
    """Return a joiner of key, value and other value that calls the user's, with or without the key.

    Raises TopologyError if the user's joiner can't take these arguments.
    """
    if with_key:
        check_callable(step, joiner, ("key", "value", "other_value"))
        return joiner
    check_callable(step, joiner, ("value", "other_value"))
    return lambda _, value, other: joiner(value, other)


def name_join_steps(graph: Graph, name: str | None, kind: JoinKind) -> JoinStepNames:
    """Return the names of a join's steps as Kafka Streams gives them."""
    this = "outer-this" if kind is JoinKind.OUTER else "this"
    other = "other" if kind is JoinKind.INNER else "outer-other"
    if name is not None:
        return JoinStepNames(
            f"{name}-this-windowed",
            f"{name}-other-windowed",
            f"{name}-{this}-join",
            f"{name}-{other}-join",
            f"{name}-merge",
        )
    return JoinStepNames(
        graph.choose_step_name("KSTREAM-WINDOWEDTHIS"),
        graph.choose_step_name("KSTREAM-WINDOWEDOTHER"),
        graph.choose_step_name(
            "KSTREAM-OUTERTHIS" if kind is JoinKind.OUTER else "KSTREAM-JOINTHIS"
        ),
        graph.choose_step_name(
            "KSTREAM-JOINOTHER" if kind is JoinKind.INNER else "KSTREAM-OUTEROTHER"
        ),
        graph.choose_step_name("KSTREAM-MERGE"),
    )


class JoinStoreNames(NamedTuple):
    """Holds the generated names of a join's stores, for stores that the user did not name."""

    this: str
    other: str
    outer_shared: str


def name_join_stores(
    graph: Graph, options: StreamJoinOptions, names: JoinStepNames
) -> JoinStoreNames:
    """Return the names of a join's stores as Kafka Streams gives them.

    They are named after the join, or else after its steps; the shared one after the left side's
    store, where that has a name of its own (StreamJoinedStoreFactory, OuterStreamJoinStoreFactory).
    """
    given = _get_store_name(options.store)
    base = given or options.name
    if base is None:
        waiting = f"KSTREAM-OUTERSHARED-{names.merge.rpartition('-')[2]}-store"
        graph.generated_names.add(waiting)
    else:
        shared = "outer-shared-join" if options.kind is JoinKind.OUTER else "left-shared-join"
        waiting = f"{base}-{shared}-store"
    if options.kind is not JoinKind.INNER:
        waiting = graph.resolve_internal_name(waiting)
    this, other = f"{names.this_join}-store", f"{names.other_join}-store"
    return JoinStoreNames(
        this if given else graph.resolve_internal_name(this),
        other if _get_store_name(options.other_store) else graph.resolve_internal_name(other),
        waiting,
    )


def _get_store_name(store: str | Store | None) -> str | None:
    """Return the name that a user gave a store, if any."""
    return store.name if isinstance(store, Store) else store


def create_outer_shared_store_spec(name: str, this: StoreSpec, other: StoreSpec) -> StoreSpec:
    """Return the spec of the store that keeps both sides' records without a match.

    Its settings are those of the left side's store. Kafka Streams' outer join shared store.
    """
    settings = {k: v for k, v in this.topic_settings.items() if k not in _NOT_COMPACTED}
    return StoreSpec(
        name=name,
        key=create_timestamped_key_serde(this.key),
        value=create_left_or_right_values_serde(this.value, other.value),
        persistent=this.persistent,
        has_default_medium=this.has_default_medium,
        caching=False,
        logged=this.logged,
        topic_settings=settings,
    )


def create_join_window(options: StreamJoinOptions, step: str) -> JoinWindow:
    """Return the window of a join. Raises TopologyError for an impossible one (JoinWindows)."""
    before = options.within if options.before is None else options.before
    after = options.within if options.after is None else options.after
    if before is None or after is None:
        raise TopologyError(
            f"step {step!r}: a join of two streams is within a time: pass within=timedelta(...), "
            "or before= and after="
        )
    if options.within is not None:
        _to_non_negative_ms(options.within, "within", step)
    window = JoinWindow(
        before_ms=_to_signed_ms(before, "before", step),
        after_ms=_to_signed_ms(after, "after", step),
        grace_ms=_to_non_negative_ms(options.grace, "grace", step),
    )
    if window.size_ms < 0:
        raise TopologyError(
            f"step {step!r}: its window ends before it begins: from {-window.before_ms} ms to "
            f"{window.after_ms} ms"
        )
    return window


def _to_non_negative_ms(duration: Duration, argument: str, step: str) -> int:
    """Convert a duration to ms. Raises TopologyError if it is invalid or negative."""
    try:
        return duration_to_ms(duration, argument)
    except ValueError as error:
        raise TopologyError(f"step {step!r}: {error}") from None


def _to_signed_ms(duration: Duration, argument: str, step: str) -> int:
    """Convert a duration, which may be negative, to ms. Raises TopologyError if it is invalid."""
    if isinstance(duration, timedelta):
        return duration // timedelta(milliseconds=1)
    if not isinstance(duration, int) or isinstance(duration, bool):
        raise TopologyError(
            f"step {step!r}: {argument}={duration!r} is neither milliseconds nor a timedelta"
        )
    return duration


def _create_window_store_spec(
    store: str | Store | None,
    name: str,
    window: JoinWindow,
    key: Serde[Any],
    value: Serde[Any],
    step: str,
) -> StoreSpec:
    """Return the spec of the window store that keeps the records of one side of a join.

    It keeps a record for as long as a record of the other stream may come. Raises TopologyError for
    a store that doesn't keep what the join needs.
    """
    size_ms, retention_ms = window.size_ms, window.size_ms + window.grace_ms
    if store is None or isinstance(store, str):
        store = Store.default(name if store is None else store)
    if not isinstance(store, Store):
        raise TopologyError(f"step {step!r}: store={store!r} is neither a Store nor a name")
    name, spec = store.name or name, store.spec_fields
    key, value = store.key or key, store.value or value
    if store.kind is StoreKind.WINDOW and not spec["retain_duplicates"]:
        raise TopologyError(
            f"store {name!r} of step {step!r} keeps one value a window, and a join needs all: "
            "Store.window(..., retain_duplicates=True)"
        )
    if store.kind not in (StoreKind.WINDOW, StoreKind.KEY_VALUE):
        raise TopologyError(
            f"step {step!r} needs a window store, and {name!r} is a {store.kind} store"
        )
    if spec["window_size_ms"] not in (None, size_ms):
        raise TopologyError(
            f"store {name!r} of step {step!r} has size={spec['window_size_ms']} ms, and the "
            f"window of the join is {size_ms} ms (before and after)"
        )
    if spec["ttl_ms"] is not None:
        raise TopologyError(f"store {name!r} of step {step!r} is of windows: no ttl= there")
    if spec["retention_ms"] not in (None, retention_ms):
        raise TopologyError(
            f"store {name!r} of step {step!r} has retention={spec['retention_ms']} ms, and the "
            f"window of the join and its grace are {retention_ms} ms: "
            + ("leave it out" if store.kind is StoreKind.KEY_VALUE else "give it so many")
        )
    settings = _NOT_COMPACTED | dict(spec["topic_settings"])
    return StoreSpec(
        name=name,
        key=key,
        value=value,
        kind=StoreKind.WINDOW,
        persistent=spec["persistent"],
        caching=False,
        logged=spec["logged"],
        topic_settings=settings,
        retention_ms=retention_ms,
        window_size_ms=size_ms,
        retain_duplicates=True,
        rocksdb=spec["rocksdb"],
        has_default_medium=spec.get("has_default_medium", False),
    )
