"""Read one store of a task by what a query asks for, as rows: the same for every kind of store.

kind         a read of one key            a read of many keys
KEY_VALUE    its value and timestamp      keys from `key_from` to `key_to`, both included
WINDOW       its windows that start       the same, of a range of keys or of all
             from `from_ms` to `to_ms`
SESSION      its sessions                 the same, of a range of keys or of all
VERSIONED    the version of `as_of_ms`,   -
             or those of a time
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nlargest, nsmallest
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from state.keys import KeyBytes, StartMs
from streams.errors import ConfigError
from streams.graph.nodes import StoreKind, StoreSpec
from streams.queries.store_calls import StoreCall

FirstMs: TypeAlias = int
LastMs: TypeAlias = int
EndMs: TypeAlias = int
HasMore: TypeAlias = bool

ROWS_MAX = 10_000
"""The rows that one read returns at most: more would take longer than commits are apart."""
_AFTER_NAMES = ("key", "start", "end")
_LAST_MS = 2**62
"""A time after every window."""


class StoreRow(NamedTuple):
    """Represents an entry of a store. Times are in ms; windows and sessions have start and end.

    So have versions of a history: they are valid from start to end, without an end if they still
    are.
    """

    key: Any
    value: Any
    timestamp_ms: int | None = None
    start_ms: int | None = None
    end_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRead:
    """Holds what is read of a store: one key (`is_lookup`), or a range of them.

    `after` goes on behind the last key of an earlier read, and of a window or session with its
    `after_start_ms` and `after_end_ms`. None is no bound. With a `call` each
    task's row is its partition and the result of a registered query.
    """

    is_lookup: bool = False
    key: Any = None
    key_from: Any = None
    key_to: Any = None
    after: Any = None
    after_start_ms: int | None = None
    after_end_ms: int | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    as_of_ms: int | None = None
    is_reverse: bool = False
    limit: int = ROWS_MAX
    call: StoreCall | None = None

    def replace_key(self, key: Any) -> StoreRead:
        """Return the same look-up of another key. It is quicker than `dataclasses.replace`."""
        return StoreRead(
            is_lookup=True,
            key=key,
            from_ms=self.from_ms,
            to_ms=self.to_ms,
            as_of_ms=self.as_of_ms,
            is_reverse=self.is_reverse,
            limit=self.limit,
        )

    def has_one_row(self, spec: StoreSpec) -> bool:
        """Return whether a store has one row at most that is read, and finds it by its key."""
        if spec.kind is StoreKind.WINDOW:
            is_one_window = self.from_ms is not None and self.from_ms == self.to_ms
            is_found_by_key = not (spec.retain_duplicates or spec.is_ordered_by_time)
            return self.is_lookup and is_one_window and is_found_by_key
        if spec.kind is StoreKind.VERSIONED:
            return self.is_lookup and self.from_ms is None and self.to_ms is None
        return self.is_lookup and spec.kind is StoreKind.KEY_VALUE


def check_read_fits_store(spec: StoreSpec, read: StoreRead) -> None:
    """Raise ConfigError for a read that the kind of store can't answer."""
    if read.call is not None:
        read.call.check_arguments()
    kind = spec.kind
    if kind is StoreKind.BUFFER:
        raise ConfigError(f"{spec.name!r} is the buffer of a suppression, which can't be read")
    if kind is StoreKind.VERSIONED and not (read.is_lookup or read.call):
        raise ConfigError(f"{spec.name!r} is a versioned store: it is read key by key")
    if not 0 < read.limit <= ROWS_MAX:
        raise ConfigError(f"a read returns from 1 to {ROWS_MAX} rows, not {read.limit}")
    _check_resume_place(spec, read)
    has_times = not (read.from_ms is None and read.to_ms is None)
    if has_times and kind not in (StoreKind.WINDOW, StoreKind.VERSIONED):
        raise ConfigError(f"{spec.name!r} is no window store: it has no range of times")
    if read.as_of_ms is not None and kind is not StoreKind.VERSIONED:
        raise ConfigError(f"{spec.name!r} is no versioned store: it has no version as of a time")
    if has_times and read.as_of_ms is not None:
        raise ConfigError("a version is asked for as of a time, or versions of a range of times")


def _check_resume_place(spec: StoreSpec, read: StoreRead) -> None:
    """Raise ConfigError for a place to go on from that is none of the kind of store."""
    if read.after is read.after_start_ms is read.after_end_ms is None:
        return
    given = [read.after is not None, read.after_start_ms is not None, read.after_end_ms is not None]
    needed = {
        StoreKind.WINDOW: [True, True, False],
        StoreKind.SESSION: [True, True, True],
    }.get(spec.kind, [True, False, False])
    if read.is_lookup or given != needed:
        names = [n for n, is_needed in zip(_AFTER_NAMES, needed, strict=True) if is_needed]
        raise ConfigError(
            f"{spec.name!r} is a {spec.kind.name.lower()} store: a range goes on behind a row by "
            f"its {', '.join(names)}, and a look-up does not"
        )


