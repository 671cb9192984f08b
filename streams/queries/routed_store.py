"""Query a store over all workers of the application, by the methods of its kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

from state.versioned import VersionedRecord
from state.windowed import Windowed
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError, StoreUnavailable
from streams.graph.nodes import StoreKind
from streams.queries.committed_reads import Position
from streams.queries.routed_reads import RoutedReads
from streams.queries.stale_bounds import StaleBounds
from streams.queries.store_answers import StoreAnswer
from streams.queries.store_calls import StoreCall
from streams.queries.store_reads import StoreRead

K = TypeVar("K")
V = TypeVar("V")

PAGE_ROWS = 1_000
"""The rows of a range that are fetched at a time, as the caller takes them."""

_METHODS = {
    StoreKind.KEY_VALUE: "use get, range or all",
    StoreKind.WINDOW: "use fetch, fetch_range or iterate_windows",
    StoreKind.SESSION: "use fetch, fetch_range or iterate_windows",
    StoreKind.VERSIONED: "use get or fetch_versions",
    StoreKind.BUFFER: "it can't be read",
}


class QueryResult(NamedTuple, Generic[V]):
    """Holds the value of a key, and what is known about it (Kafka Streams' QueryResult).

    `value` is None where there is none. `position` names the inputs that the store had taken in,
    for `RoutedStore.at_least`; nothing newer had been committed `age_s` seconds ago. `lag` is how
    many offsets behind its changelog a standby was that has answered, markers of transactions
    included: 0 for an active task, None where it is not known.
    """

    value: V | None
    timestamp_ms: int | None
    position: Position
    age_s: float
    lag: int | None = 0


class RoutedStore(Generic[K, V]):
    """Reads a store wherever its partitions are: committed values only, or an error.

    Each read ends within `timeout_s`. It raises StoreUnavailable if a worker that has a part of the
    answer can't be asked in that time, and ConfigError for a method that the kind of store does not
    have.
    """

    def __init__(
        self,
        reads: RoutedReads,
        name: str,
        timeout_s: float,
        at_least: Position | None = None,
        stale_ok: StaleBounds | None = None,
    ) -> None:
        self._reads = reads
        self.name = name
        self._timeout_s = timeout_s
        self._at_least = at_least or {}
        self._stale_ok = stale_ok

    def at_least(self, position: Position | Mapping[tuple[str, int], int]) -> RoutedStore[K, V]:
        """Return this store for reads that wait until it has taken in the inputs up to `position`.

        That is the offset after the last record wanted of each topic and partition, which the
        store's sub-topology reads; or the position of an earlier answer.
        """
        wanted = {Partition(*partition): offset for partition, offset in position.items()}
        wanted = {**self._at_least, **wanted}
        return RoutedStore(self._reads, self.name, self._timeout_s, wanted, self._stale_ok)

    def get(self, key: K, as_of_ms: int | None = None) -> V | None:
        """Return the committed value of `key`; None only if it is known that there is none.

        `as_of_ms` is for versioned stores: the value that was valid then.
        """
        return self.get_result(key, as_of_ms).value

    def get_result(self, key: K, as_of_ms: int | None = None) -> QueryResult[V]:
        """Return the committed value of `key` with its timestamp, position and age."""
        self._refuse_windowed_store()
        answer = self._read_answer(StoreRead(is_lookup=True, key=key, as_of_ms=as_of_ms))
        row = answer.rows[0] if answer.rows else None
        value, timestamp_ms = (None, None) if row is None else (row.value, row.timestamp_ms)
        return QueryResult(value, timestamp_ms, answer.position, answer.age_s, answer.lag)

    def range(self, key_from: K | None = None, key_to: K | None = None) -> Iterator[tuple[K, V]]:
        """Yield keys and values from `key_from` to `key_to`, both included, by the keys' bytes.

        They are fetched as they are taken, `PAGE_ROWS` at a time: what one task has of a page is of
        one commit, and the next page may be of a later one.
        """
        self._refuse_windowed_store()
        return self._iterate_pages(StoreRead(key_from=key_from, key_to=key_to))

    def reverse_range(
        self, key_from: K | None = None, key_to: K | None = None
    ) -> Iterator[tuple[K, V]]:
        """Yield what `range` yields, from the last key to the first."""
        self._refuse_windowed_store()
        return self._iterate_pages(StoreRead(key_from=key_from, key_to=key_to, is_reverse=True))

    def all(self) -> Iterator[tuple[K, V]]:
        """Yield every key and value, in the order of the keys' bytes, as `range` does."""
        return self.range()

    def fetch(
        self,
        key: K,
        from_ms: int | None = None,
        to_ms: int | None = None,
        *,
        reverse: bool = False,
        limit: int | None = None,
    ) -> list[tuple[Windowed[K], V]]:
        """Return the windows of `key` that start between two times, both included, or its sessions.

        All are of one commit: the first `limit`, from the newest one on if `reverse`. Without
        `limit` raises StoreUnavailable for more than `store_reads.ROWS_MAX`.
        """
        self._require_windowed_store("fetch")
        return self._read_windows(
            StoreRead(is_lookup=True, key=key, from_ms=from_ms, to_ms=to_ms, is_reverse=reverse),
            limit,
        )

    def fetch_versions(
        self,
        key: K,
        from_ms: int | None = None,
        to_ms: int | None = None,
        *,
        reverse: bool = False,
    ) -> list[VersionedRecord[V]]:
        """Return the versions of `key` that were valid between two times, both included.

        They are those of the history of a versioned store, all of one commit: the oldest first, or
        the latest if `reverse`. Raises StoreUnavailable for more than `store_reads.ROWS_MAX`. Kafka
        Streams' MultiVersionedKeyQuery.
        """
        if self._find_kind() is not StoreKind.VERSIONED:
            raise ConfigError(
                f"{self.name!r} is a {self._find_kind()} store, which keeps no versions: "
                f"{_METHODS[self._find_kind()]}"
            )
        answer = self._read_whole(
            StoreRead(
                is_lookup=True, key=key, from_ms=from_ms or 0, to_ms=to_ms, is_reverse=reverse
            )
        )
        return [VersionedRecord(row.value, row.start_ms or 0, row.end_ms) for row in answer.rows]

    def fetch_range(
        self,
        key_from: K | None = None,
        key_to: K | None = None,
        from_ms: int | None = None,
        to_ms: int | None = None,
        *,
        reverse: bool = False,
        limit: int | None = None,
    ) -> list[tuple[Windowed[K], V]]:
        """Return the windows or sessions of a range of keys, by key, start and end.

        What one task has is of one commit. They are the first `limit`, from the last one on if
        `reverse`. Without `limit` raises StoreUnavailable for more than `store_reads.ROWS_MAX`: ask
        for fewer keys, a shorter time, or for `iterate_windows`.
        """
        self._require_windowed_store("fetch_range")
        read = StoreRead(
            key_from=key_from, key_to=key_to, from_ms=from_ms, to_ms=to_ms, is_reverse=reverse
        )
        return self._read_windows(read, limit)

    def iterate_windows(
        self,
        key_from: K | None = None,
        key_to: K | None = None,
        from_ms: int | None = None,
        to_ms: int | None = None,
        *,
        reverse: bool = False,
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Yield what `fetch_range` returns, however much it is, a page of rows at a time.

        Each page may be of a later commit. For each one the store reads the whole range again.
        """
        self._require_windowed_store("iterate_windows")
        page = StoreRead(
            key_from=key_from, key_to=key_to, from_ms=from_ms, to_ms=to_ms, is_reverse=reverse
        )
        return self._iterate_window_pages(page)

    def _iterate_window_pages(self, page: StoreRead) -> Iterator[tuple[Windowed[K], V]]:
        """Yield windows, fetching a page when the one before has been taken."""
        is_session = self._find_kind() is StoreKind.SESSION
        while True:
            answer = self._read_answer(page)
            yield from _to_windows(answer)
            if not answer.has_more:
                return
            last = answer.rows[-1]
            end_ms = last.end_ms if is_session else None
            page = replace(page, after=last.key, after_start_ms=last.start_ms, after_end_ms=end_ms)

    def run_query(self, query: str, /, **arguments: Any) -> Any:
        """Return the merged result of a registered query of this store (`App.register_query`).

        Its function runs at the workers with the partitions, on active tasks alone. Raises
        ConfigError for a query that there is not, or arguments that it does not take; QueryFailed
        for an error of the function.
        """
        return self.run_query_result(query, **arguments).value

    def run_query_result(self, query: str, /, **arguments: Any) -> QueryResult[Any]:
        """Return what `run_query` returns with its position and age."""
        if self._stale_ok is not None:
            raise ConfigError("standby tasks run no registered queries: leave stale_ok out")
        found = self._reads.local.find_query(query)
        if found.store != self.name:
            raise ConfigError(f"query {query!r} is of the store {found.store!r}, not {self.name!r}")
        call = StoreCall(found, arguments)
        answer = self._read_answer(StoreRead(call=call))
        merged = call.merge_results([row.value for row in answer.rows])
        return QueryResult(merged, None, answer.position, answer.age_s)

    def _iterate_pages(self, read: StoreRead) -> Iterator[tuple[K, V]]:
        """Yield keys and values, fetching a page when the one before has been taken."""
        page = replace(read, limit=PAGE_ROWS)
        while True:
            answer = self._read_answer(page)
            for row in answer.rows:
                yield row.key, row.value
            if not answer.has_more:
                return
            page = replace(page, after=answer.rows[-1].key)

    def _find_kind(self) -> StoreKind:
        """Return the kind of this store. Raises ConfigError if there is no such store."""
        return self._reads.local.find_store(self.name)[0].kind

    def _refuse_windowed_store(self) -> None:
        """Raise ConfigError for a read of one value of a key if a key has one for each window."""
        if (kind := self._find_kind()) in (StoreKind.WINDOW, StoreKind.SESSION):
            raise ConfigError(
                f"{self.name!r} is a {kind} store, in which a key has a value for each window: "
                f"{_METHODS[kind]}"
            )

    def _require_windowed_store(self, method: str) -> None:
        """Raise ConfigError for a method of windows if this store has none."""
        if (kind := self._find_kind()) not in (StoreKind.WINDOW, StoreKind.SESSION):
            raise ConfigError(
                f"{self.name!r} is a {kind} store, and {method} reads windows and sessions: "
                f"{_METHODS[kind]}"
            )

    def _read_windows(self, read: StoreRead, limit: int | None) -> list[tuple[Windowed[K], V]]:
        """Return rows as windows and values; without a limit all of them, or StoreUnavailable."""
        if limit is not None:
            return _to_windows(self._read_answer(replace(read, limit=limit)))
        return _to_windows(self._read_whole(read))

    def _read_whole(self, read: StoreRead) -> StoreAnswer:
        """Return an answer with all rows. Raises StoreUnavailable for too many."""
        answer = self._read_answer(read)
        if answer.has_more:
            raise StoreUnavailable(
                f"store {self.name!r} has more than {read.limit} of these: ask for fewer keys, or "
                "a shorter time"
            )
        return answer

    def _read_answer(self, read: StoreRead) -> StoreAnswer:
        """Return the answer of all workers."""
        return self._reads.read(
            self.name,
            read,
            at_least=self._at_least,
            timeout_s=self._timeout_s,
            stale_ok=self._stale_ok,
        )


def _to_windows(answer: StoreAnswer) -> list[tuple[Windowed[Any], Any]]:
    """Return the rows of an answer as windows and values."""
    windows = []
    for row in answer.rows:
        assert row.start_ms is not None
        assert row.end_ms is not None
        windows.append((Windowed(row.key, row.start_ms, row.end_ms), row.value))
    return windows
