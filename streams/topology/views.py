"""Views: what the steps after a table may ask of it while the application is described.

A table need not be kept anywhere: a join, a grouping or a query asks for its values, and only then
the source at its root gets a store. Nobody computes an old value that nobody reads either. Both are
decided while the application is described, and read when its steps are bound: so an operator is
given its table's view, and looks at it in `bind`, never before.

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
"""The same as of a time in ms, of a versioned table."""


class View(Protocol):
    """A table as the steps after it see it."""

    spec: StoreSpec | None
    """Its own store; None: it is not kept (yet)."""
    sends_old: bool
    """Whether its updates carry the old value."""

    def send_old(self, *, force: bool = True) -> bool:
        """Have the old value in every update. Returns whether that is so now: without `force` no
        store is made for it."""
        ...

    def read_from(self) -> list[str]:
        """Have the table's values at hand. Returns the stores that a step needs to `get` them."""
        ...

    def get(self, at: Binding) -> Get:
        """In a task: how values are got, by a step that is connected to `read_from`'s stores."""
        ...

    @property
    def is_versioned(self) -> bool:
        """Whether values can be had as of a time (`get_as_of`)."""
        ...

    @property
    def expires_in(self) -> str | None:
        """The store with a `ttl` from which rows of this table expire, with no update that says so
        (docs/decisions/0027); None: a row goes with an update only."""
        ...

    def get_as_of(self, at: Binding) -> GetAsOf: ...


class StoredView:
    """A table that is kept: `spec` is its store."""

    def __init__(self, spec: StoreSpec) -> None:
        self.spec: StoreSpec | None = spec
        self.sends_old = False

    def send_old(self, *, force: bool = True) -> bool:
        """A table whose rows expire has no old values to send: those behind it were not told that
        a row expired."""
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

        def get(key: Any, as_of_ms: int) -> Found:
            found = store.get(key, as_of_ms)
            return None if found is None else ValueAndTimestamp(found.value, found.timestamp_ms)

        return get


class GlobalView:
    """A global table: every task can read it, whatever it is connected to."""

    def __init__(self, table: GlobalTableSpec) -> None:
        self.table = table

    def get(self, at: Binding) -> Get:
        copy = at.context.global_store(self.table.store.name)
        assert copy is not None, f"{self.table.store.name} is declared"
        return copy.entry  # type: ignore[no-any-return]


class SourceView(StoredView):
    """The table of a topic or of a stream: kept as soon as somebody asks for its values."""

    def __init__(self, graph: Graph, node: ProcessorNode, wanted: Callable[[], StoreSpec]) -> None:
        self.spec = None
        self.sends_old = False
        self._graph = graph
        self._node = node
        self._wanted = wanted

    def keep(self) -> None:
        """Give it its store. Raises TopologyError if a serde is not known."""
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
    """A table computed from another: kept only where a store was named, else computed on the way
    for who asks."""

    def __init__(self, parent: View, spec: StoreSpec | None) -> None:
        self.spec = spec
        self.sends_old = False
        self._parent = parent

    def computing(self, at: Binding) -> Callable[[Any, Found], Found]:
        """In a task: what makes of a key and what the parent has of it what this table has."""
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
        of_parent, computed = self._parent.get(at), self.computing(at)

        def get(key: Any) -> Found:
            return computed(key, of_parent(key))

        return get

    @property
    def is_versioned(self) -> bool:
        return self._parent.is_versioned if self.spec is None else super().is_versioned

    @property
    def expires_in(self) -> str | None:
        """Its own rows stay when the parent's expire, and are then of a row that there is not."""
        return super().expires_in or self._parent.expires_in

    def get_as_of(self, at: Binding) -> GetAsOf:
        if self.spec is not None:
            return super().get_as_of(at)
        of_parent, computed = self._parent.get_as_of(at), self.computing(at)

        def get(key: Any, as_of_ms: int) -> Found:
            return computed(key, of_parent(key, as_of_ms))

        return get


class DerivedView(ComputedView):
    """A table of which `computed(key, value)` is the value for a value of `parent`, which is never
    None; None: none."""

    def __init__(
        self, parent: View, computed: Callable[[Any, Any], Any], spec: StoreSpec | None
    ) -> None:
        super().__init__(parent, spec)
        self.computed = computed

    def computing(self, at: Binding) -> Callable[[Any, Found], Found]:
        computed = self.computed

        def mapped(key: Any, found: Found) -> Found:
            if found is None:
                return None
            value = computed(key, found.value)
            return None if value is None else ValueAndTimestamp(value, found.timestamp_ms)

        return mapped


def _latest(store: Any) -> Get:
    def get(key: Any) -> Found:
        found = store.get(key)
        return None if found is None else ValueAndTimestamp(found.value, found.timestamp_ms)

    return get


def _passed_on(store: Any, context: Context) -> Get:
    held, name, copy = context.held, store.name, store.copy
    copy_passed_on = store.copy_passed_on

    def get(key: Any) -> Found:
        waiting = held.get(name)
        return copy_passed_on(key, waiting) if waiting else copy(key)  # type: ignore[no-any-return]

    return get