def read_rows(spec: StoreSpec, store: Any, read: StoreRead) -> list[StoreRow]:
    """Return the rows of one task's store, one more than the limit if there are more."""
    rows = (
        _iterate_lookup(spec, store, read) if read.is_lookup else _iterate_range(spec, store, read)
    )
    return list(islice(rows, read.limit + 1))


def _iterate_lookup(spec: StoreSpec, store: Any, read: StoreRead) -> Iterator[StoreRow]:
    """Yield the rows of one key."""
    key = read.key
    match spec.kind:
        case StoreKind.KEY_VALUE:
            if (entry := store.entry(key)) is not None:
                yield StoreRow(key, entry.value, entry.timestamp_ms)
        case StoreKind.VERSIONED if not (read.from_ms is None and read.to_ms is None):
            get = store.backward_fetch_versions if read.is_reverse else store.fetch_versions
            for each in get(key, *_get_time_bounds(read)):
                since_ms = each.timestamp_ms
                yield StoreRow(key, each.value, since_ms, since_ms, each.valid_to_ms)
        case StoreKind.VERSIONED:
            if (version := store.get(key, read.as_of_ms)) is not None:
                yield StoreRow(key, version.value, version.timestamp_ms)
        case StoreKind.WINDOW:
            size_ms = spec.window_size_ms or 0
            fetch = store.backward_fetch if read.is_reverse else store.fetch
            for start_ms, value in fetch(key, *_get_time_bounds(read)):
                yield StoreRow(key, value, None, start_ms, start_ms + size_ms)
        case StoreKind.SESSION:
            sessions = (
                StoreRow(key, value, None, s.start_ms, s.end_ms) for s, value in store.fetch(key)
            )
            yield from _take_first(spec, sessions, read)


def _iterate_range(spec: StoreSpec, store: Any, read: StoreRead) -> Iterator[StoreRow]:
    """Yield the rows of a range of keys."""
    first, last = read.key_from, read.key_to
    if spec.kind is StoreKind.KEY_VALUE:
        if read.is_reverse:
            found = store.reverse_range(first, last if read.after is None else read.after)
        else:
            found = store.range(first if read.after is None else read.after, last)
        for key, value in found:
            if read.after is None or key != read.after:
                yield StoreRow(key, value)
        return
    windows = (
        store.fetch_range(first, last, *_get_time_bounds(read))
        if spec.kind is StoreKind.WINDOW
        else store.fetch_range(first, last)
    )
    rows = (StoreRow(w.key, value, None, w.start_ms, w.end_ms) for w, value in windows)
    yield from _take_first(spec, rows, read)


def _take_first(spec: StoreSpec, rows: Iterator[StoreRow], read: StoreRead) -> list[StoreRow]:
    """Return the first rows in order, behind the one after which the read goes on.

    A store keeps windows segment by segment: the first ones by key may be in the last segment.
    """
    get_order = partial(_get_sort_key, spec.key.serialize)
    if read.after is not None:
        count = 3 if spec.kind is StoreKind.SESSION else 2  # windows end by their start
        after = StoreRow(read.after, None, None, read.after_start_ms, read.after_end_ms)
        is_behind = operator.lt if read.is_reverse else operator.gt
        last = get_order(after)[:count]
        rows = (row for row in rows if is_behind(get_order(row)[:count], last))
    take = nlargest if read.is_reverse else nsmallest
    return take(read.limit + 1, rows, key=get_order)


def _get_time_bounds(read: StoreRead) -> tuple[FirstMs, LastMs]:
    """Return the first and the last time at which windows start that are read."""
    return (
        0 if read.from_ms is None else read.from_ms,
        _LAST_MS if read.to_ms is None else read.to_ms,
    )


def _get_sort_key(
    serialize: Callable[[Any], bytes], row: StoreRow
) -> tuple[KeyBytes, StartMs, EndMs]:
    """Return what rows are sorted by: the key's bytes, then start and end."""
    return serialize(row.key), row.start_ms or 0, row.end_ms or 0


def merge_rows(
    spec: StoreSpec, parts: Sequence[Sequence[StoreRow]], read: StoreRead
) -> tuple[list[StoreRow], HasMore]:
    """Return the rows of several tasks in order, and whether there are more than the limit.

    The order is that of the keys' bytes, then of start and end; of partitions for a `call`.
    """
    if read.call is not None:
        return sorted(
            (row for rows in parts for row in rows), key=operator.attrgetter("key")
        ), False
    if len(parts) == 1 and len(parts[0]) <= 1:  # as of most look-ups
        return list(parts[0]), False
    rows = sorted(
        (row for rows in parts for row in rows),
        key=partial(_get_sort_key, spec.key.serialize),
        reverse=read.is_reverse,
    )
    has_more = len(rows) > read.limit or any(len(rows) > read.limit for rows in parts)
    return rows[: read.limit], has_more
