"""Join a stream with a table or with a global table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from streams.common.durations import Duration, duration_to_ms
from streams.dsl.builder import require_serde
from streams.dsl.function_checks import KEY_VALUE_ARGUMENTS, check_callable
from streams.dsl.join_keys import check_join_keys
from streams.dsl.routing import check_same_application
from streams.dsl.stream_stream_joins import (
    adapt_joiner,
    repartition_if_rekeyed,
    require_value_serde,
)
from streams.errors import TopologyError
from streams.graph.materialized import Store
from streams.graph.nodes import StoreKind, StoreSpec
from streams.graph.step_traits import StepTraits
from streams.operators.stream_table_join import (
    JoinGrace,
    KeyOf,
    buffer_key_time_ms,
    join_records_after_grace,
    join_records_with_table,
)
from streams.serdes import Serde
from streams.topology.expand import bind_changelog_serdes

if TYPE_CHECKING:
    from streams.dsl.global_table import GlobalTable
    from streams.dsl.stream import Stream
    from streams.dsl.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJoinOptions:
    """Holds the options of a join with a table as the user gave them. Kafka Streams' Joined."""

    is_left: bool
    with_key: bool
    name: str | None
    key: Serde[Any] | None = None
    this_value: Serde[Any] | None = None
    value: Serde[Any] | None = None
    """The serde of the result."""
    grace: Duration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalTableJoinOptions:
    """Holds the options of a join with a global table as the user gave them."""

    is_left: bool
    with_key: bool
    name: str | None
    key: KeyOf | None = None
    """Returns the table's key for a key and a value."""
    value: Serde[Any] | None = None
    """The serde of the result."""


def join_with_table(
    stream: Stream[Any, Any],
    table: Table[Any, Any],
    joiner: Callable[..., Any],
    options: TableJoinOptions,
) -> Stream[Any, Any]:
    """Add the join of a stream with a table and return its result.

    With `grace` a record waits in a buffer for the table's version of its time (KIP-923). Raises
    TopologyError naming the step.
    """
    builder, graph, view = stream._builder, stream._builder.graph, table._view
    kind = "KSTREAM-LEFTJOIN" if options.is_left else "KSTREAM-JOIN"
    step, grace = graph.choose_step_name(kind, options.name), options.grace
    check_same_application(step, stream, table)
    join = adapt_joiner(step, joiner, with_key=options.with_key)
    check_join_keys(step, options.key or stream._key, table._key)
    key = options.key or stream._key or table._key
    this_value = options.this_value or stream._value
    parent = repartition_if_rekeyed(builder, stream, options.name, step, key, this_value)
    graph.copartitioned.append((parent, table._node))
    stores = view.require_readable_stores()
    operator = join_records_with_table(view, join, is_left_join=options.is_left)
    if grace is not None:
        if not view.is_versioned:
            raise TopologyError(
                f"step {step!r} has grace={grace!r}, to join records with rows as they were: that "
                "needs a versioned table, Store.versioned(name, history=...), or leave grace out"
            )
        buffer = replace(
            Store.persistent(f"{step}-Buffer").create_spec(
                require_serde(key, "key", step),
                require_value_serde(this_value, "this_value", step),
                step=step,
            ),
            kind=StoreKind.BUFFER,
            caching=False,
            extract_time_ms=buffer_key_time_ms,
        )
        try:
            bound = bind_changelog_serdes(builder.application_id, buffer)
            grace_buffer = JoinGrace(duration_to_ms(grace, "grace"), bound)
        except ValueError as error:
            raise TopologyError(f"step {step!r}: {error}") from None
        _check_history_covers_grace(
            grace_buffer.grace_ms, [graph.stores[name] for name in stores], step
        )
        graph.declare_store(buffer, owner=object())
        stores.append(buffer.name)
        operator = join_records_after_grace(view, join, grace_buffer, is_left_join=options.is_left)
    node = builder.add_step(
        kind,
        parent,
        operator,
        name=step,
        stores=stores,
        traits=StepTraits(joins_without_key=options.is_left),
        has_stream_time=grace is not None,
    )
    return type(stream)(builder, node, key, options.value)


def _check_history_covers_grace(grace_ms: int, stores: Iterable[StoreSpec], step: str) -> None:
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
    options: GlobalTableJoinOptions,
) -> Stream[Any, Any]:
    """Add the join of a stream with a global table and return its result.

    Raises TopologyError naming the step.
    """
    builder = stream._builder
    kind = "KSTREAM-LEFTJOIN"  # also of an inner join, as in Kafka Streams
    step = builder.graph.choose_step_name(kind, options.name)
    check_same_application(step, stream, table)
    join = adapt_joiner(step, joiner, with_key=options.with_key)
    if options.key is None:
        raise TopologyError(
            f"step {step!r} joins with a global table and has no key to look up: pass "
            "key=lambda key, value: ..."
        )
    check_callable(step, options.key, KEY_VALUE_ARGUMENTS)
    operator = join_records_with_table(
        table._view, join, is_left_join=options.is_left, key_of=options.key
    )
    node = builder.add_step(
        kind,
        stream._node,
        operator,
        name=step,
        traits=StepTraits(
            joins_without_key=options.is_left, looks_up_global_store=table.store.name
        ),
    )
    return type(stream)(builder, node, stream._key, options.value, stream._rekeyed)
