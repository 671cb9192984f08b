"""Open the store that a declaration asks for, on a disk, with its serdes and its clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from state.buffer import BufferStore
from state.cache import ObjectCache
from state.key_value import KeyValueStore
from state.read_back import describe_first_difference
from state.segmented import WindowSettings
from state.session import SessionStore
from state.state_serdes import StoreCodecs
from state.store import StoreDisk
from state.transaction import raise_no_record
from state.ttl_store import TtlStore
from state.versioned import VersionedStore
from state.window import WindowStore
from state.window_duplicates import DuplicatesWindowStore
from streams.graph.nodes import StoreKind, StoreSpec

AnyStore = (
    KeyValueStore[Any, Any]
    | WindowStore[Any]
    | SessionStore[Any]
    | VersionedStore[Any]
    | BufferStore
)

_REWRITTEN_KINDS = frozenset(
    (StoreKind.KEY_VALUE, StoreKind.WINDOW, StoreKind.SESSION, StoreKind.BUFFER)
)
"""The kinds of stores in which several commits change the same key, or delete what is new."""
_DEFAULT_RETENTION_MS = 86_400_000
"""The retention of windows and sessions that declare none: a day, as in Kafka Streams."""


def create_codecs(spec: StoreSpec) -> StoreCodecs:
    """Return the functions that turn a store's keys and values into bytes and back."""
    return StoreCodecs(
        spec.key.serialize, spec.key.deserialize, spec.value.serialize, spec.value.deserialize
    )


def with_read_back_check(spec: StoreSpec) -> StoreSpec:
    """Return the declaration of a store whose serde refuses values that it would not give back.

    Each value is read back when it is serialised, and compared, types included: a restart must read
    what steps see before it. This takes time, which a test has.
    """
    serialize, deserialize = spec.value.serialize, spec.value.deserialize

    def serialize_checked(value: Any) -> bytes:
        data = serialize(value)
        if difference := describe_first_difference(value, deserialize(data)):
            raise ValueError(
                f"a restart would read another value: {difference}. Give the store a serde that "
                "carries the type, as serdes.json(Type)"
            )
        return data

    return replace(spec, value=replace(spec.value, serialize=serialize_checked))


def open_store(
    spec: StoreSpec,
    disk: StoreDisk,
    *,
    cache: ObjectCache | None = None,
    clock: Callable[[], int] = raise_no_record,
) -> AnyStore:
    """Open the store that `spec` declares on `disk`; the store closes the disk.

    `cache` is shared by the stores of a thread; by default nothing outlives a transaction. `clock`
    returns the time in ms of a write that is given none: that of the record being processed.
    """
    codecs = create_codecs(spec)
    match spec.kind:
        case StoreKind.KEY_VALUE:
            if spec.ttl_ms is not None:
                return TtlStore(
                    spec.name, disk, codecs, ttl_ms=spec.ttl_ms, cache=cache, clock=clock
                )
            return KeyValueStore(spec.name, disk, codecs, cache=cache, clock=clock)
        case StoreKind.WINDOW | StoreKind.SESSION:
            return _open_window_store(spec, disk, codecs, cache, clock)
        case StoreKind.VERSIONED:
            return _open_versioned_store(spec, disk, codecs, cache, clock)
        case StoreKind.BUFFER:
            return BufferStore(
                spec.name, disk, time_of=spec.extract_time_ms, cache=cache, clock=clock
            )


def _open_window_store(
    spec: StoreSpec,
    disk: StoreDisk,
    codecs: StoreCodecs,
    cache: ObjectCache | None,
    clock: Callable[[], int],
) -> WindowStore[Any] | SessionStore[Any]:
    """Open a store of windows or sessions, which keeps them for a day where none is declared."""
    size_ms = spec.window_size_ms or 0
    retention_ms = _DEFAULT_RETENTION_MS if spec.retention_ms is None else spec.retention_ms
    settings = WindowSettings(
        max(retention_ms, size_ms), size_ms, spec.segment_ms, by_time=spec.is_ordered_by_time
    )
    # After a crash in a write, a store without a changelog may have entries on disk that are newer
    # than its stream time: what is in memory would not be all.
    recent = cache.recent_windows if cache and spec.logged else None
    store = spec.name, disk, codecs, settings
    if spec.kind is StoreKind.SESSION:
        return SessionStore(*store, recent_sessions=recent, cache=cache, clock=clock)
    if spec.retain_duplicates:
        return DuplicatesWindowStore(*store, recent_windows=recent, clock=clock)
    return WindowStore(*store, cache=cache, clock=clock)


def _open_versioned_store(
    spec: StoreSpec,
    disk: StoreDisk,
    codecs: StoreCodecs,
    cache: ObjectCache | None,
    clock: Callable[[], int],
) -> VersionedStore[Any]:
    """Open a versioned store, which keeps a day of history where none is declared."""
    return VersionedStore(
        spec.name,
        disk,
        codecs,
        history_ms=_DEFAULT_RETENTION_MS if spec.history_ms is None else spec.history_ms,
        is_source_topic=spec.source_topic is not None,
        cache=cache,
        clock=clock,
    )


def is_written_behind(spec: StoreSpec) -> bool:
    """Return whether the changes of a store may wait before they are written to its disk.

    They may where a changelog of its own restores them; a table's topic may have lost its records.
    It is no gain where a key is written once: versions, and records that a join keeps.
    """
    has_changelog = spec.logged and spec.source_topic is None
    return has_changelog and spec.kind in _REWRITTEN_KINDS and not spec.retain_duplicates
