"""Define Cogrouped, which folds several groups into one table, each by a function of its own.

Each group's step writes the store that they share, and a last step brings their updates together.
All groups have the same keys, and the topics that they are read from have as many partitions
(KIP-150).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from state.windowed import Windowed
from streams.dsl.aggregate_checks import check_returns_aggregate
from streams.dsl.aggregation_arguments import refuse_wrong_arguments
from streams.dsl.builder import InternalStreamsBuilder, get_store_or_default_name, require_serde
from streams.dsl.function_checks import check_callable
from streams.dsl.kafka_streams_names import DslBase
from streams.dsl.table import TABLE_STORE_KINDS, Table
from streams.dsl.windowed import (
    EmitWhen,
    check_merger,
    choose_emit_on_close,
    create_windowed_key_serde,
    create_windowed_operator,
    declare_window_store,
)
from streams.errors import TopologyError
from streams.graph.materialized import Store
from streams.graph.nodes import Binding, ForwardUpdate, Node, Operator, StoreSpec
from streams.graph.views import StoredView, TableView
from streams.operators.aggregate import aggregate_records, create_aggregate_fold
from streams.operators.folding import WindowFold
from streams.operators.lateness import LateRecord
from streams.serdes import Serde
from streams.windows import Windows

if TYPE_CHECKING:
    from streams.dsl.grouped import Grouped

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")

_AGGREGATE_KIND = "COGROUPKSTREAM-AGGREGATE"
_MERGE_KIND = "COGROUPKSTREAM-MERGE"
Aggregator = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, slots=True, repr=False)
class Cogrouped(DslBase, Generic[K, A]):
    """Represents groups that share a key, each with the function that adds its records.

    Kafka Streams' CogroupedKStream.

    The examples of its methods go on from this one:

    >>> app = App("shop")
    >>> orders = app.stream("orders", key=serdes.string, value=serdes.int64).group_by_key()
    >>> returns = app.stream("returns", key=serdes.string, value=serdes.int64).group_by_key()
    >>> balance = orders.cogroup(lambda name, total, sum: sum + total)
    >>> def run(table):
    ...     table.to_stream().to("result")
    ...     with TopologyTestDriver(app) as driver:
    ...         driver.topic("orders").pipe("ann", 50, timestamp_ms=0)
    ...         driver.topic("returns").pipe("ann", 20, timestamp_ms=1_000)
    ...         return {str(key): sum for key, sum in driver.topic("result").read_pairs()}
    """

    _builder: InternalStreamsBuilder
    _groups: tuple[tuple[Grouped[Any, Any], Aggregator], ...]

    @property
    def _node(self) -> Node:
        return self._groups[0][0]._node

    def cogroup(self, other: Grouped[K, V], aggregator: Callable[[K, V, A], A]) -> Cogrouped[K, A]:
        """Add another group, with `aggregator(key, value, aggregate)` for its records.

        >>> balance = balance.cogroup(returns, lambda name, total, sum: sum - total)
        >>> run(balance.aggregate(int, value=serdes.int64, store="balances"))
        {'ann': 30}
        """
        return Cogrouped(self._builder, (*self._groups, check_cogroup(self, other, aggregator)))

    @refuse_wrong_arguments
    def aggregate(
        self,
        initializer: Callable[[], A],
        *,
        value: Serde[A] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, A]:
        """Fold the records of all groups by key into a table; see `Grouped.aggregate`.

        >>> run(balance.aggregate(int, value=serdes.int64, store="totals"))
        {'ann': 50}
        """
        builder = self._builder
        step = builder.graph.choose_step_name(_MERGE_KIND, name)
        check_callable(step, initializer, ())
        check_returns_aggregate(step, initializer, *(each for _, each in self._groups))
        _require_aggregate_serde(step, value, store)
        key = self.require_key_serde(step)
        store_or_name = get_store_or_default_name(store, step)
        spec = builder.declare_own_store(store_or_name, step, key, value, kinds=TABLE_STORE_KINDS)

        def create_operator(view: TableView, aggregator: Aggregator) -> Operator:
            return aggregate_records(view, create_aggregate_fold(initializer, aggregator))

        return self.add_aggregations(spec, key, create_operator, name)

    def windowed_by(self, windows: Windows) -> WindowedCogroup[K, A]:
        """Divide each key's records into windows of time: one of `streams.windows`.

        >>> hourly = balance.windowed_by(windows.tumbling(timedelta(hours=1)))
        >>> run(hourly.aggregate(int, value=serdes.int64))
        {'[ann@0/3600000]': 50}
        """
        if not isinstance(windows, Windows):
            raise TopologyError(
                f"windowed_by({windows!r}): take windows.tumbling, hopping, sliding, session or "
                "unlimited"
            )
        return WindowedCogroup(self, windows)

    def require_key_serde(self, step: str) -> Serde[Any]:
        """Return the key serde of the first group that has one.

        Raises TopologyError if none does.
        """
        serdes = (group._key for group, _ in self._groups if group._key is not None)
        return require_serde(next(serdes, None), "key", step)

    def add_aggregations(
        self,
        spec: StoreSpec,
        key: Serde[Any],
        create_operator: Callable[[TableView, Aggregator], Operator],
        name: str | None,
        *,
        grace_ms: int | None = None,
        on_close: bool = False,
    ) -> Table[Any, Any]:
        """Add a step for each group that writes the store `spec`; return the table of the store.

        `grace_ms` is the grace of the windows, None without windows. With `on_close` all steps have
        the stream time of the first one, so that each window closes once.
        """
        builder, view = self._builder, StoredView(spec)
        parents = self._repartition_parents(spec, name)
        if len(parents) > 1:
            builder.graph.copartitioned.append(tuple(parents))
        steps: list[Node] = []
        for number, (parent, (_, aggregator)) in enumerate(zip(parents, self._groups, strict=True)):
            operator = create_operator(view, aggregator)
            steps.append(
                builder.add_step(
                    _AGGREGATE_KIND,
                    parent,
                    _share_stream_time(operator, steps) if on_close else operator,
                    name=None if name is None else f"{name}-cogroup-agg-{number}",
                    stores=[spec.name],
                    emits_updates=True,
                    has_stream_time=grace_ms is not None and not (on_close and steps),
                    grace_ms=grace_ms,
                )
            )
        merged = builder.add_merge_step(
            _MERGE_KIND,
            steps,
            _forward_updates,
            name=None if name is None else f"{name}-cogroup-merge",
        )
        return Table(builder, merged, key, spec.value, view)

    def _repartition_parents(self, spec: StoreSpec, name: str | None) -> list[Node]:
        """Return the parent step of each group, behind a new repartition if it was re-keyed."""
        parents: list[Node] = []
        rekeyed = 0
        for group, _ in self._groups:
            parent = group._node
            if group._rekeyed:
                numbered = spec.name if rekeyed == 0 else f"{spec.name}-{rekeyed}"
                base = group._name or numbered
                step = name or spec.name
                parent = self._builder.add_repartition(parent, base, step, group._key, group._value)
                rekeyed += 1
            parents.append(parent)
        return parents


@dataclass(frozen=True, slots=True, repr=False)
class WindowedCogroup(DslBase, Generic[K, A]):
    """Represents several groups by key and window.

    Kafka Streams' TimeWindowedCogroupedKStream and its siblings for other windows.
    """

    _cogrouped: Cogrouped[K, A]
    _windows: Windows

    @property
    def _node(self) -> Node:
        return self._cogrouped._node

    @refuse_wrong_arguments
    def aggregate(
        self,
        initializer: Callable[[], A],
        *,
        merger: Callable[[K, A, A], A] | None = None,
        value: Serde[A] | None = None,
        store: str | Store | None = None,
        emit: EmitWhen = "on_update",
        on_late: Callable[[LateRecord[K, Any]], object] | None = None,
        name: str | None = None,
    ) -> Table[Windowed[K], A]:
        """Fold the records of all groups by key and window into a table.

        The arguments are those of `WindowedGroup.aggregate`. Each group has a stream time of its
        own: what is late in one need not be late in another. With `emit="on_close"`, which Kafka
        Streams has not here, they have one together: a window closes once, for all groups.

        >>> hourly = balance.cogroup(returns, lambda name, total, sum: sum - total).windowed_by(
        ...     windows.tumbling(timedelta(hours=1))
        ... )
        >>> run(hourly.aggregate(int, value=serdes.int64, store="hourly-balances"))
        {'[ann@0/3600000]': 30}
        """
        windows, cogrouped = self._windows, self._cogrouped
        builder = cogrouped._builder
        step = builder.graph.choose_step_name(_MERGE_KIND, name)
        check_callable(step, initializer, ())
        aggregators = (each for _, each in cogrouped._groups)
        check_returns_aggregate(step, initializer, *aggregators, merger=merger)
        check_merger(step, windows, merger)
        if on_late is not None:
            check_callable(step, on_late, ("late",), needs_result=False)
        if windows.idle_close_ms is not None:
            raise TopologyError(
                f"step {step!r}: idle_close= is for the windows of one group, and not for cogroup"
            )
        on_close = choose_emit_on_close(step, emit, windows)
        _require_aggregate_serde(step, value, store)
        key = cogrouped.require_key_serde(step)
        spec = declare_window_store(builder, windows, store, step, key, value, on_close=on_close)

        def create_operator(view: TableView, aggregator: Aggregator) -> Operator:
            folding = WindowFold(initializer, aggregator, merger)
            return create_windowed_operator(
                view, windows, folding, on_close=on_close, on_late=on_late
            )

        return cogrouped.add_aggregations(
            spec,
            create_windowed_key_serde(spec.key, windows),
            create_operator,
            name,
            grace_ms=windows.close_delay_past_end_ms,
            on_close=on_close,
        )


def _share_stream_time(operator: Operator, steps: list[Node]) -> Operator:
    """Return the operator bound to the stream time of the first of `steps`."""

    def bind_operator(binding: Binding) -> Callable[..., None]:
        return operator(replace(binding, shares_time_with=steps[0].name))

    return bind_operator


def check_cogroup(
    existing: Grouped[Any, Any] | Cogrouped[Any, Any], group: Any, aggregator: Aggregator
) -> tuple[Grouped[Any, Any], Aggregator]:
    """Check that a group fits those cogrouped already, and return it with its aggregator.

    Raises TopologyError.
    """
    from streams.dsl.grouped import Grouped

    if not isinstance(group, Grouped):
        raise TopologyError(
            f"cogroup({group!r}): take another group, made by group_by or group_by_key"
        )
    if group._builder is not existing._builder:
        raise TopologyError("cogroup: the groups are of two applications")
    if isinstance(existing, Cogrouped) and any(group is each for each, _ in existing._groups):
        raise TopologyError(
            "cogroup: the same group twice: each has one function, which may do what both would"
        )
    check_callable("cogroup", aggregator, ("key", "value", "aggregate"))
    return group, aggregator


def _require_aggregate_serde(
    step: str, value: Serde[Any] | None, store: str | Store | None
) -> None:
    """Raise TopologyError if neither the step nor its store has a serde for the aggregate."""
    if value is None and not (isinstance(store, Store) and store.value):
        raise TopologyError(f"step {step!r} needs the serde of its aggregate: value=serdes.…")


def _forward_updates(at: Binding) -> ForwardUpdate:
    """Bind a step that only forwards updates: return the function of the steps downstream."""
    return at.downstream
