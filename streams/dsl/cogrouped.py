"""Cogrouped: fold several groups into one table, each by a function of its own.

Each group's step writes the store that they share, and a last step brings their updates together.
All groups have the same keys, and the topics that they are read from have as many partitions
(KIP-150).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from state.windowed import Windowed
from streams.dsl.builder import Builder, known
from streams.dsl.functions import callable_for
from streams.dsl.instead import Instead
from streams.dsl.materialized import Store
from streams.dsl.table import KINDS, Table
from streams.dsl.windowed import check_merger, window_store, windowed_key, windowed_operator
from streams.errors import TopologyError
from streams.operators.aggregate import aggregate, aggregating
from streams.operators.folding import Folding
from streams.operators.lateness import LateRecord
from streams.serdes import Serde
from streams.topology.nodes import Binding, Node, Operator, StoreSpec, Update
from streams.topology.views import StoredView, View
from streams.windows import Windows

if TYPE_CHECKING:
    from streams.dsl.grouped import Grouped

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")

_AGGREGATE = "COGROUPKSTREAM-AGGREGATE"
_MERGE = "COGROUPKSTREAM-MERGE"
Aggregator = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, slots=True, repr=False)
class Cogrouped(Instead, Generic[K, A]):
    """Represents groups that share a key, each with the function that adds its records.

    Kafka Streams' CogroupedKStream.
    """

    _builder: Builder
    _groups: tuple[tuple[Grouped[Any, Any], Aggregator], ...]

    @property
    def _node(self) -> Node:
        return self._groups[0][0]._node

    def cogroup(self, other: Grouped[K, V], aggregator: Callable[[K, V, A], A]) -> Cogrouped[K, A]:
        """Add another group, with `aggregator(key, value, aggregate)` for its records."""
        return Cogrouped(self._builder, (*self._groups, cogrouping(self, other, aggregator)))

    def aggregate(
        self,
        initializer: Callable[[], A],
        *,
        value: Serde[A] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, A]:
        """Fold the records of all groups by key into a table; see `Grouped.aggregate`."""
        builder = self._builder
        step = builder.graph.name(_MERGE, name)
        callable_for(step, initializer, ())
        _check_value(step, value, store)
        key = self.key(step)
        store_or_name = store or f"{step}-STATE-STORE"
        spec = builder.own_store(store_or_name, step, key, value, kinds=KINDS)

        def create_operator(view: View, aggregator: Aggregator) -> Operator:
            return aggregate(view, aggregating(initializer, aggregator))

        return self.table(spec, key, create_operator, name)

    def windowed_by(self, windows: Windows) -> WindowedCogroup[K, A]:
        """Divide each key's records into windows of time: one of `streams.windows`."""
        if not isinstance(windows, Windows):
            raise TopologyError(
                f"windowed_by({windows!r}): take windows.tumbling, hopping, sliding, session or "
                "unlimited"
            )
        return WindowedCogroup(self, windows)

    def key(self, step: str) -> Serde[Any]:
        """Return the key serde of the first group that knows it.

        Raises TopologyError if none does.
        """
        serdes = (group._key for group, _ in self._groups if group._key is not None)
        return known(next(serdes, None), "key", step)

    def table(
        self,
        spec: StoreSpec,
        key: Serde[Any],
        operator: Callable[[View, Aggregator], Operator],
        name: str | None,
        *,
        grace_ms: int | None = None,
    ) -> Table[Any, Any]:
        """Add a step for each group that writes the store `spec`; return the table of the store.

        `grace_ms` is the grace of the windows, None without windows.
        """
        builder, view = self._builder, StoredView(spec)
        parents = self._parents(spec, name)
        if len(parents) > 1:
            builder.graph.copartitioned.append(tuple(parents))
        steps = [
            builder.step(
                _AGGREGATE,
                parent,
                operator(view, aggregator),
                name=None if name is None else f"{name}-cogroup-agg-{number}",
                stores=[spec.name],
                updates=True,
                keeps_time=grace_ms is not None,
                grace_ms=grace_ms,
            )
            for number, (parent, (_, aggregator)) in enumerate(
                zip(parents, self._groups, strict=True)
            )
        ]
        merged = builder.merged(
            _MERGE, steps, _pass_on, name=None if name is None else f"{name}-cogroup-merge"
        )
        return Table(builder, merged, key, spec.value, view)

    def _parents(self, spec: StoreSpec, name: str | None) -> list[Node]:
        """Return the step that each group's records come from: re-keyed ones are repartitioned."""
        parents: list[Node] = []
        rekeyed = 0
        for group, _ in self._groups:
            parent = group._node
            if group._rekeyed:
                numbered = spec.name if rekeyed == 0 else f"{spec.name}-{rekeyed}"
                base = group._name or numbered
                step = name or spec.name
                parent = self._builder.repartitioned(parent, base, step, group._key, group._value)
                rekeyed += 1
            parents.append(parent)
        return parents


