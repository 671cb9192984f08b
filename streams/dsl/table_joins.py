"""Declare the joins of Table, by key and by foreign key, with a type for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from streams.errors import TopologyError
from streams.graph.joined_view import JoinKind
from streams.graph.materialized import Store
from streams.graph.nodes import Partitioner
from streams.serdes import Serde

if TYPE_CHECKING:
    from streams.dsl.table import Table

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
V3 = TypeVar("V3")


class TableJoins(Generic[K, V]):
    """Adds `join`, `left_join` and `outer_join` to a `Table[K, V]`."""

    __slots__ = ()

    @overload
    def join(
        self,
        other: Table[K, V2],
        joiner: Callable[[V, V2], V3],
        *,
        foreign_key: None = None,
        value: Serde[V3] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V3]: ...
    @overload
    def join(
        self,
        other: Table[K2, V2],
        joiner: Callable[[V, V2], V3],
        *,
        foreign_key: Callable[[K, V], K2 | None],
        other_partitioner: Callable[[K2, None, int], int | None] | None = None,
        value: Serde[V3] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V3]: ...
    def join(
        self,
        other: Table[Any, V2],
        joiner: Callable[[V, V2], V3],
        *,
        foreign_key: Callable[[K, V], Any] | None = None,
        other_partitioner: Callable[[Any, None, int], int | None] | None = None,
        value: Serde[V3] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V3]:
        """Join the rows of two tables by key, or by a foreign key of this one.

        The result has a row `joiner(own value, other value)` for each key that both tables have. It
        changes when either of them does, and has the later of their timestamps. Both topics need
        the same number of partitions. `value` is the serde of the result, where one is needed.

        With `foreign_key(key, value)` it has a row for each of this table whose foreign key the
        other one has; the topics may have any number of partitions. A row whose foreign key is None
        is dropped. `other_partitioner(key, None, partitions)` says where the other topic has a key,
        if it was not written with the clients' own partitioner.

        >>> stock = app.table("stock", key=serdes.string, value=serdes.int64)
        >>> worth = prices.join(stock, lambda price, count: price * count, value=serdes.int64)
        >>> worth.to_stream().to("worth")
        >>> with TopologyTestDriver(app) as driver:
        ...     driver.topic("prices").pipe_many([("pen", 2), ("ink", 30)])
        ...     driver.topic("stock").pipe("pen", 100)
        ...     driver.topic("worth").read_table()
        {'pen': 200}
        """
        return _join_tables(
            self, JoinKind.INNER, other, joiner, foreign_key, value, store, name, other_partitioner
        )

    @overload
    def left_join(
        self,
        other: Table[K, V2],
        joiner: Callable[[V, V2 | None], V3],
        *,
        foreign_key: None = None,
        value: Serde[V3] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V3]: ...
    @overload
    def left_join(
        self,
        other: Table[K2, V2],
        joiner: Callable[[V, V2 | None], V3],
        *,
        foreign_key: Callable[[K, V], K2 | None],
        other_partitioner: Callable[[K2, None, int], int | None] | None = None,
        value: Serde[V3] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V3]: ...
    def left_join(
        self,
        other: Table[Any, V2],
        joiner: Callable[[V, V2 | None], V3],
        *,
        foreign_key: Callable[[K, V], Any] | None = None,
        other_partitioner: Callable[[Any, None, int], int | None] | None = None,
        value: Serde[V3] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V3]:
        """Join each row of this table with the other's row, or with None where there is none.

        The other value is None too where `foreign_key` returns None. The arguments are those of
        `join`.

        >>> stock = app.table("stock", key=serdes.string, value=serdes.int64)
        >>> run(prices.left_join(stock, lambda price, count: [price, count]))
        [('pen', [2, None]), ('ink', [30, None]), ('pen', [40, None])]
        """
        return _join_tables(
            self, JoinKind.LEFT, other, joiner, foreign_key, value, store, name, other_partitioner
        )

    def outer_join(
        self,
        other: Table[K, V2],
        joiner: Callable[[V | None, V2 | None], V3],
        *,
        foreign_key: None = None,
        value: Serde[V3] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V3]:
        """Join the rows of two tables for each key that either has; at most one value is None.

        >>> stock = app.table("stock", key=serdes.string, value=serdes.int64)
        >>> run(prices.outer_join(stock, lambda price, count: [price, count]))
        [('pen', [2, None]), ('ink', [30, None]), ('pen', [40, None])]
        """
        return _join_tables(self, JoinKind.OUTER, other, joiner, foreign_key, value, store, name)


def _join_tables(
    table: Any,
    kind: JoinKind,
    other: Table[Any, Any],
    joiner: Callable[[Any, Any], Any],
    foreign_key: Callable[[Any, Any], Any] | None,
    value: Serde[Any] | None,
    store: str | Store | None,
    name: str | None,
    other_partitioner: Partitioner | None = None,
) -> Table[Any, Any]:
    """Join with another table by key, or by foreign key if one is given."""
    from streams.dsl.foreign_key_joins import join_by_foreign_key  # they import Table
    from streams.dsl.table_table_joins import join_tables

    if foreign_key is not None:
        return join_by_foreign_key(
            kind,
            table,
            other,
            joiner,
            foreign_key,
            other_partitioner,
            value=value,
            store=store,
            name=name,
        )
    if other_partitioner is not None:
        raise TopologyError(
            f"step {table._builder.graph.choose_step_name('KTABLE-MERGE', name)!r}: "
            "other_partitioner= is "
            "for joins by a foreign_key; others meet where the topics have their keys"
        )
    return join_tables(kind, table, other, joiner, value=value, store=store, name=name)
