"""Define views: what the steps after a table may ask of it while the application is described.

A table need not be materialized: a join, a grouping or a query asks for its values, and only then
the source at its root gets a store. Nor is an old value computed that no step reads. Both are
decided while the application is described, and read when its steps are bound: so an operator is
given its table's view, and reads it when it is bound, never before.

Rules: KTableImpl (valueGetterSupplier, enableSendingOldValues) and KTableValueGetter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from state.entry import ValueAndTimestamp
from streams.topology.nodes import (
    Binding,
    Context,
    GlobalTableSpec,
    Graph,
    ProcessorNode,
    StoreKind,
    StoreSpec,
)

Found = ValueAndTimestamp[Any] | None
Get = Callable[[Any], Found]
"""Key -> the table's value and its timestamp as this transaction sees them, or None. The value is
the caller's own: user code may change it."""
GetAsOf = Callable[[Any, int], Found]
"""Key, time in ms -> the value and timestamp that a versioned table had then, or None."""


class View(Protocol):
    """Represents a table as the steps after it see it.

    Kafka Streams' KTableValueGetterSupplier.
    """

    spec: StoreSpec | None
    """The store in which it is materialized; None: it is not (yet)."""
    sends_old: bool
    """Whether its updates carry the old value."""

    def send_old(self, *, force: bool = True) -> bool:
        """Have the old value in every update; return whether that is so now.

        Without `force` no store is made for it.
        """
        ...

    def read_from(self) -> list[str]:
        """Make the table's values readable and return the stores that a step needs for that.

        The step must be connected to these stores to call `create_getter`.
        """
        ...

    def get(self, at: Binding) -> Get:
        """Return the function that looks the table's values up in a task.

        The step of the binding must be connected to the stores of `require_readable_stores`.
        """
        ...

    @property
    def is_versioned(self) -> bool:
        """Whether values can be looked up as of a time (`create_getter_as_of`)."""
        ...

    @property
    def expires_in(self) -> str | None:
        """Return the store with a `ttl` from which rows expire without an update that says so.

        None: a row goes with an update only (docs/decisions/0027).
        """
        ...

    def get_as_of(self, at: Binding) -> GetAsOf:
        """Return the function that looks values up as of a time, of a versioned table."""
        ...


class StoredView:
    """Looks up rows of a materialized table: `spec` is its store."""

    def __init__(self, spec: StoreSpec) -> None:
        self.spec: StoreSpec | None = spec
        self.sends_old = False

    def send_old(self, *, force: bool = True) -> bool:
        """Have the old value in every update; return whether that is so now.

        A table whose rows expire has no old values to send: the steps behind it were not told that
        a row expired.
        """
        if self.expires_in is not None:
            return False
        self.sends_old = True
        return True

    def read_from(self) -> list[str]:
        assert self.spec is not None
        return [self.spec.name]

    def get(self, at: Binding) -> Get:
        assert self.spec is not None
        store = at.context.store(self.spec.name)
        if self.is_versioned:
            return _latest(store)
        if at.passed_on:
            return _passed_on(store, at.context)
        return store.copy  # type: ignore[no-any-return]

    @property
    def is_versioned(self) -> bool:
        return self.spec is not None and self.spec.kind is StoreKind.VERSIONED

    @property
    def expires_in(self) -> str | None:
        return None if self.spec is None or self.spec.ttl_ms is None else self.spec.name

    def get_as_of(self, at: Binding) -> GetAsOf:
        assert self.spec is not None
        store = at.context.store(self.spec.name)

        def get_version(key: Any, as_of_ms: int) -> Found:
            found = store.get(key, as_of_ms)
            return None if found is None else ValueAndTimestamp(found.value, found.timestamp_ms)

        return get_version


class GlobalView:
    """Looks up rows of a global table, which every task can read."""

    def __init__(self, table: GlobalTableSpec) -> None:
        self.table = table

    def get(self, at: Binding) -> Get:
        """Return the function that looks rows up in the worker's replica."""
        copy = at.context.global_store(self.table.store.name)
        assert copy is not None, f"{self.table.store.name} is declared"
        return copy.entry  # type: ignore[no-any-return]


