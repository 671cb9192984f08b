"""Join a stream with a table or with a global table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streams.dsl.builder import known
from streams.dsl.functions import KEY_VALUE, callable_for
from streams.dsl.joins import JOINED, known_value, same_task, without_key
from streams.dsl.materialized import Store
from streams.dsl.routing import same_application
from streams.durations import Duration, duration_ms
from streams.errors import TopologyError
from streams.operators.stream_table_join import (
    Grace,
    KeyOf,
    join_table,
    join_table_later,
    time_of,
)
from streams.serdes import Serde
from streams.topology.finish import on_changelog
from streams.topology.nodes import StoreKind, StoreSpec

if TYPE_CHECKING:
    from streams.dsl.global_table import GlobalTable
    from streams.dsl.stream import Stream
    from streams.dsl.table import Table


def join_with_table(
    stream: Stream[Any, Any],
    table: Table[Any, Any],
    joiner: Callable[..., Any],
    *,
    left: bool,
    key: Serde[Any] | None,
    this_value: Serde[Any] | None,
    value: Serde[Any] | None,
    grace: Duration | None,
    with_key: bool,
    name: str | None,
) -> Stream[Any, Any]:
    """Add the join of a stream with a table and return its result.

    With `grace` a record waits in a buffer for the table's version of its time (KIP-923). Raises
    TopologyError naming the step.
    """
    builder, graph, view = stream._builder, stream._builder.graph, table._view
    kind = "KSTREAM-LEFTJOIN" if left else "KSTREAM-JOIN"
    step = graph.name(kind, name)
    same_application(step, stream, table)
    callable_for(step, joiner, ("key", *JOINED) if with_key else JOINED)
    join = joiner if with_key else without_key(joiner)
    key, this_value = key or stream._key or table._key, this_value or stream._value
    parent = same_task(builder, stream, name, step, key, this_value)
    graph.copartitioned.append((parent, table._node))
    stores = view.read_from()
    operator = join_table(view, join, left=left)
    if grace is not None:
        if not view.is_versioned:
            raise TopologyError(
                f"step {step!r} has grace={grace!r}, to join records with rows as they were: that "
                "needs a versioned table, Store.versioned(name, history=...), or leave grace out"
            )
        buffer = replace(
            Store.persistent(f"{step}-Buffer").spec(
                known(key, "key", step), known_value(this_value, "this_value", step), step=step
            ),
            kind=StoreKind.BUFFER,
            caching=False,
            time_of=time_of,
        )
        try:
            bound = on_changelog(builder.application_id, buffer)
            grace_buffer = Grace(duration_ms(grace, "grace"), bound)
        except ValueError as error:
            raise TopologyError(f"step {step!r}: {error}") from None
        _remembered_for(grace_buffer.ms, [graph.stores[name] for name in stores], step)
        graph.declare(buffer, owner=object())
        stores.append(buffer.name)
        operator = join_table_later(view, join, grace_buffer, left=left)
    node = builder.step(
        kind,
        parent,
        operator,
        name=step,
        stores=stores,
        joins_without_key=left,
        keeps_time=grace is not None,
    )
    return type(stream)(builder, node, key, value)


def _remembered_for(grace_ms: int, stores: Iterable[StoreSpec], step: str) -> None:
    """Raise TopologyError if a store's history is shorter than the grace of the join.

    The table's rows must be known as they were for as long as records may be late.
    """
    for store in stores:
        if store.history_ms is not None and store.history_ms < grace_ms:
            raise TopologyError(
                f"step {step!r} has a grace of {grace_ms} ms, and store {store.name!r} knows for "
                f"{store.history_ms} ms how rows were: make its history= at least the grace"
            )


def join_with_global_table(
    stream: Stream[Any, Any],
    table: GlobalTable[Any, Any],
    joiner: Callable[..., Any],
    *,
    left: bool,
    key_of: KeyOf | None,
    value: Serde[Any] | None,
    with_key: bool,
    name: str | None,
) -> Stream[Any, Any]:
    """Add the join of a stream with a global table and return its result.

    Raises TopologyError naming the step.
    """
    builder = stream._builder
    kind = "KSTREAM-LEFTJOIN"  # also of an inner join, as in Kafka Streams
    step = builder.graph.name(kind, name)
    same_application(step, stream, table)
    callable_for(step, joiner, ("key", *JOINED) if with_key else JOINED)
    if key_of is None:
        raise TopologyError(
            f"step {step!r} joins with a global table and has no key to look up: pass "
            "key=lambda key, value: ..."
        )
    callable_for(step, key_of, KEY_VALUE)
    join = joiner if with_key else without_key(joiner)
    operator = join_table(table._view, join, left=left, key_of=key_of)
    node = builder.step(kind, stream._node, operator, name=step, joins_without_key=left)
    return type(stream)(builder, node, stream._key, value, stream._rekeyed)