@dataclass(frozen=True, slots=True, repr=False)
class WindowedCogroup(Instead, Generic[K, A]):
    """Represents several groups by key and window.

    Kafka Streams' TimeWindowedCogroupedKStream and its siblings for other windows.
    """

    _cogrouped: Cogrouped[K, A]
    _windows: Windows

    @property
    def _node(self) -> Node:
        return self._cogrouped._node

    def aggregate(
        self,
        initializer: Callable[[], A],
        *,
        merger: Callable[[K, A, A], A] | None = None,
        value: Serde[A] | None = None,
        store: str | Store | None = None,
        on_late: Callable[[LateRecord[K, Any]], object] | None = None,
        name: str | None = None,
    ) -> Table[Windowed[K], A]:
        """Fold the records of all groups by key and window into a table.

        The arguments are those of `WindowedGroup.aggregate`. Each group has a stream time of its
        own: what is late in one need not be late in another.
        """
        windows, cogrouped = self._windows, self._cogrouped
        builder = cogrouped._builder
        step = builder.graph.name(_MERGE, name)
        callable_for(step, initializer, ())
        check_merger(step, windows, merger)
        if on_late is not None:
            callable_for(step, on_late, ("late",), returns=False)
        if windows.idle_close_ms is not None:
            raise TopologyError(
                f"step {step!r}: idle_close= is for windows with emit='on_close', which cogroup "
                "has not"
            )
        _check_value(step, value, store)
        key = cogrouped.key(step)
        spec = window_store(builder, windows, store, step, key, value)

        def create_operator(view: View, aggregator: Aggregator) -> Operator:
            folding = Folding(initializer, aggregator, merger)
            return windowed_operator(view, windows, folding, on_late=on_late)

        return cogrouped.table(
            spec,
            windowed_key(spec.key, windows),
            create_operator,
            name,
            grace_ms=windows.close_after_ms,
        )


def cogrouping(
    there: Grouped[Any, Any] | Cogrouped[Any, Any], group: Any, aggregator: Aggregator
) -> tuple[Grouped[Any, Any], Aggregator]:
    """Return a group and its function after checking that they can join those of `existing`.

    Raises TopologyError.
    """
    from streams.dsl.grouped import Grouped

    if not isinstance(group, Grouped):
        raise TopologyError(
            f"cogroup({group!r}): take another group, made by group_by or group_by_key"
        )
    if group._builder is not there._builder:
        raise TopologyError("cogroup: the groups are of two applications")
    if isinstance(there, Cogrouped) and any(group is each for each, _ in there._groups):
        raise TopologyError(
            "cogroup: the same group twice: each has one function, which may do what both would"
        )
    callable_for("cogroup", aggregator, ("key", "value", "aggregate"))
    return group, aggregator


def _check_value(step: str, value: Serde[Any] | None, store: str | Store | None) -> None:
    """Raise TopologyError if neither the step nor its store has a serde for the aggregate."""
    if value is None and not (isinstance(store, Store) and store.value):
        raise TopologyError(f"step {step!r} needs the serde of its aggregate: value=serdes.…")


def _pass_on(at: Binding) -> Update:
    """Bind a step that forwards each update as it is."""
    return at.downstream