class SourceView(StoredView):
    """Looks up rows of the table of a topic or a stream, materialized at the first need."""

    def __init__(self, graph: Graph, node: ProcessorNode, wanted: Callable[[], StoreSpec]) -> None:
        self.spec = None
        self.sends_old = False
        self._graph = graph
        self._node = node
        self._wanted = wanted

    def keep(self) -> None:
        """Materialize the table in its store. Raises TopologyError if a serde is not known."""
        if self.spec is None:
            self.spec = self._wanted()
            self._graph.attach(self._node, self.spec)

    def send_old(self, *, force: bool = True) -> bool:
        if self.spec is None and not force:
            return False
        self.keep()
        return super().send_old()

    def read_from(self) -> list[str]:
        self.keep()
        return super().read_from()


class ComputedView(StoredView):
    """Looks up rows of a table computed from another, at each look-up unless it has a store."""

    def __init__(self, parent: View, spec: StoreSpec | None) -> None:
        self.spec = spec
        self.sends_old = False
        self._parent = parent

    def computing(self, at: Binding) -> Callable[[Any, Found], Found]:
        """Return a function of a key and the parent's row that computes this table's row."""
        raise NotImplementedError

    def send_old(self, *, force: bool = True) -> bool:
        if self.spec is None and not self._parent.send_old(force=force):
            return self.sends_old
        return super().send_old()

    def read_from(self) -> list[str]:
        return self._parent.read_from() if self.spec is None else super().read_from()

    def get(self, at: Binding) -> Get:
        if self.spec is not None:
            return super().get(at)
        get_parent_row, compute_row = self._parent.get(at), self.computing(at)

        def get_row(key: Any) -> Found:
            return compute_row(key, get_parent_row(key))

        return get_row

    @property
    def is_versioned(self) -> bool:
        return self._parent.is_versioned if self.spec is None else super().is_versioned

    @property
    def expires_in(self) -> str | None:
        """Return the store from which rows of this table or of its parent expire.

        Its own rows stay when the parent's expire, and are then of a row that does not exist.
        """
        return super().expires_in or self._parent.expires_in

    def get_as_of(self, at: Binding) -> GetAsOf:
        if self.spec is not None:
            return super().get_as_of(at)
        get_parent_row, compute_row = self._parent.get_as_of(at), self.computing(at)

        def get_version(key: Any, as_of_ms: int) -> Found:
            return compute_row(key, get_parent_row(key, as_of_ms))

        return get_version


class DerivedView(ComputedView):
    """Looks up rows of a table whose values `compute_value(key, value)` makes of a parent's.

    The parent's value is never None; None as the result means no row.
    """

    def __init__(
        self, parent: View, computed: Callable[[Any, Any], Any], spec: StoreSpec | None
    ) -> None:
        super().__init__(parent, spec)
        self.computed = computed

    def computing(self, at: Binding) -> Callable[[Any, Found], Found]:
        computed = self.computed

        def compute_row(key: Any, found: Found) -> Found:
            if found is None:
                return None
            value = computed(key, found.value)
            return None if value is None else ValueAndTimestamp(value, found.timestamp_ms)

        return compute_row


def _latest(store: Any) -> Get:
    """Return a getter of the latest versions of a versioned store."""

    def get_latest(key: Any) -> Found:
        found = store.get(key)
        return None if found is None else ValueAndTimestamp(found.value, found.timestamp_ms)

    return get_latest


def _passed_on(store: Any, context: Context) -> Get:
    """Return a getter of the values that were emitted last.

    With caching a change that waits for the commit is not seen before it is emitted.
    """
    held, name, copy = context.held, store.name, store.copy
    copy_passed_on = store.copy_passed_on

    def get_emitted(key: Any) -> Found:
        waiting = held.get(name)
        return copy_passed_on(key, waiting) if waiting else copy(key)  # type: ignore[no-any-return]

    return get_emitted
