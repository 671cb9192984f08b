"""Read the stores of a running worker from outside: what its tasks have committed.

There is a class for each kind of store, as in Kafka Streams' interactive queries. A view may be
kept and used from any thread. It reads all tasks of the store that this worker has now: a key is
looked up in each. What a key-value store iterates comes in the order of the keys' bytes, from all
tasks at once; windows and sessions come from one task after another, those of a key in the order
that the method says. What other workers have is not seen: a look-up of a key that is not found
raises StoreNotLocal while they have partitions of the store, and a result that is iterated says
which `partitions` it covers and which are missing (`StoreIterator`). The errors are those of
`StateStoreProvider`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar, get_origin, overload

from state.entry import ValueAndTimestamp
from state.key_value import KeyValueStore
from state.keys import StartMs
from state.session import SessionStore
from state.versioned import VersionedRecord, VersionedStore
from state.window import WindowStore
from state.windowed import Windowed
from streams.errors import ConfigError
from streams.graph.nodes import StoreKind
from streams.queries.store_locations import StoreIterator
from streams.queries.store_provider import S, StateStoreProvider

K = TypeVar("K")
V = TypeVar("V")


class ReadOnlyStore(Generic[S]):
    """Reads the store of `provider` in all tasks of this worker, by the methods of its kind."""

    kind: ClassVar[StoreKind]

    def __init__(self, provider: StateStoreProvider[S]) -> None:
        self._provider = provider

    def __getattr__(self, method: str) -> Any:
        """Refuse a method that the kind of store does not have, and name those that it has."""
        cls = type(self)
        names = sorted(n for n in dir(cls) if not n.startswith("_") and callable(getattr(cls, n)))
        raise AttributeError(
            f"{method}: a view of a {cls.kind.name.lower()} store can be asked for "
            f"{', '.join(names) or 'nothing'}; only a processor writes to it"
        )


class ReadOnlyKeyValueStore(ReadOnlyStore[KeyValueStore[K, V]], Generic[K, V]):
    """Reads the latest value of each key (Kafka Streams' ReadOnlyKeyValueStore)."""

    kind = StoreKind.KEY_VALUE

    def get(self, key: K) -> V | None:
        """Return the committed value of `key`, or None."""
        return self._provider.find_value(lambda store: store.get(key), key)

    def entry(self, key: K) -> ValueAndTimestamp[V] | None:
        """Return the value of `key` and the timestamp of the record that wrote it, or None."""
        return self._provider.find_value(lambda store: store.entry(key), key)

    def range(
        self, key_from: K | None = None, key_to: K | None = None
    ) -> StoreIterator[tuple[K, V]]:
        """Yield keys and values from `key_from` to `key_to`, both included, by the keys' bytes.

        That is their order, also over several partitions. None is no bound. Numbers sort as numbers
        only from 0 on.
        """
        return self._provider.merge_tasks(lambda store: store.range(key_from, key_to))

    def reverse_range(
        self, key_from: K | None = None, key_to: K | None = None
    ) -> StoreIterator[tuple[K, V]]:
        """Yield keys and values from `key_to` down to `key_from`, both included, by their bytes."""
        return self._provider.merge_tasks(
            lambda store: store.reverse_range(key_from, key_to), reverse=True
        )

    def prefix_scan(
        self, prefix: object, serialize: Callable[[Any], bytes] | None = None
    ) -> StoreIterator[tuple[K, V]]:
        """Yield the keys whose bytes begin with those of `prefix`, and their values, in order.

        `serialize` makes the prefix's bytes; by default bytes are taken as they are, and anything
        else goes through the serde of the keys.
        """
        return self._provider.merge_tasks(lambda store: store.prefix_scan(prefix, serialize))

    def all(self) -> StoreIterator[tuple[K, V]]:
        """Yield every key and value, in the order of the keys' bytes."""
        return self._provider.merge_tasks(lambda store: store.all())

    def reverse_all(self) -> StoreIterator[tuple[K, V]]:
        """Yield every key and value, the last key first."""
        return self._provider.merge_tasks(lambda store: store.reverse_all(), reverse=True)

    def approximate_count(self) -> int:
        """Return about how many keys have a value (`approximateNumEntries`)."""
        return sum(self._provider.read_all_tasks(lambda store: store.approximate_count()))


class ReadOnlyWindowStore(ReadOnlyStore[WindowStore[V]], Generic[K, V]):
    """Reads the values of keys in windows (Kafka Streams' ReadOnlyWindowStore).

    Times are in ms, and are those of the windows' starts; ranges of them include both ends.
    """

    kind = StoreKind.WINDOW

    def entry(self, key: K, window_start_ms: int) -> ValueAndTimestamp[V] | None:
        """Return the value of `key` in a window and the timestamp of its record, or None."""
        return self._provider.find_value(lambda store: store.entry(key, window_start_ms), key)

    @overload
    def fetch(self, key: K, from_ms: int) -> V | None: ...
    @overload
    def fetch(self, key: K, from_ms: int, to_ms: int) -> StoreIterator[tuple[StartMs, V]]: ...
    def fetch(
        self, key: K, from_ms: int, to_ms: int | None = None
    ) -> V | StoreIterator[tuple[StartMs, V]] | None:
        """Return the value of `key` in one window, or its windows that start between two times.

        With one time it is the value in the window that starts then, or None. With two times it is
        the start and the value of each window, oldest first.
        """
        if to_ms is None:
            return self._provider.find_value(lambda store: store.fetch(key, from_ms), key)
        return self._provider.iterate_key(lambda store: store.fetch(key, from_ms, to_ms), key)

    def backward_fetch(self, key: K, from_ms: int, to_ms: int) -> StoreIterator[tuple[StartMs, V]]:
        """Yield start and value of the windows of `key` between two times, newest first."""
        return self._provider.iterate_key(
            lambda store: store.backward_fetch(key, from_ms, to_ms), key
        )

    def fetch_range(
        self, key_from: K | None, key_to: K | None, from_ms: int, to_ms: int
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        """Yield the windows of a range of keys between two times, those of a key oldest first.

        Keys are from `key_from` to `key_to`, both included, by their bytes; None is no bound.
        """
        return self._provider.iterate_tasks(
            lambda store: store.fetch_range(key_from, key_to, from_ms, to_ms)
        )

    def backward_fetch_range(
        self, key_from: K | None, key_to: K | None, from_ms: int, to_ms: int
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        """Yield the windows of a range of keys between two times, those of a key newest first."""
        return self._provider.iterate_tasks(
            lambda store: store.backward_fetch_range(key_from, key_to, from_ms, to_ms)
        )

    def fetch_all(self, from_ms: int, to_ms: int) -> StoreIterator[tuple[Windowed[K], V]]:
        """Yield the windows of all keys that start between two times, a key's oldest first."""
        return self._provider.iterate_tasks(lambda store: store.fetch_all(from_ms, to_ms))

    def backward_fetch_all(self, from_ms: int, to_ms: int) -> StoreIterator[tuple[Windowed[K], V]]:
        """Yield the windows of all keys that start between two times, a key's newest first."""
        return self._provider.iterate_tasks(lambda store: store.backward_fetch_all(from_ms, to_ms))

    def all(self) -> StoreIterator[tuple[Windowed[K], V]]:
        """Yield all windows with their values; those of a key come oldest first."""
        return self._provider.iterate_tasks(lambda store: store.all())

    def backward_all(self) -> StoreIterator[tuple[Windowed[K], V]]:
        """Yield all windows with their values; those of a key come newest first."""
        return self._provider.iterate_tasks(lambda store: store.backward_all())


class ReadOnlySessionStore(ReadOnlyStore[SessionStore[V]], Generic[K, V]):
    """Reads the values of sessions (Kafka Streams' ReadOnlySessionStore).

    All times are in ms. Sessions of a key come by their end, then by their start.
    """

    kind = StoreKind.SESSION

    def entry(self, session: Windowed[K]) -> ValueAndTimestamp[V] | None:
        """Return the value of a session and the timestamp of the record that wrote it, or None."""
        return self._provider.find_value(lambda store: store.entry(session), session.key)

    def fetch_session(self, key: K, start_ms: int, end_ms: int) -> V | None:
        """Return the value of the session of `key` with that start and end, or None."""
        return self._provider.find_value(
            lambda store: store.fetch_session(key, start_ms, end_ms), key
        )

    def fetch(self, key: K) -> StoreIterator[tuple[Windowed[K], V]]:
        """Yield all sessions of `key` with their values, oldest first."""
        return self._provider.iterate_key(lambda store: store.fetch(key), key)

    def backward_fetch(self, key: K) -> StoreIterator[tuple[Windowed[K], V]]:
        """Yield all sessions of `key` with their values, newest first."""
        return self._provider.iterate_key(lambda store: store.backward_fetch(key), key)

    def fetch_range(
        self, key_from: K | None, key_to: K | None
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        """Yield all sessions of the keys from `key_from` to `key_to`, those of a key oldest first.

        Both keys are included, by the order of their bytes; None is no bound.
        """
        return self._provider.iterate_tasks(lambda store: store.fetch_range(key_from, key_to))

    def backward_fetch_range(
        self, key_from: K | None, key_to: K | None
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        """Yield all sessions of the keys `key_from` to `key_to`, those of a key newest first."""
        return self._provider.iterate_tasks(
            lambda store: store.backward_fetch_range(key_from, key_to)
        )

    def find_sessions(
        self, key: K, earliest_end_ms: int, latest_start_ms: int
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        """Yield the sessions of `key` that a record between the two times would join, oldest first.

        They end at `earliest_end_ms` or later and start at `latest_start_ms` or earlier.
        """
        return self._provider.iterate_key(
            lambda store: store.find_sessions(key, earliest_end_ms, latest_start_ms), key
        )

    def backward_find_sessions(
        self, key: K, earliest_end_ms: int, latest_start_ms: int
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        """Yield the sessions of `key` that a record between two times would join, newest first."""
        return self._provider.iterate_key(
            lambda store: store.backward_find_sessions(key, earliest_end_ms, latest_start_ms), key
        )

    def all(self) -> StoreIterator[tuple[Windowed[K], V]]:
        """Yield all sessions with their values; those of a key come oldest first."""
        return self._provider.iterate_tasks(lambda store: store.all())


class ReadOnlyVersionedStore(ReadOnlyStore[VersionedStore[V]], Generic[K, V]):
    """Reads the versions of values by key and time (Kafka Streams' VersionedKeyValueStore)."""

    kind = StoreKind.VERSIONED

    def get(self, key: K, as_of_ms: int | None = None) -> VersionedRecord[V] | None:
        """Return the latest version of `key`, or the one that was valid at `as_of_ms`, or None.

        None: there is none, or it was deleted. For a time older than the history only the latest
        version is returned, if it was valid then.
        """
        return self._provider.find_value(lambda store: store.get(key, as_of_ms), key)

    def fetch_versions(self, key: K, from_ms: int, to_ms: int) -> StoreIterator[VersionedRecord[V]]:
        """Yield the versions of `key` that were valid at some time between two, oldest first.

        Both times are included. Kafka Streams' MultiVersionedKeyQuery.
        """
        return self._provider.iterate_key(
            lambda store: store.fetch_versions(key, from_ms, to_ms), key
        )

    def backward_fetch_versions(
        self, key: K, from_ms: int, to_ms: int
    ) -> StoreIterator[VersionedRecord[V]]:
        """Yield the versions of `key` that were valid between two times, the latest first."""
        return self._provider.iterate_key(
            lambda store: store.backward_fetch_versions(key, from_ms, to_ms), key
        )


class _UnreadableStore(ReadOnlyStore[Any]):
    """Stands for the buffer of `suppress`, which nobody can read from outside."""

    kind = StoreKind.BUFFER


_VIEWS: dict[StoreKind, type[ReadOnlyStore[Any]]] = {
    view.kind: view
    for view in (
        ReadOnlyKeyValueStore,
        ReadOnlyWindowStore,
        ReadOnlySessionStore,
        ReadOnlyVersionedStore,
        _UnreadableStore,
    )
}


def create_view(provider: StateStoreProvider[Any]) -> ReadOnlyStore[Any]:
    """Create the view of a store, of the class of the store's kind."""
    return _VIEWS[provider.spec.kind](provider)


def require_view_class(name: str, view: Any, view_class: type[Any] | None) -> Any:
    """Return the view of store `name` if it is of the class that the caller expects.

    Raises ConfigError otherwise. None expects nothing. Types of keys and values, as in
    `ReadOnlyKeyValueStore[str, int]`, are for type checkers.
    """
    expected = get_origin(view_class) or view_class
    if expected is not None and not isinstance(view, expected):
        raise ConfigError(
            f"store {name!r} is read as {type(view).__name__}, not as {expected.__name__}"
        )
    return view
