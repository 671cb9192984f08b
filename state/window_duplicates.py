"""Store every value that was put for a key and window, as joins of streams need it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from state.disk_backed import DiskBackedStore
from state.disk_layout import read_checkpoint_or_hold_disk_back
from state.drained_writes import create_write_after_drain_error
from state.early_serialization import ChangeLimit
from state.entry import StoreEntry
from state.keys import SEQUENCE_MAX, TIME_MAX, WINDOW_SUFFIX_BYTES, StartMs, pack_window
from state.recent_windows import RecentWindowsBudget
from state.segmented import WindowSettings
from state.state_serdes import StateSerdes, StoreCodecs
from state.store import ChangelogEntry, StoreDisk
from state.store_checkpoint import StoreCheckpoint
from state.transaction import raise_no_record
from state.window import IsStored, WindowStore
from state.windowed import Windowed

V = TypeVar("V")

_NO_KEY: Any = None
"""Stands for the key of an entry, which is made from the bytes of its key on disk."""


class DuplicatesWindowStore(WindowStore[V]):
    """Stores each value beside those that its key has in the window (Kafka's `retainDuplicates`).

    `fetch(key, time)` and `get_entry_for_update` don't make sense here, and putting None does
    nothing. A value is serialised when it is put: no two have an object in common with each other
    or with anybody else. The values of a window are told apart by a sequence number in their keys.
    `recent_windows` bounds the newest entries, which are kept in memory (`state.recent_windows`);
    None keeps none.
    """

    def __init__(
        self,
        name: str,
        disk: StoreDisk,
        codecs: StoreCodecs,
        settings: WindowSettings,
        *,
        recent_windows: RecentWindowsBudget | None = None,
        clock: Callable[[], int] = raise_no_record,
    ) -> None:
        super().__init__(  # without a cache: such windows are read as ranges, which don't use it
            name,
            disk,
            codecs._replace(encode_value=_return_unchanged),
            settings,
            clock=clock,
        )
        self._serialize_put = StateSerdes(name, codecs).serialize_value
        self._sequence = self._committed_sequence = 0
        _, checkpoint = read_checkpoint_or_hold_disk_back(disk, self._layout, name)
        if checkpoint is not None:
            self._restore_sequence(checkpoint)
        self._recent_budget = recent_windows or RecentWindowsBudget(0)
        self._recent = self._recent_budget.add_store(settings.window_size_ms)
        self._keeps_recent = recent_windows is not None
        self._forget_recent_entries()

    def put(
        self, key: Any, value: V | None, window_start_ms: int, timestamp_ms: int | None = None
    ) -> IsStored:
        """Add a value of `key` to the window that starts then, unless the window has expired.

        None adds nothing. Returns whether the window is live; `dropped` counts one that has
        expired.
        """
        encoded = self._serialize_key(key)
        if self._drained is not None:
            raise create_write_after_drain_error(self.name)
        if value is None:
            return True
        serialized: Any = self._serialize_put(value)
        if not self._try_admit_write(window_start_ms):
            return False
        if self._size_limit is not None:
            self._refuse_large_change(key, len(encoded) + WINDOW_SUFFIX_BYTES + len(serialized))
        if timestamp_ms is None:
            timestamp_ms = self.clock()
        self._sequence = (self._sequence + 1) & SEQUENCE_MAX
        suffix = pack_window(window_start_ms, self._sequence)
        disk_key = self._encode_segment(window_start_ms) + encoded + suffix
        # No two puts have a key in common, so there is no entry of it, in the cache neither.
        self._overlay[disk_key] = StoreEntry(_NO_KEY, serialized, timestamp_ms, None)
        self._recent.add_entry(encoded, window_start_ms, suffix, serialized)
        return True

    def find_values(self, key: Any, from_ms: int, to_ms: int) -> list[tuple[StartMs, V]]:
        """Return start and value of the windows of `key` that start between two times.

        These are what `fetch` yields, oldest first, in less time where they are in memory.
        """
        live_ms = self._stream_time_ms - self._retention_ms + 1
        if from_ms < live_ms:
            from_ms = live_ms
        if from_ms < self._recent.complete_from_ms:
            return list(type(self).fetch(self, key, from_ms, to_ms))
        found = self._recent.find_values(self._serialize_key(key), from_ms, to_ms)
        return [(start_ms, self._decode_value(value)) for start_ms, value in found]

    def commit(self, checkpoint: StoreCheckpoint) -> None:
        """Commit the transaction's windows, and keep the sequence number of the last duplicate."""
        super().commit(checkpoint)
        self._committed_sequence = self._sequence
        self._recent.evict_before(self._live_from_ms)
        self._recent_budget.evict_to_fit()

    def rollback_transaction(self) -> None:
        """Discard the transaction's writes, and go back to the committed sequence number."""
        super().rollback_transaction()
        self._sequence = self._committed_sequence
        self._forget_recent_entries()

    def replay_changelog(
        self, entries: Iterable[ChangelogEntry], checkpoint: StoreCheckpoint
    ) -> None:
        """Replay changelog entries into the store; restore the sequence number of duplicates."""
        super().replay_changelog(entries, checkpoint)
        self._restore_sequence(checkpoint)
        self._forget_recent_entries()

    def close(self) -> None:
        """Release the disk and the memory; what was not committed is lost."""
        super().close()
        self._recent_budget.remove_store(self._recent)

    def clear_all_data(self) -> None:
        """Delete all data, and number duplicates from 0 again."""
        self._committed_sequence = 0
        super().clear_all_data()

    def serialize_early(
        self, on_refused: Callable[[], object] | None, limit: ChangeLimit | None = None
    ) -> None:
        """Compare sizes with `limit` alone: each value is serialised as it is put in any case."""
        DiskBackedStore.serialize_early(self, on_refused, limit)

    def _forget_recent_entries(self) -> None:
        """Forget the entries in memory: those that are read from now on are newer than the disk."""
        self._recent.restart(self._stream_time_ms + 1 if self._keeps_recent else TIME_MAX)

    def _restore_sequence(self, checkpoint: StoreCheckpoint) -> None:
        """Continue the sequence numbers of duplicates from the checkpoint's changelog offset.

        Each put takes an offset of the changelog, and one that was rolled back gives its number
        back, so that none has a number above the offset.
        """
        self._sequence = self._committed_sequence = checkpoint.position & SEQUENCE_MAX

    def _add_store_state_to_checkpoint(self, checkpoint: StoreCheckpoint) -> StoreCheckpoint:
        """Complete the checkpoint; without a changelog, its position is the sequence number."""
        noted = super()._add_store_state_to_checkpoint(checkpoint)
        # Without a changelog there is no offset: the sequence number stands in its place.
        return noted if checkpoint.topic_id else replace(noted, position=self._sequence)

    def _read_window_of_entry(
        self, key_bytes: bytes, start_ms: int, entry: StoreEntry[Windowed[Any], V] | None
    ) -> Windowed[Any]:
        return super()._read_window_of_entry(key_bytes, start_ms, None)

    def _read_entry_value(
        self, entry: StoreEntry[Windowed[Any], V] | None, stored_value: bytes
    ) -> V:
        """Return the value of an entry, whose overlay has the serialised value."""
        held: Any = None if entry is None else entry.value
        if held is not None:
            return self._decode_value(held)  # type: ignore[no-any-return]
        return super()._read_entry_value(entry, stored_value)


def _return_unchanged(value: Any) -> Any:
    return value
