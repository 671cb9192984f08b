"""Define views of tables, by which later steps ask a table to look rows up or send old values.

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
from streams.graph.internal_context import InternalProcessorContext
from streams.graph.nodes import Binding, GlobalTableSpec, Graph, ProcessorNode, StoreKind, StoreSpec

OptionalRow = ValueAndTimestamp[Any] | None
RowGetter = Callable[[Any], OptionalRow]
"""Key -> the table's value and its timestamp as this transaction sees them, or None. The value is
the caller's own: user code may change it."""
RowGetterAsOf = Callable[[Any, int], OptionalRow]
"""Key, time in ms -> the value and timestamp that a versioned table had then, or None."""


class TableView(Protocol):
    """Represents a table as the steps after it see it.

    Kafka Streams' KTableValueGetterSupplier.
    """

    spec: StoreSpec | None
    """The store in which it is materialized; None: it is not (yet)."""
    sends_old_values: bool
    """Whether its updates carry the old value."""

    def enable_sending_old_values(self, *, force: bool = True) -> bool:
        """Make every update carry the old value, if possible; return whether updates carry it.

        Without `force` no store is made for it.
        """
        ...

    def require_readable_stores(self) -> list[str]:
        """Return the stores that a step needs to look up rows; materialize the table if need be.

        The step must be connected to these stores to call `create_row_getter`.
        """
        ...

    def create_row_getter(self, binding: Binding) -> RowGetter:
        """Return the function by which a bound step looks up a key's value.

        The step of the binding must be connected to the stores of `require_readable_stores`.
        """
        ...

    @property
    def is_versioned(self) -> bool:
        """Return whether values can be looked up as of a time (`create_row_getter_as_of`)."""
        ...

    @property
    def ttl_store(self) -> str | None:
        """Return the store with a `ttl` from which rows expire without an update that says so.

        None: a row goes with an update only (docs/decisions/0027).
        """
        ...

    def create_row_getter_as_of(self, binding: Binding) -> RowGetterAsOf:
        """Return the function that looks values up as of a time, of a versioned table."""
        ...


class StoredView:
    """Looks up rows of a materialized table: `spec` is its store."""

    def __init__(self, spec: StoreSpec) -> None:
        self.spec: StoreSpec | None = spec
        self.sends_old_values = False

    def enable_sending_old_values(self, *, force: bool = True) -> bool:
        """Make every update carry the old value, if possible; return whether updates carry it.

        A table whose rows expire has no old values to send: the steps behind it were not told that
        a row expired.
        """
        if self.ttl_store is not None:
            return False
        self.sends_old_values = True
        return True

    def require_readable_stores(self) -> list[str]:
        """Return the name of the table's store, which it must have."""
        assert self.spec is not None
        return [self.spec.name]

    def create_row_getter(self, binding: Binding) -> RowGetter:
        assert self.spec is not None
        store = binding.context.get_store(self.spec.name)
        if self.is_versioned:
            return _create_latest_getter(store)
        if binding.reads_emitted_values:
            return _create_emitted_getter(store, binding.context)
        return store.copy_entry  # type: ignore[no-any-return]

    @property
    def is_versioned(self) -> bool:
        return self.spec is not None and self.spec.kind is StoreKind.VERSIONED

    @property
    def ttl_store(self) -> str | None:
        return None if self.spec is None or self.spec.ttl_ms is None else self.spec.name

    def create_row_getter_as_of(self, binding: Binding) -> RowGetterAsOf:
        assert self.spec is not None
        store = binding.context.get_store(self.spec.name)

        def get_version(key: Any, as_of_ms: int) -> OptionalRow:
            found = store.get(key, as_of_ms)
            return None if found is None else ValueAndTimestamp(found.value, found.timestamp_ms)

        return get_version


class GlobalTableView:
    """Looks up rows of a global table, which every task can read."""

    def __init__(self, table: GlobalTableSpec) -> None:
        self.table = table

    def create_row_getter(self, binding: Binding) -> RowGetter:
        """Return the function that looks rows up in the worker's replica."""
        copy = binding.context.find_global_store(self.table.store.name, binding.step)
        assert copy is not None, f"{self.table.store.name} is declared"
        return copy.entry  # type: ignore[no-any-return]


