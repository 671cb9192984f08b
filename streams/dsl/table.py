"""Table: the latest value of each key, and the steps that make another table or a stream of it.

A step without `store=` materializes nothing: what it forwards is computed on the way. Where a later
step needs a table's values, or the old value beside the new one, the source at its root gets a
store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from streams.dsl.builder import Builder
from streams.dsl.functions import KEY_VALUE, VALUE, callable_for
from streams.dsl.instead import Instead
from streams.dsl.materialized import Store
from streams.dsl.suppressed import Suppressed, suppressed
from streams.errors import TopologyError
from streams.operators.table_source import table_source
from streams.operators.table_values import Computed, dropped_if, kept_if, mapped, table_values
from streams.operators.to_stream import to_stream
from streams.processor.transformer import ValueTransformer
from streams.serdes import Serde
from streams.topology.joined_view import JoinKind
from streams.topology.nodes import Binding, Node, Partitioner, StoreKind, StoreSpec
from streams.topology.views import DerivedView, SourceView, View

if TYPE_CHECKING:
    from streams.dsl.grouped_table import GroupedTable
    from streams.dsl.stream import Stream

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
V3 = TypeVar("V3")

KINDS = (StoreKind.KEY_VALUE, StoreKind.VERSIONED)
"""The kinds of stores in which a table may be materialized."""


@dataclass(frozen=True, slots=True, repr=False)
class Table(Instead, Generic[K, V]):
    """Represents the latest value of each key (Kafka Streams' KTable)."""

    _builder: Builder
    _node: Node
    _key: Serde[Any] | None
    _value: Serde[Any] | None
    _view: View

    def filter(
        self,
        predicate: Callable[[K, V], object],
        *,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V]:
        """Keep rows for which `predicate(key, value)` is true; delete one when it becomes false."""
        return self._filtered(predicate, kept_if(predicate), store, name)

    def filter_not(
        self,
        predicate: Callable[[K, V], object],
        *,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V]:
        """Keep rows for which `predicate(key, value)` is false; delete one when it becomes true."""
        return self._filtered(predicate, dropped_if(predicate), store, name)

    def map_values(
        self,
        mapper: Callable[[V], V2],
        *,
        value: Serde[V2] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V2]:
        """Replace each row's value by `mapper(value)`.

        The value's serde stays unless `value` is given.
        """
        return self._derived(
            "KTABLE-MAPVALUES", mapper, mapped(mapper), value or self._value, store, name
        )

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
        """
        return self._joined(
            JoinKind.INNER, other, joiner, foreign_key, value, store, name, other_partitioner
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
        """
        return self._joined(
            JoinKind.LEFT, other, joiner, foreign_key, value, store, name, other_partitioner
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
        """Join the rows of two tables for each key that either has; at most one value is None."""
        return self._joined(JoinKind.OUTER, other, joiner, foreign_key, value, store, name)

    def suppress(self, until: Suppressed, *, name: str | None = None) -> Table[K, V]:
        """Hold updates back, so that only the last one of a key is emitted.

        Those of a window until it closes (`until_window_closes`), or for a time
        (`until_time_limit`). Updates wait in the store `<name>-store`, which the step's `name`
        names.
        """
        return suppressed(self, until, name)

    def transform_values(
        self,
        transformer: Callable[[], ValueTransformer[K, V, V2]],
        *,
        stores: Sequence[str | Store] = (),
        value: Serde[V2] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V2]:
        """Replace each row's value by what a ValueTransformer, which may use stores, returns.

        `transformer` is its class, or a function making one. The value's serde stays unless `value`
        is given. `stores` names more stores than the class does, or brings them; `store` keeps the
        result.
        """
        from streams.dsl.transformed import transformed  # imported here: it imports this module

        return transformed(self, transformer, stores, value, store, name)

    def group_by(
        self,
        selector: Callable[[K, V], tuple[K2, V2] | None],
        *,
        key: Serde[K2] | None = None,
        value: Serde[V2] | None = None,
        name: str | None = None,
    ) -> GroupedTable[K2, V2]:
        """Group the rows by another key, to aggregate them.

        `selector(key, value)` returns the key of a row's group and its value there, or None for a
        row that is in no group. Rows go through a repartition topic; `name` names it, else each
        aggregation's store does.
        """
        from streams.dsl.grouped_table import grouped  # imported here: it imports this module

        return grouped(self, selector, key, value, name)

    def to_stream(self, *, name: str | None = None) -> Stream[K, V]:
        """Return the table's updates as a stream; a deletion has the value None."""
        from streams.dsl.stream import Stream  # imported here: it imports this module

        node = self._builder.step(
            "KTABLE-TOSTREAM", self._node, to_stream, name=name, only_passes_on=True
        )
        return Stream(self._builder, node, self._key, self._value)

    def _joined(
        self,
        kind: JoinKind,
        other: Table[Any, Any],
        joiner: Callable[[Any, Any], Any],
        foreign_key: Callable[[Any, Any], Any] | None,
        value: Serde[Any] | None,
        store: str | Store | None,
        name: str | None,
        other_partitioner: Partitioner | None = None,
    ) -> Table[K, Any]:
        """Join with another table by key, or by foreign key if one is given."""
        from streams.dsl.foreign_key import join_by_foreign_key  # it imports this module
        from streams.dsl.table_joins import joined

        if foreign_key is not None:
            return join_by_foreign_key(
                kind,
                self,
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
                f"step {self._builder.graph.name('KTABLE-MERGE', name)!r}: other_partitioner= is "
                "for joins by a foreign_key; others meet where the topics have their keys"
            )
        return joined(kind, self, other, joiner, value=value, store=store, name=name)

    def _filtered(
        self,
        predicate: Callable[[K, V], object],
        computed: Computed,
        store: str | Store | None,
        name: str | None,
    ) -> Table[K, V]:
        """Add a filter step and return its table."""
        return self._derived(
            "KTABLE-FILTER", predicate, computed, self._value, store, name, filters=True
        )

    def _derived(
        self,
        kind: str,
        function: Callable[..., object],
        computed: Computed,
        value: Serde[Any] | None,
        store: str | Store | None,
        name: str | None,
        *,
        filters: bool = False,
    ) -> Table[K, Any]:
        """Add a step that computes each row from this table's row, and return its table."""
        builder = self._builder
        step = builder.graph.name(kind, name)
        callable_for(step, function, KEY_VALUE if filters else VALUE)
        spec = None
        if store is not None:
            spec = builder.own_store(store, step, self._key, value, kinds=KINDS)
        view = DerivedView(self._view, computed, spec)
        # With old values deletions of rows that never were need not be forwarded. They are asked
        # for only if that makes no store; rows that expire have no old values.
        if filters:
            view.sends_old = self._view.send_old(force=False)
        node = builder.step(
            kind,
            self._node,
            table_values(view, self._view, filters=filters),
            name=step,
            stores=[] if spec is None else [spec.name],
            updates=True,
        )
        return Table(builder, node, self._key, value if spec is None else spec.value, view)


def refuse_expiring_rows(step: str, table: Table[Any, Any], result: str) -> None:
    """Raise TopologyError if rows of `table` expire (`ttl=`) without an update that says so.

    What `step` makes of them would keep what was made of a row that has expired, and count it again
    when its key returns (docs/decisions/0027). `result_description` names it in the message.
    """
    store = table._view.expires_in
    if store is not None:
        raise TopologyError(
            f"step {step!r} can't make {result} of a table whose rows expire in store {store!r} "
            "(ttl=): nothing passes on that a row has expired, so what was made of it would stay, "
            "and be counted again when its key returns. Leave ttl= out and delete rows by records "
            'without a value, as in docs/tables.md, "Rows that expire"'
        )


def table_of(
    builder: Builder,
    kind: str,
    parent: Node,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    store: str | Store | None,
    name: str | None,
) -> Table[Any, Any]:
    """Return the table whose changes are the records of `parent`.

    It is materialized if `store` is given, or as soon as a step needs its values.
    """
    step = builder.graph.name(kind, name)
    store_or_name = store or f"{step}-STATE-STORE"

    def create_spec() -> StoreSpec:
        return builder.store_for(store_or_name, step, key, value, kinds=KINDS)

    # The node needs its operator, which needs the view, which needs the node.
    bound: list[SourceView] = []

    def bind_operator(at: Binding) -> Any:
        return table_source(bound[0])(at)

    node = builder.step(kind, parent, bind_operator, name=step, updates=True)
    view = SourceView(builder.graph, node, create_spec)
    bound.append(view)
    if store is not None:
        view.keep()
    return Table(builder, node, key, value, view)
