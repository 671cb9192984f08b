"""Define GroupedTable, which aggregates a table's rows by another key.

Rows always go through a repartition topic: one that leaves a group is subtracted from it, and one
that comes is added, each where the group is. The topic's records carry the old and the new value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streams import serdes
from streams.dsl.aggregate_checks import check_returns_aggregate
from streams.dsl.aggregation_arguments import refuse_wrong_arguments
from streams.dsl.builder import InternalStreamsBuilder, get_store_or_default_name, require_serde
from streams.dsl.function_checks import KEY_VALUE_ARGUMENTS, check_callable
from streams.dsl.kafka_streams_names import DslBase
from streams.dsl.table import TABLE_STORE_KINDS, Table, refuse_expiring_rows
from streams.errors import TopologyError
from streams.graph.materialized import Store
from streams.graph.nodes import Node
from streams.graph.views import StoredView
from streams.operators.table_aggregate import (
    ChangeFold,
    aggregate_changes,
    create_aggregate_fold,
    create_count_fold,
    create_reduce_fold,
)
from streams.operators.table_group import Selector, create_group_changes
from streams.serdes import Serde

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")

_FOLD_ARGUMENTS = ("key", "value", "aggregate")


@dataclass(frozen=True, slots=True, repr=False)
class GroupedTable(DslBase, Generic[K, V]):
    """Represents a table's rows grouped by a key that a selector chose.

    Kafka Streams' KGroupedTable. All methods raise TopologyError, naming the step, for a function
    that can't be called with the step's arguments, or a store of the wrong kind.

    The examples of its methods go on from this one:

    >>> app = App("shop")
    >>> text = serdes.string
    >>> homes = app.table("homes", key=text, value=text)
    >>> by_city = homes.group_by(lambda name, city: (city, name), key=text, value=text)
    >>> def run(table):
    ...     table.to_stream().to("result")
    ...     with TopologyTestDriver(app) as driver:
    ...         for name, city in (("ann", "Faro"), ("bob", "Faro"), ("ann", "Lagos")):
    ...             driver.topic("homes").pipe(name, city)
    ...         return driver.topic("result").read_table()
    """

    _builder: InternalStreamsBuilder
    _node: Node
    _key: Serde[Any]
    _value: Serde[Any]
    _change_serde: Serde[Any]
    """The serde of changes (new and old value) of such values."""
    _name: str | None
    """The name of the one repartition topic for all aggregations; None: each has its own."""

    @refuse_wrong_arguments
    def count(self, *, store: str | Store | None = None, name: str | None = None) -> Table[K, int]:
        """Count the rows of each group into a table; 0 for a group that has lost all its rows.

        >>> run(by_city.count(store="inhabitants"))
        {'Faro': 1, 'Lagos': 1}
        """
        return self._add_aggregation(
            "KTABLE-AGGREGATE", create_count_fold(), serdes.int64, store, name
        )

    @refuse_wrong_arguments
    def reduce(
        self,
        adder: Callable[[V, V], V | None],
        subtractor: Callable[[V, V], V | None],
        *,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V]:
        """Combine the values of each group's rows into a table.

        `adder(so_far, value)` is called for a row that comes, `subtractor(so_far, value)` for one
        that goes; for a row that changes first the subtractor. The first value is taken as it is;
        None deletes the group.

        >>> def remove(names, name):
        ...     return names.replace(name, "")
        >>> run(by_city.reduce(lambda names, name: names + name, remove))
        {'Faro': 'bob', 'Lagos': 'ann'}
        """
        step = self._builder.graph.choose_step_name("KTABLE-REDUCE", name)
        for function in (adder, subtractor):
            check_callable(step, function, ("so_far", "value"))
        return self._add_aggregation(
            "KTABLE-REDUCE", create_reduce_fold(adder, subtractor), self._value, store, name
        )

    @refuse_wrong_arguments
    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A | None],
        subtractor: Callable[[K, V, A], A | None],
        *,
        value: Serde[A] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, A]:
        """Fold the values of each group's rows into a table.

        `adder(key, value, aggregate)` is called for a row that comes, `subtractor(key, value,
        aggregate)` for one that goes. Both return the next aggregate, and may change the one that
        they are handed; the first is `initializer()`. `value` is the serde of the aggregate, unless
        the store has one. None deletes the group.

        >>> def leave(city, name, names):
        ...     return [each for each in names if each != name]
        >>> def join(city, name, names):
        ...     return [*names, name]
        >>> run(by_city.aggregate(list, join, leave, value=serdes.json))
        {'Faro': ['bob'], 'Lagos': ['ann']}
        """
        step = self._builder.graph.choose_step_name("KTABLE-AGGREGATE", name)
        check_callable(step, initializer, ())
        for function in (adder, subtractor):
            check_callable(step, function, _FOLD_ARGUMENTS)
        check_returns_aggregate(step, initializer, adder, subtractor)
        if value is None and not (isinstance(store, Store) and store.value):
            raise TopologyError(f"step {step!r} needs the serde of its aggregate: value=serdes.…")
        folding = create_aggregate_fold(initializer, adder, subtractor)
        return self._add_aggregation("KTABLE-AGGREGATE", folding, value, store, name)

    def _add_aggregation(
        self,
        kind: str,
        folding: ChangeFold,
        value: Serde[Any] | None,
        store: str | Store | None,
        name: str | None,
    ) -> Table[Any, Any]:
        """Add an aggregation behind a repartition topic and return its table."""
        builder = self._builder
        step = builder.graph.choose_step_name(kind, name)
        store_or_name = get_store_or_default_name(store, step)
        spec = builder.declare_own_store(
            store_or_name, step, self._key, value, kinds=TABLE_STORE_KINDS
        )
        if spec.ttl_ms is not None:
            raise TopologyError(
                f"step {step!r} aggregates the rows of a table, and store {spec.name!r} has ttl=: "
                "a group would expire while its rows are there, and start anew with the next one. "
                "Leave ttl= out: a group goes when its subtractor returns None"
            )
        view = StoredView(spec)
        rows = builder.add_repartition(
            self._node,
            self._name or spec.name,
            step,
            self._key,
            self._change_serde,
            keeps_null_keys=True,
        )
        node = builder.add_step(
            kind,
            rows,
            aggregate_changes(view, folding),
            name=step,
            stores=[spec.name],
            emits_updates=True,
        )
        return Table(builder, node, spec.key, spec.value, view)


def group_table(
    table: Table[Any, Any],
    selector: Selector,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    name: str | None,
) -> GroupedTable[Any, Any]:
    """Group the rows of `table` by the key and value that `selector` returns.

    Raises TopologyError naming the step.
    """
    builder = table._builder
    step = builder.graph.choose_step_name("KTABLE-SELECT", name)
    check_callable(step, selector, KEY_VALUE_ARGUMENTS)
    key, value = require_serde(key, "key", step), require_serde(value, "value", step)
    refuse_expiring_rows(step, table, "groups")
    table._view.enable_sending_old_values()
    operator = create_group_changes(table._view, selector, key)
    node = builder.add_step("KTABLE-SELECT", table._node, operator, name=step)
    return GroupedTable(builder, node, key, value, serdes.changed(value), name)
