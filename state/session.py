"""Store a value for each key and session, which has a start and an end."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, TypeVar

from state.cache import ObjectCache
from state.drained_writes import create_write_after_drain_error
from state.entry import StoreEntry, ValueAndTimestamp, to_value_and_timestamp
from state.guessed_names import explain_guessed_names
from state.keys import (
    SEGMENT_BYTES,
    SESSION_SUFFIX_BYTES,
    TIME_MAX,
    DiskKey,
    KeyBytes,
    pack_session,
    pack_time,
    unpack_session,
)
from state.recent_windows import RecentWindows, RecentWindowsBudget
from state.segmented import WindowSettings
from state.session_layout import SessionLayout
from state.state_serdes import StoreCodecs
from state.store import ChangelogEntry, StoreDisk
from state.store_checkpoint import StoreCheckpoint
from state.transaction import raise_no_record
from state.windowed import Windowed

V = TypeVar("V")


@explain_guessed_names({})
class SessionStore(SessionLayout[V]):
    """Stores values by key, start and end of a session (Kafka Streams' SessionStore).

    A session is kept for as long as its end is less than the retention behind stream time, the
    largest end that was put. All times are in ms. Sessions of a key come by their end, then by
    their start. `recent_sessions` bounds what is kept in memory of the newest ones, for
    `find_sessions` (`state.recent_windows`); None keeps none.
    """

    _entries_are_replaced = True

    def __init__(
        self,
        name: str,
        disk: StoreDisk,
        codecs: StoreCodecs,
        settings: WindowSettings,
        *,
        recent_sessions: RecentWindowsBudget | None = None,
        cache: ObjectCache | None = None,
        clock: Callable[[], int] = raise_no_record,
    ) -> None:
        super().__init__(name, disk, codecs, settings, cache=cache, clock=clock)
        self._recent_budget = recent_sessions
        self._recent: RecentWindows | None = None
        """The bounds of the newest sessions; None until the first search says how far one goes."""

    def put(self, session: Windowed[Any], value: V | None, timestamp_ms: int | None = None) -> None:
        """Set the value of a session, or remove it if the value is None.

        A session that has expired is left alone, and `dropped` counts it.
        """
        encoded = self._serialize_key(session.key)
        if self._drained is not None:
            raise create_write_after_drain_error(self.name)
        if self._try_admit_write(session.end_ms):
            self._write_value(self._build_disk_key(encoded, session), session, value, timestamp_ms)
            self._remember_session_bounds(encoded, session)

    def get_entry_for_update(self, session: Windowed[Any]) -> StoreEntry[Windowed[Any], V] | None:
        """Return a session's entry to change in place, empty if new; None if the session expired.

        Set its `value` and `timestamp_ms`: it counts as written. `dropped` counts an expired one.
        """
        return self.get_merged_entry_for_update(self._serialize_key(session.key), None, session)

    def remove(self, session: Windowed[Any], timestamp_ms: int | None = None) -> None:
        """Remove the session that has this key, start and end."""
        type(self).put(self, session, None, timestamp_ms)  # which is counted as no put

    def entry(self, session: Windowed[Any]) -> ValueAndTimestamp[V] | None:
        """Return the value of a session and the timestamp of the record that wrote it, or None."""
        encoded = self._serialize_key(session.key)
        if session.end_ms < self._live_from_ms:
            return None
        disk_key = self._build_disk_key(encoded, session)
        return to_value_and_timestamp(self._find_entry(disk_key, session))

    def copy_entry(self, session: Windowed[Any]) -> ValueAndTimestamp[V] | None:
        """Return a copy of a session's value, for the caller to change, and the session's end.

        Returns None for a session without a value.

        The value is never the object that the running transaction has put, which is to be written
        as it is.
        """
        if session.end_ms < self._live_from_ms:
            return None
        found = super().copy_entry(session)
        return None if found is None else ValueAndTimestamp(found.value, session.end_ms)

    def copy_emitted_entry(
        self, session: Windowed[Any], unemitted: Container[StoreEntry[Windowed[Any], V]]
    ) -> ValueAndTimestamp[V] | None:
        """Return a copy of a session's value as emitted downstream last, and the session's end."""
        found = super().copy_emitted_entry(session, unemitted)
        return None if found is None else ValueAndTimestamp(found.value, session.end_ms)

    def fetch_session(self, key: Any, start_ms: int, end_ms: int) -> V | None:
        """Return the value of the session of `key` with that start and end, or None."""
        entry = type(self).entry(self, Windowed(key, start_ms, end_ms))  # counted once
        return None if entry is None else entry.value

    def fetch(self, key: Any) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield all sessions of `key` with their values, oldest first."""
        return self._iterate_sessions_of_key(key, 0, TIME_MAX, reverse=False)

    def backward_fetch(self, key: Any) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield all sessions of `key` with their values, newest first."""
        return self._iterate_sessions_of_key(key, 0, TIME_MAX, reverse=True)

    def fetch_range(self, key_from: Any, key_to: Any) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield all sessions of the keys from `key_from` to `key_to`, those of a key oldest first.

        Both keys are included, by the order of their bytes; None is no bound.
        """
        return self._iterate_sessions_of_keys(
            key_from, key_to, 0, TIME_MAX, TIME_MAX, reverse=False
        )

    def backward_fetch_range(self, key_from: Any, key_to: Any) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield all sessions of the keys `key_from` to `key_to`, those of a key newest first."""
        return self._iterate_sessions_of_keys(key_from, key_to, 0, TIME_MAX, TIME_MAX, reverse=True)

    def find_sessions(
        self, key: Any, earliest_end_ms: int, latest_start_ms: int
    ) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield the sessions of `key` that a record between the two times would join, oldest first.

        They end at `earliest_end_ms` or later and start at `latest_start_ms` or earlier.
        """
        recent = self._find_recent_windows_or_begin_keeping(earliest_end_ms, latest_start_ms)
        if recent is None:
            return self._iterate_sessions_of_key(
                key, earliest_end_ms, latest_start_ms, reverse=False
            )
        return self._iterate_sessions_in_memory(recent, key, earliest_end_ms, latest_start_ms)

    def find_sessions_to_merge(
        self, key: Any, earliest_end_ms: int, latest_start_ms: int
    ) -> tuple[KeyBytes, dict[DiskKey, StoreEntry[Windowed[Any], V]]]:
        """Return the bytes of `key`, and the sessions that `find_sessions` yields.

        These are entries for reading, by their keys on disk, oldest first, and what
        `remove_merged_session` and `get_merged_entry_for_update` need.
        """
        key_bytes = self._serialize_key(key)
        recent = self._find_recent_windows_or_begin_keeping(earliest_end_ms, latest_start_ms)
        if recent is not None:
            return key_bytes, self._find_sessions_to_merge_in_memory(
                recent, key, key_bytes, earliest_end_ms, latest_start_ms
            )
        found = self._iterate_sessions_of_key(key, earliest_end_ms, latest_start_ms, reverse=False)
        return key_bytes, {
            self._build_disk_key(key_bytes, session): StoreEntry(session, value, -1, b"")
            for session, value in found
        }

    def remove_merged_session(
        self, disk_key: bytes, found_entry: StoreEntry[Windowed[Any], V], timestamp_ms: int
    ) -> StoreEntry[Windowed[Any], V]:
        """Remove a session that `find_sessions_to_merge` has found, and return its entry."""
        if self._drained is not None:
            raise create_write_after_drain_error(self.name)
        session = found_entry.key
        if self._recent is not None:  # a rollback brings the session back, and forgets all bounds
            key_bytes = disk_key[SEGMENT_BYTES:-SESSION_SUFFIX_BYTES]
            bounds = disk_key[-SESSION_SUFFIX_BYTES:]
            self._recent.remove_entry(key_bytes, session.end_ms, bounds)
        held = self._overlay.get(disk_key)
        if held is None:
            held = self._move_to_overlay_for_update(disk_key, session)
        held.value, held.timestamp_ms = None, timestamp_ms
        return held

    def get_merged_entry_for_update(
        self,
        key_bytes: bytes,
        merged_disk_keys: Container[bytes] | None,
        session: Windowed[Any],
    ) -> StoreEntry[Windowed[Any], V] | None:
        """Return the entry of the session into which `merged_disk_keys` are merged, to be changed.

        It does what `get_entry_for_update` does, but reads no disk to find out that the session is
        new: the search that returned `key_bytes` and `merged_disk_keys` would have found it. None:
        none was made.
        """
        if self._drained is not None:
            raise create_write_after_drain_error(self.name)
        end_ms = session.end_ms
        if not self._try_admit_write(end_ms):
            return None
        bounds = pack_session(end_ms, session.start_ms)
        recent = self._recent
        if recent is not None:
            recent.add_entry(key_bytes, end_ms, bounds, b"")
        disk_key = pack_time(end_ms // self._segment_ms) + key_bytes + bounds
        held = self._overlay.get(disk_key)
        if held is not None:
            return held
        # Without a changelog, a crash may have left sessions on disk that no search finds.
        if recent is None or merged_disk_keys is None or disk_key in merged_disk_keys:
            return self._move_to_overlay_for_update(disk_key, session)
        own_session = self._copy_key(session, disk_key)
        if self._early is None:
            held = StoreEntry(own_session, None, -1, None)
        else:
            held = self._early.create_entry(
                own_session, -1, None, len(disk_key) - self._prefix_bytes
            )
        self._overlay[disk_key] = held
        return held

    def backward_find_sessions(
        self, key: Any, earliest_end_ms: int, latest_start_ms: int
    ) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield the sessions of `key` that a record between two times would join, newest first."""
        return self._iterate_sessions_of_key(key, earliest_end_ms, latest_start_ms, reverse=True)

    def find_ended(
        self, earliest_end_ms: int, latest_end_ms: int
    ) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield the sessions of all keys that end between the two times, both included."""
        return self._iterate_sessions_of_keys(
            None, None, earliest_end_ms, latest_end_ms, TIME_MAX, reverse=False
        )

    def all(self) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield all sessions with their values; those of a key come oldest first."""
        return self._iterate_sessions_of_keys(None, None, 0, TIME_MAX, TIME_MAX, reverse=False)

    def commit(self, checkpoint: StoreCheckpoint) -> None:
        """Commit the transaction's sessions, and evict session bounds over the memory budget."""
        super().commit(checkpoint)
        if self._recent is not None and self._recent_budget is not None:
            self._recent.evict_before(self._live_from_ms)
            self._recent_budget.evict_to_fit()

    def rollback_transaction(self) -> None:
        """Discard the transaction's writes, and the bounds in memory."""
        super().rollback_transaction()
        self._forget_bounds()

    def replay_changelog(
        self, entries: Iterable[ChangelogEntry], checkpoint: StoreCheckpoint
    ) -> None:
        """Replay changelog entries into the store, and discard the session bounds in memory."""
        super().replay_changelog(entries, checkpoint)
        self._forget_bounds()

    def close(self) -> None:
        """Release the disk and the memory; what was not committed is lost."""
        super().close()
        if self._recent is not None and self._recent_budget is not None:
            self._recent_budget.remove_store(self._recent)

    def _remember_session_bounds(self, key_bytes: bytes, session: Windowed[Any]) -> None:
        """Keep the bounds of a session that is written, also of one that is removed by that."""
        if self._recent is not None:
            bounds = pack_session(session.end_ms, session.start_ms)
            self._recent.add_entry(key_bytes, session.end_ms, bounds, b"")

    def _forget_bounds(self) -> None:
        """Forget the bounds in memory: those that are kept from now on are newer than the disk."""
        if self._recent is not None:
            self._recent.restart(self._stream_time_ms + 1)

    def _find_recent_windows_or_begin_keeping(
        self, earliest_end_ms: int, latest_start_ms: int
    ) -> RecentWindows | None:
        """Return the bounds in memory if they are all that a search needs, else None.

        The first search says how far one goes, and from then on bounds are kept.
        """
        recent = self._recent
        if recent is None:
            if self._recent_budget is not None:
                search_ms = latest_start_ms - earliest_end_ms
                self._recent = self._recent_budget.add_store(2 * search_ms)
                self._forget_bounds()
            return None
        complete_from_ms = recent.complete_from_ms
        if earliest_end_ms >= complete_from_ms or self._live_from_ms >= complete_from_ms:
            return recent
        return None

    def _iterate_sessions_in_memory(
        self, recent: RecentWindows, key: Any, earliest_end_ms: int, latest_start_ms: int
    ) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield the sessions that a search finds, where all such sessions are in memory."""
        key_bytes = self._serialize_key(key)
        found = self._find_sessions_to_merge_in_memory(
            recent, key, key_bytes, earliest_end_ms, latest_start_ms
        )
        for disk_key, entry in found.items():
            value = self._overlay.get(disk_key, entry).value  # it may have been written meanwhile
            if value is not None:
                yield Windowed(key, entry.key.start_ms, entry.key.end_ms), value

    def _find_sessions_to_merge_in_memory(
        self,
        recent: RecentWindows,
        key: Any,
        key_bytes: bytes,
        earliest_end_ms: int,
        latest_start_ms: int,
    ) -> dict[bytes, StoreEntry[Windowed[Any], V]]:
        """Return the sessions to merge with, where all such sessions are in memory."""
        found: dict[bytes, StoreEntry[Windowed[Any], V]] = {}
        overlay, cached = self._overlay, self._cached.entries
        segment_ms, latest = self._segment_ms, self._stream_time_ms
        earliest = max(earliest_end_ms, self._live_from_ms)
        for bounds in recent.find_entries_around(key_bytes, earliest, latest):
            end_ms, start_ms = unpack_session(bounds)
            if end_ms < earliest or start_ms > latest_start_ms:
                continue
            disk_key = pack_time(end_ms // segment_ms) + key_bytes + bounds
            held = overlay.get(disk_key) or cached.get(disk_key)
            if held is None or held.value is None:
                held = self._find_entry(disk_key, Windowed(key, start_ms, end_ms))
            if held is None:
                recent.remove_entry(key_bytes, end_ms, bounds)
            elif held.value is not None:
                found[disk_key] = held
        return found