class SourceView(StoredView):
    """Looks up rows of the table of a topic or a stream, materialized at the first need."""

    def __init__(
        self, graph: Graph, node: ProcessorNode, create_spec: Callable[[], StoreSpec]
    ) -> None:
        self.spec = None
        self.sends_old_values = False
        self._graph = graph
        self._node = node
        self._create_spec = create_spec

    def materialize_in_store(self) -> None:
        """Materialize the table in its store. Raises TopologyError if a serde is not known."""
        if self.spec is None:
            self.spec = self._create_spec()
            self._graph.attach_store(self._node, self.spec)

    def enable_sending_old_values(self, *, force: bool = True) -> bool:
        """Make updates carry the old value, if the table has a store or `force` materializes it."""
        if self.spec is None and not force:
            return False
        self.materialize_in_store()
        return super().enable_sending_old_values()

    def require_readable_stores(self) -> list[str]:
        """Materialize the table if it is not, and return the name of its store."""
        self.materialize_in_store()
        return super().require_readable_stores()


class ComputedView(StoredView):
    """Looks up rows of a table computed from another, at each look-up unless it has a store."""

    def __init__(self, parent: TableView, spec: StoreSpec | None) -> None:
        self.spec = spec
        self.sends_old_values = False
        self._parent = parent

    def create_row_function(self, binding: Binding) -> Callable[[Any, OptionalRow], OptionalRow]:
        """Return a function of a key and the parent's row that computes this table's row."""
        raise NotImplementedError

    def enable_sending_old_values(self, *, force: bool = True) -> bool:
        """Make updates carry the old value, from the table's own store or its parent's updates."""
        if self.spec is None and not self._parent.enable_sending_old_values(force=force):
            return self.sends_old_values
        return super().enable_sending_old_values()

    def require_readable_stores(self) -> list[str]:
        """Return the table's store, or without one the stores that the parent's look-ups need."""
        return (
            self._parent.require_readable_stores()
            if self.spec is None
            else super().require_readable_stores()
        )

    def create_row_getter(self, binding: Binding) -> RowGetter:
        """Return a getter that reads the table's store, or computes rows from the parent's."""
        if self.spec is not None:
            return super().create_row_getter(binding)
        get_parent_row, compute_row = (
            self._parent.create_row_getter(binding),
            self.create_row_function(binding),
        )

        def get_row(key: Any) -> OptionalRow:
            return compute_row(key, get_parent_row(key))

        return get_row

    @property
    def is_versioned(self) -> bool:
        return self._parent.is_versioned if self.spec is None else super().is_versioned

    @property
    def ttl_store(self) -> str | None:
        """Return the store from which rows of this table or of its parent expire.

        Its own rows stay when the parent's expire, and are then of a row that does not exist.
        """
        return super().ttl_store or self._parent.ttl_store

    def create_row_getter_as_of(self, binding: Binding) -> RowGetterAsOf:
        if self.spec is not None:
            return super().create_row_getter_as_of(binding)
        get_parent_row, compute_row = (
            self._parent.create_row_getter_as_of(binding),
            self.create_row_function(binding),
        )

        def get_version(key: Any, as_of_ms: int) -> OptionalRow:
            return compute_row(key, get_parent_row(key, as_of_ms))

        return get_version


class DerivedView(ComputedView):
    """Looks up rows of a table whose values `compute_value(key, value)` makes of a parent's.

    The parent's value is never None; None as the result means no row.
    """

    def __init__(
        self, parent: TableView, compute_value: Callable[[Any, Any], Any], spec: StoreSpec | None
    ) -> None:
        super().__init__(parent, spec)
        self.compute_value = compute_value

    def create_row_function(self, binding: Binding) -> Callable[[Any, OptionalRow], OptionalRow]:
        computed = self.compute_value

        def compute_row(key: Any, found: OptionalRow) -> OptionalRow:
            if found is None:
                return None
            value = computed(key, found.value)
            return None if value is None else ValueAndTimestamp(value, found.timestamp_ms)

        return compute_row


def _create_latest_getter(store: Any) -> RowGetter:
    """Return a getter of the latest versions of a versioned store."""

    def get_latest(key: Any) -> OptionalRow:
        found = store.get(key)
        return None if found is None else ValueAndTimestamp(found.value, found.timestamp_ms)

    return get_latest


def _create_emitted_getter(store: Any, context: InternalProcessorContext) -> RowGetter:
    """Return a getter of the values that a caching store has last emitted downstream.

    With caching a change that waits for the commit is not seen before it is emitted.
    """
    held, name, copy = context.uncommitted_results, store.name, store.copy_entry
    copy_passed_on = store.copy_emitted_entry

    def get_emitted(key: Any) -> OptionalRow:
        waiting = held.get(name)
        return copy_passed_on(key, waiting) if waiting else copy(key)  # type: ignore[no-any-return]

    return get_emitted
