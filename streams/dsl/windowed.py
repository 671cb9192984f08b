"""Define WindowedGroup, which aggregates records by key and window.

The result is a table whose keys are `Windowed`. With `emit="on_update"` each record emits the new
value of its windows (with caching the latest of each at the commit), with `emit="on_close"` each
window is emitted once, when it closes (KIP-825).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from state.windowed import Windowed
from streams import serdes
from streams.dsl.aggregate_checks import check_returns_aggregate
from streams.dsl.aggregation_arguments import refuse_wrong_arguments
from streams.dsl.builder import InternalStreamsBuilder, get_store_or_default_name, require_serde
from streams.dsl.function_checks import check_callable
from streams.dsl.kafka_streams_names import DslBase
from streams.dsl.table import Table
from streams.errors import TopologyError
from streams.graph.materialized import Store
from streams.graph.nodes import Node, Operator, StoreKind, StoreSpec
from streams.graph.views import StoredView, TableView
from streams.operators.folding import WindowFold, create_count_fold, create_reduce_fold
from streams.operators.lateness import LateRecord
from streams.operators.session_aggregate import aggregate_sessions
from streams.operators.sliding_aggregate import aggregate_sliding_windows
from streams.operators.window_aggregate import aggregate_windows
from streams.serdes import Serde
from streams.topology.rules import AggregationRule
from streams.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows, Windows

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")

EmitWhen = Literal["on_update", "on_close"]


@dataclass(frozen=True, slots=True, repr=False)
class WindowedGroup(DslBase, Generic[K, V]):
    """Represents records grouped by key and window.

    Kafka Streams' TimeWindowedKStream and SessionWindowedKStream. Keys of the results are
    `Windowed`: the key, the window's start and its end in ms since 1970. All methods raise
    TopologyError, naming the step, for a function that can't be called with the step's arguments, a
    store that keeps less than the windows need, or an `emit` that these windows don't have.

    The examples of its methods go on from this one:

    >>> app = App("shop")
    >>> orders = app.stream("orders", key=serdes.string, value=serdes.int64)
    >>> by_minute = orders.group_by_key().windowed_by(windows.tumbling(timedelta(minutes=1)))
    >>> def run(table):
    ...     table.to_stream().to("result")
    ...     with TopologyTestDriver(app) as driver:
    ...         for time_ms, total in ((0, 5), (59_999, 7), (60_000, 50)):
    ...             driver.topic("orders").pipe("ann", total, timestamp_ms=time_ms)
    ...         return {str(key): total for key, total in driver.topic("result").read_pairs()}
    """

    _builder: InternalStreamsBuilder
    _node: Node
    _key: Serde[Any] | None
    _value: Serde[Any] | None
    _rekeyed: bool
    _windows: Windows
    _name: str | None = None
    """The name of the one repartition topic for all aggregations; None: each has its own."""

    @refuse_wrong_arguments
    def count(
        self,
        *,
        store: str | Store | None = None,
        emit: EmitWhen = "on_update",
        on_late: Callable[[LateRecord[K, V]], object] | None = None,
        name: str | None = None,
    ) -> Table[Windowed[K], int]:
        """Count the records of each key in each window into a table.

        `store`, `name` and what follows are as in `Grouped.count`; the store keeps windows for
        their size and grace, or longer (`retention=`). `on_late` is called with each record that is
        dropped because its window has closed.

        >>> run(by_minute.count(store="counts", emit="on_close"))
        {'[ann@0/60000]': 2}
        """
        return self._add_aggregation(
            "KSTREAM-AGGREGATE", create_count_fold(), True, serdes.int64, store, emit, on_late, name
        )

    @refuse_wrong_arguments
    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        commutative: bool = False,
        store: str | Store | None = None,
        emit: EmitWhen = "on_update",
        on_late: Callable[[LateRecord[K, V]], object] | None = None,
        name: str | None = None,
    ) -> Table[Windowed[K], V]:
        """Combine the values of each key and window by `reducer(old, new)` into a table.

        The first value is taken as it is; None deletes the window. Sessions that join are combined
        by it too. `commutative` is as in `Grouped.reduce`.

        >>> run(by_minute.reduce(lambda old, new: old + new, store="totals"))
        {'[ann@0/60000]': 12, '[ann@60000/120000]': 50}
        """
        step = self._builder.graph.choose_step_name("KSTREAM-REDUCE", name)
        check_callable(step, reducer, ("old", "new"))
        value = require_serde(self._value, "value", step)
        folding = create_reduce_fold(reducer)
        return self._add_aggregation(
            "KSTREAM-REDUCE", folding, commutative, value, store, emit, on_late, name
        )

    @refuse_wrong_arguments
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A],
        *,
        merger: Callable[[K, A, A], A] | None = None,
        commutative: bool = False,
        value: Serde[A] | None = None,
        store: str | Store | None = None,
        emit: EmitWhen = "on_update",
        on_late: Callable[[LateRecord[K, V]], object] | None = None,
        name: str | None = None,
    ) -> Table[Windowed[K], A]:
        """Fold the values of each key and window into a table.

        `aggregator(key, value, aggregate)` returns the next aggregate, and may change the one it is
        handed; the first is `initializer()`. Sessions need `merger(key, one, other)`, which makes
        one aggregate of two sessions that join; no other windows take one. `value` is the serde of
        the aggregate, unless the store has one. `commutative` is as in `Grouped.aggregate`.

        >>> def add(name, total, totals):
        ...     return [*totals, total]
        >>> run(by_minute.aggregate(list, add, value=serdes.json))
        {'[ann@0/60000]': [5, 7], '[ann@60000/120000]': [50]}
        """
        step = self._builder.graph.choose_step_name("KSTREAM-AGGREGATE", name)
        check_callable(step, initializer, ())
        check_callable(step, aggregator, ("key", "value", "aggregate"))
        check_returns_aggregate(step, initializer, aggregator, merger=merger)
        check_merger(step, self._windows, merger)
        folding = WindowFold(initializer, aggregator, merger)
        if value is None and not (isinstance(store, Store) and store.value):
            raise TopologyError(f"step {step!r} needs the serde of its aggregate: value=serdes.…")
        return self._add_aggregation(
            "KSTREAM-AGGREGATE", folding, commutative, value, store, emit, on_late, name
        )

    def _add_aggregation(
        self,
        kind: str,
        folding: WindowFold,
        commutative: bool,
        value: Serde[Any] | None,
        store: str | Store | None,
        emit: str,
        on_late: Callable[[LateRecord[K, V]], object] | None,
        name: str | None,
    ) -> Table[Windowed[Any], Any]:
        """Add an aggregation by window, repartitioned if re-keyed, and return its table."""
        builder, windows = self._builder, self._windows
        step = builder.graph.choose_step_name(kind, name)
        on_close = choose_emit_on_close(step, emit, windows)
        if on_late is not None:
            check_callable(step, on_late, ("late",), needs_result=False)
        key = require_serde(self._key, "key", step)
        spec = declare_window_store(builder, windows, store, step, key, value, on_close=on_close)
        parent = self._node
        if self._rekeyed:
            base = self._name or spec.name
            parent = builder.add_repartition(parent, base, step, key, self._value)
        view = StoredView(spec)
        operator = create_windowed_operator(
            view, windows, folding, on_close=on_close, on_late=on_late
        )
        node = builder.add_step(
            kind,
            parent,
            operator,
            name=step,
            stores=[spec.name],
            emits_updates=True,
            has_stream_time=True,
            grace_ms=windows.close_delay_past_end_ms,
            rule=AggregationRule(
                folding=folding, commutative=commutative, windows=windows, on_close=on_close
            ),
        )
        return Table(builder, node, create_windowed_key_serde(spec.key, windows), spec.value, view)


def check_merger(step: str, windows: Windows, merger: Callable[..., Any] | None) -> None:
    """Raise TopologyError if session windows have no merger, or other windows have one."""
    sessions = isinstance(windows, SessionWindows)
    if sessions and merger is None:
        raise TopologyError(
            f"step {step!r} aggregates sessions, and a record may join two of them: give "
            "merger=, a function of key and two aggregates"
        )
    if merger is not None:
        if not sessions:
            raise TopologyError(
                f"step {step!r} has a merger, which is for sessions: other windows don't join"
            )
        check_callable(step, merger, ("key", "one", "other"))


def create_windowed_operator(
    view: TableView,
    windows: Windows,
    folding: WindowFold,
    *,
    on_close: bool = False,
    on_late: Callable[[LateRecord[Any, Any]], object] | None = None,
) -> Operator:
    """Return the operator that aggregates by `windows`."""
    match windows:
        case TimeWindows() | UnlimitedWindows():
            return aggregate_windows(
                view, windows, folding, emits_on_close=on_close, on_late=on_late
            )
        case SlidingWindows():
            return aggregate_sliding_windows(
                view, windows, folding, emits_on_close=on_close, on_late=on_late
            )
        case SessionWindows():
            return aggregate_sessions(
                view, windows, folding, emits_on_close=on_close, on_late=on_late
            )


def declare_window_store(
    builder: InternalStreamsBuilder,
    windows: Windows,
    store: str | Store | None,
    step: str,
    key: Serde[Any],
    value: Serde[Any] | None,
    *,
    on_close: bool = False,
) -> StoreSpec:
    """Declare the store in which `step` keeps its windows and return its spec.

    Raises TopologyError for a store that is not fit for these windows.
    """
    sessions = isinstance(windows, SessionWindows)
    kind = StoreKind.SESSION if sessions else StoreKind.WINDOW
    kinds = (kind, StoreKind.KEY_VALUE)  # Store.persistent("name") chooses only the medium
    spec = builder.create_store_spec(
        get_store_or_default_name(store, step), step, key, value, kinds=kinds, is_windowed=True
    )
    retention_ms = spec.retention_ms
    if retention_ms is None:
        # One ms more than in Kafka Streams, where a session that is still just open has expired.
        retention_ms = windows.retention_ms + (1 if sessions else 0)
    if retention_ms < windows.retention_ms:
        raise TopologyError(
            f"store {spec.name!r} of step {step!r} keeps its windows for {retention_ms} ms, and "
            f"records may come to them for {windows.retention_ms} ms: make retention= at least "
            "that, or leave it out"
        )
    if spec.window_size_ms is not None and spec.window_size_ms != getattr(windows, "size_ms", None):
        raise TopologyError(
            f"store {spec.name!r} of step {step!r} is for windows of {spec.window_size_ms} ms, and "
            f"the step's are of {getattr(windows, 'size_ms', None)} ms: leave it to the step, with "
            "Store.persistent or Store.in_memory"
        )
    if spec.retain_duplicates:
        raise TopologyError(
            f"store {spec.name!r} of step {step!r} retains duplicates: an aggregation has one "
            "value for each window"
        )
    spec = replace(
        spec,
        kind=kind,
        retention_ms=retention_ms,
        window_size_ms=None if isinstance(windows, SessionWindows) else windows.size_ms,
        caching=spec.caching and not on_close,
        # Windows that close together are stored together, in the order in which they are emitted.
        segment_ms=windows.advance_ms if on_close and isinstance(windows, TimeWindows) else None,
        is_ordered_by_time=on_close and not isinstance(windows, TimeWindows),
    )
    builder.graph.declare_store(spec, owner=object())
    return spec


def create_windowed_key_serde(key: Serde[Any], windows: Windows) -> Serde[Any]:
    """Return the serde of a windowed table's keys."""
    match windows:
        case SessionWindows():
            return serdes.session_windowed(key)
        case UnlimitedWindows():
            return serdes.windowed(key)
    return serdes.windowed(key, windows.size_ms)


def choose_emit_on_close(step: str, emit: str, windows: Windows) -> bool:
    """Return whether the step emits on close. Raises TopologyError for wrong `windows`."""
    if emit not in ("on_update", "on_close"):
        raise TopologyError(f"step {step!r}: emit={emit!r} is neither 'on_update' nor 'on_close'")
    on_close = emit == "on_close"
    if on_close and isinstance(windows, UnlimitedWindows):
        raise TopologyError(
            f"step {step!r}: emit='on_close' with windows.unlimited(), whose window never closes"
        )
    if windows.idle_close_ms is not None and not on_close:
        raise TopologyError(
            f"step {step!r}: idle_close= closes idle windows, and with emit='on_update' nothing "
            "depends on their closing: take emit='on_close', or give it to until_window_closes"
        )
    return on_close
