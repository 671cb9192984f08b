"""Define Table, the latest value of each key, and the steps that turn it into others.

A step without `store=` materializes nothing: what it forwards is computed on the way. Where a later
step needs a table's values, or the old value beside the new one, the source at its root gets a
store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, overload

from streams.dsl.builder import InternalStreamsBuilder, get_store_or_default_name
from streams.dsl.function_checks import KEY_VALUE_ARGUMENTS, VALUE_ARGUMENTS, check_callable
from streams.dsl.kafka_streams_names import DslBase
from streams.dsl.suppressed import Suppressed, suppress_table
from streams.dsl.table_joins import TableJoins
from streams.errors import TopologyError
from streams.graph.materialized import Store
from streams.graph.nodes import Binding, Node, StoreKind, StoreSpec
from streams.graph.step_traits import StepTraits
from streams.graph.views import DerivedView, SourceView, TableView
from streams.operators.table_source import read_table_updates
from streams.operators.table_values import (
    ComputeValue,
    compute_table_values,
    create_filter_computation,
    create_filter_not_computation,
    create_map_computation,
)
from streams.operators.to_stream import forward_as_records
from streams.processor.processor_supplier import ValueTransformerSupplier
from streams.processor.transformer import ValueTransformer
from streams.serdes import Serde

if TYPE_CHECKING:
    from streams.dsl.grouped_table import GroupedTable
    from streams.dsl.stream import Stream

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
V3 = TypeVar("V3")

TABLE_STORE_KINDS = (StoreKind.KEY_VALUE, StoreKind.VERSIONED)
"""The kinds of stores in which a table may be materialized."""


@dataclass(frozen=True, slots=True, repr=False)
class Table(DslBase, TableJoins[K, V]):
    """Represents the latest value of each key (Kafka Streams' KTable).

    Its methods are KTable's, in Python's spelling: `map_values` is `mapValues`; a join with
    `foreign_key=` is KIP-213's. `store=` keeps the result in a store that can be queried
    (Materialized). All raise TopologyError, naming the step, for a function that can't be called
    with the step's arguments, an illegal name, a store of the wrong kind, or a serde that is needed
    and unknown.

    The examples of its methods go on from this one:

    >>> app = App("shop")
    >>> prices = app.table("prices", key=serdes.string, value=serdes.int64)
    >>> def run(table):
    ...     table.to_stream().to("result", value=serdes.json)
    ...     with TopologyTestDriver(app) as driver:
    ...         driver.topic("prices").pipe_many([("pen", 2), ("ink", 30), ("pen", 40)])
    ...         return driver.topic("result").read_pairs()
    """

    _builder: InternalStreamsBuilder
    _node: Node
    _key: Serde[Any] | None
    _value: Serde[Any] | None
    _view: TableView

    def filter(
        self,
        predicate: Callable[[K, V], object],
        *,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V]:
        """Keep rows for which `predicate(key, value)` is true; delete one when it becomes false.

        >>> run(prices.filter(lambda item, price: price < 35))
        [('pen', 2), ('ink', 30), ('pen', None)]
        """
        return self._filter_rows(predicate, create_filter_computation(predicate), store, name)

    def filter_not(
        self,
        predicate: Callable[[K, V], object],
        *,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V]:
        """Keep rows for which `predicate(key, value)` is false; delete one when it becomes true.

        >>> run(prices.filter_not(lambda item, price: price < 35))
        [('pen', None), ('ink', None), ('pen', 40)]
        """
        return self._filter_rows(predicate, create_filter_not_computation(predicate), store, name)

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

        >>> run(prices.map_values(lambda price: price / 100))
        [('pen', 0.02), ('ink', 0.3), ('pen', 0.4)]
        """
        return self._derive_table(
            "KTABLE-MAPVALUES",
            mapper,
            create_map_computation(mapper),
            value or self._value,
            store,
            name,
        )

    def suppress(self, until: Suppressed, *, name: str | None = None) -> Table[K, V]:
        """Hold updates back, so that only the last one of a key is emitted.

        Those of a window until it closes (`until_window_closes`), or for a time
        (`until_time_limit`). Updates wait in the store `<name>-store`, which the step's `name`
        names.

        >>> run(prices.suppress(until_time_limit(timedelta(minutes=5), max_records=1)))
        [('ink', 30)]
        """
        return suppress_table(self, until, name)

    def transform_values(
        self,
        transformer: ValueTransformerSupplier[K, V, V2] | Callable[[], ValueTransformer[K, V, V2]],
        *,
        stores: Sequence[str | Store] = (),
        value: Serde[V2] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
        co_partitioned: bool = True,
    ) -> Table[K, V2]:
        """Replace each row's value by what a ValueTransformer, which may use stores, returns.

        `transformer` is its class, a function making one, or a `ValueTransformerSupplier`. The
        value's serde stays unless `value` is given. `stores` names more stores than the class does,
        or brings them; `store` keeps the result. `co_partitioned` is as in `Stream.process`.

        >>> class Label(ValueTransformer):
        ...     def transform(self, item, price):
        ...         return f"{item} for {price}"
        >>> run(prices.transform_values(Label))
        [('pen', 'pen for 2'), ('ink', 'ink for 30'), ('pen', 'pen for 40')]
        """
        from streams.dsl.transform_table_values import (
            transform_table_values,
        )  # imported here: it imports this module

        return transform_table_values(
            self, transformer, stores, value, store, name, co_partitioned=co_partitioned
        )

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

        >>> by_length = prices.group_by(
        ...     lambda item, price: (len(item), price), key=serdes.int64, value=serdes.int64
        ... )
        >>> by_length.count(store="items").to_stream().to("items-by-length")
        >>> with TopologyTestDriver(app) as driver:
        ...     driver.topic("prices").pipe_many([("pen", 2), ("ink", 30), ("paper", 40)])
        ...     driver.topic("items-by-length").read_table()
        {3: 2, 5: 1}
        """
        from streams.dsl.grouped_table import group_table  # imported here: it imports this module

        return group_table(self, selector, key, value, name)

    @overload
    def to_stream(self, *, name: str | None = None) -> Stream[K, V]: ...

    @overload
    def to_stream(
        self,
        mapper: Callable[[K, V], K2],
        *,
        key: Serde[K2] | None = None,
        name: str | None = None,
    ) -> Stream[K2, V]: ...

    def to_stream(
        self,
        mapper: Callable[[K, V], Any] | None = None,
        *,
        key: Serde[Any] | None = None,
        name: str | None = None,
    ) -> Stream[Any, V]:
        """Return the table's updates as a stream; a deletion has the value None.

        With a `mapper` their keys are `mapper(key, value)`, with the serde `key`, as with
        `select_key` behind it.

        >>> prices.to_stream().filter(lambda item, price: price is None).to("gone")
        >>> with TopologyTestDriver(app) as driver:
        ...     driver.topic("prices").pipe_many([("pen", 2), ("pen", None)])
        ...     driver.topic("gone").read_pairs()
        [('pen', None)]
        """
        from streams.dsl.stream import Stream  # imported here: it imports this module

        if key is not None and mapper is None:
            raise TopologyError(
                f"to_stream of {self._node.name!r}: key= is the serde of a mapper's keys, and "
                "there is no mapper: the stream has the table's keys with their serde"
            )
        node = self._builder.add_step(
            "KTABLE-TOSTREAM",
            self._node,
            forward_as_records,
            name=name,
            traits=StepTraits(only_forwards=True, keeps_latest=True, keeps_keys=True),
        )
        stream: Stream[Any, V] = Stream(self._builder, node, self._key, self._value)
        return stream if mapper is None else stream.select_key(mapper, key=key)

    def _filter_rows(
        self,
        predicate: Callable[[K, V], object],
        compute: ComputeValue,
        store: str | Store | None,
        name: str | None,
    ) -> Table[K, V]:
        """Add a filter step and return its table."""
        return self._derive_table(
            "KTABLE-FILTER", predicate, compute, self._value, store, name, is_filter=True
        )

    def _derive_table(
        self,
        kind: str,
        function: Callable[..., object],
        compute: ComputeValue,
        value: Serde[Any] | None,
        store: str | Store | None,
        name: str | None,
        *,
        is_filter: bool = False,
    ) -> Table[K, Any]:
        """Add a step that computes each row from this table's row, and return its table."""
        builder = self._builder
        step = builder.graph.choose_step_name(kind, name)
        arguments = KEY_VALUE_ARGUMENTS if is_filter else VALUE_ARGUMENTS
        check_callable(step, function, arguments, step_with_key="transform_values")
        spec = None
        if store is not None:
            spec = builder.declare_own_store(store, step, self._key, value, kinds=TABLE_STORE_KINDS)
        view = DerivedView(self._view, compute, spec)
        # With old values deletions of rows that never were need not be forwarded. They are asked
        # for only if that makes no store; rows that expire have no old values.
        if is_filter:
            view.sends_old_values = self._view.enable_sending_old_values(force=False)
        node = builder.add_step(
            kind,
            self._node,
            compute_table_values(view, self._view, is_filter=is_filter),
            name=step,
            stores=[] if spec is None else [spec.name],
            emits_updates=True,
            traits=StepTraits(computes_rows=True),
        )
        return Table(builder, node, self._key, value if spec is None else spec.value, view)


def refuse_expiring_rows(step: str, table: Table[Any, Any], result_description: str) -> None:
    """Raise TopologyError if rows of `table` expire (`ttl=`) without an update that says so.

    What `step` makes of them would keep what was made of a row that has expired, and count it again
    when its key returns (docs/decisions/0027). `result_description` names it in the message.
    """
    store = table._view.ttl_store
    if store is not None:
        raise TopologyError(
            f"step {step!r} can't make {result_description} of a table whose rows expire in store "
            f"{store!r} "
            "(ttl=): nothing passes on that a row has expired, so what was made of it would stay, "
            "and be counted again when its key returns. Leave ttl= out and delete rows by records "
            'without a value, as in docs/tables.md, "Rows that expire"'
        )


def create_table(
    builder: InternalStreamsBuilder,
    kind: str,
    parent: Node,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    store: str | Store | None,
    name: str | None,
    traits: StepTraits,
) -> Table[Any, Any]:
    """Add a step that takes the records of `parent` as updates of a table, and return the table.

    It is materialized if `store` is given, or as soon as a step needs its values.
    """
    step = builder.graph.choose_step_name(kind, name)
    store_or_name = get_store_or_default_name(store, step)

    def create_spec() -> StoreSpec:
        return builder.create_store_spec(store_or_name, step, key, value, kinds=TABLE_STORE_KINDS)

    # The node needs its operator, which needs the view, which needs the node.
    bound: list[SourceView] = []

    def bind_operator(at: Binding) -> Any:
        return read_table_updates(bound[0])(at)

    node = builder.add_step(
        kind, parent, bind_operator, name=step, emits_updates=True, traits=traits
    )
    view = SourceView(builder.graph, node, create_spec)
    bound.append(view)
    if store is not None:
        view.materialize_in_store()
    return Table(builder, node, key, value, view)
