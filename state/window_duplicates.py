"""Store every value that was put for a key and window, as joins of streams need it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from state.drained_writes import write_after_drain
from state.entry import StoreEntry
from state.keys import SEQUENCE_MAX
from state.state_serdes import StateSerdes, StoreCodecs
from state.store import ChangelogEntry, StoreCheckpoint, StoreDisk
from state.transaction import raise_no_record
from state.window import WindowStore
from state.windowed import Windowed

V = TypeVar("V")


class DuplicatesWindowStore(WindowStore[V]):
    """Stores each value beside those that its key has in the window (Kafka's `retainDuplicates`).

    `fetch(key, time)` and `entry_for_update` don't make sense here, and putting None does nothing.
    A value is serialised when it is put: no two have an object in common with each other or with
    anybody else. The values of a window are told apart by a sequence number in their keys.
    """

    def __init__(
        self,
        name: str,
        disk: StoreDisk,
        codecs: StoreCodecs,
        *,
        retention_ms: int,
        window_size_ms: int,
        segment_ms: int | None = None,
        by_time: bool = False,
        clock: Callable[[], int] = raise_no_record,
    ) -> None:
        super().__init__(  # without a cache: such windows are read as ranges, which don't use it
            name,
            disk,
            codecs._replace(encode_value=_return_unchanged),
            retention_ms=retention_ms,
            window_size_ms=window_size_ms,
            segment_ms=segment_ms,
            by_time=by_time,
            clock=clock,
        )
        self._serialize_put = StateSerdes(name, codecs).serialize_value
        self._sequence = self._committed_sequence = 0
        checkpoint = disk.read_checkpoint()
        if checkpoint is not None:
            self._restore_sequence(checkpoint)

    def put(
        self, key: Any, value: V | None, window_start_ms: int, timestamp_ms: int | None = None
    ) -> bool:
        """Add a value of `key` to the window that starts then, unless the window has expired.

        None adds nothing. Returns whether the window is live; `dropped` counts one that has
        expired.
        """
        encoded = self._serialize_key(key)
        if self._drained is not None:
            raise write_after_drain(self.name)
        if value is None:
            return True
        serialized: Any = self._serialize_put(value)
        if not self._admit_write(window_start_ms):
            return False
        sequence = self._sequence = (self._sequence + 1) & SEQUENCE_MAX
        disk_key = self._build_disk_key(encoded, window_start_ms, sequence)
        self._write_value(
            disk_key, self._create_window(key, window_start_ms), serialized, timestamp_ms
        )
        return True

    def commit(self, checkpoint: StoreCheckpoint) -> None:
        """Commit as any segmented store does, and keep the sequence number that was reached."""
        super().commit(checkpoint)
        self._committed_sequence = self._sequence

    def rollback_transaction(self) -> None:
        """Discard the transaction's writes, and go back to the committed sequence number."""
        super().rollback_transaction()
        self._sequence = self._committed_sequence

    def replay_changelog(
        self, entries: Iterable[ChangelogEntry], checkpoint: StoreCheckpoint
    ) -> None:
        """Replay as any segmented store does, and restore the sequence number of duplicates."""
        super().replay_changelog(entries, checkpoint)
        self._restore_sequence(checkpoint)

    def clear_all_data(self) -> None:
        """Delete all data, and number duplicates from 0 again."""
        self._committed_sequence = 0
        super().clear_all_data()

    def serialize_early(self, on_refused: Callable[[], object] | None) -> None:
        """Do nothing: each value is serialised as it is put in any case."""
        return

    def _restore_sequence(self, checkpoint: StoreCheckpoint) -> None:
        """Continue the sequence numbers of duplicates from the checkpoint's changelog offset.

        Each put takes an offset of the changelog, and one that was rolled back gives its number
        back, so that none has a number above the offset.
        """
        self._sequence = self._committed_sequence = checkpoint.position & SEQUENCE_MAX

    def _complete_checkpoint(self, checkpoint: StoreCheckpoint) -> StoreCheckpoint:
        """Complete the checkpoint; without a changelog, its position is the sequence number."""
        noted = super()._complete_checkpoint(checkpoint)
        # Without a changelog there is no offset: the sequence number stands in its place.
        return noted if checkpoint.topic_id else replace(noted, position=self._sequence)

    def _entry_value(self, entry: StoreEntry[Windowed[Any], V] | None, stored_value: bytes) -> V:
        """Return the value of an entry, whose overlay has the serialised value."""
        held: Any = None if entry is None else entry.value
        if held is not None:
            return self._decode_value(held)  # type: ignore[no-any-return]
        return super()._entry_value(entry, stored_value)


def _return_unchanged(value: Any) -> Any:
    return value
