"""Store a value for each key and window of time until the window expires."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar, overload

from state.cache import ObjectCache
from state.entry import StoreEntry, ValueAndTimestamp
from state.keys import (
    BY_TIME,
    SEGMENT_BYTES,
    SEQUENCE_MAX,
    TIME_BYTES,
    TIME_MAX,
    WINDOW_SUFFIX_BYTES,
    largest_suffixed_key,
    next_segment,
    pack_time,
    pack_window,
    unpack_time,
    unpack_window,
)
from state.segmented import SegmentedStore
from state.store import ChangelogEntry, StoreCheckpoint, StoreDisk
from state.transaction import StoreCodecs, raise_no_record
from state.windowed import Windowed

V = TypeVar("V")

_AFFIXES_MAX = 256


class WindowStore(SegmentedStore[V]):
    """Stores values by key and the start of their window (Kafka Streams' TimestampedWindowStore).

    With `retain_duplicates` each put adds a value beside those that the key has in the window, as
    joins of streams need it; there `fetch(key, time)` and `entry_for_update` don't make sense, and
    putting None does nothing. A value is serialised when it is put: no two have an object in common
    with each other or with anybody else. All times are in ms, and ranges of them include both ends.
    `segment_ms` is the length of a segment on disk (`state.segmented`), by default half of the
    retention.
    """

    _kind = "windows"

    def __init__(
        self,
        name: str,
        disk: StoreDisk,
        codecs: StoreCodecs,
        *,
        retention_ms: int,
        window_size_ms: int,
        retain_duplicates: bool = False,
        segment_ms: int | None = None,
        by_time: bool = False,
        cache: ObjectCache | None = None,
        clock: Callable[[], int] = raise_no_record,
    ) -> None:
        if retain_duplicates:
            cache = None  # such windows are read as ranges, which don't use the cache
        super().__init__(
            name,
            disk,
            codecs,
            retention_ms=retention_ms,
            segment_ms=segment_ms,
            by_time=by_time,
            cache=cache,
            clock=clock,
        )
        self._affixes: dict[int, tuple[bytes, bytes]] = {}
        self._window_size_ms = window_size_ms
        self._retain_duplicates = retain_duplicates
        self._encode_put = self._encode_value
        if retain_duplicates:
            self._encode_value = _return_unchanged
        self._sequence = self._committed_sequence = 0
        checkpoint = disk.read_checkpoint()
        if checkpoint is not None:
            self._restore_sequence(checkpoint)

    def _restore_sequence(self, checkpoint: StoreCheckpoint) -> None:
        """Continue the sequence numbers of duplicates from the checkpoint's changelog offset.

        Each put takes an offset of the changelog, and one that was rolled back gives its number
        back, so that none has a number above the offset.
        """
        self._sequence = self._committed_sequence = checkpoint.position & SEQUENCE_MAX

    def commit(self, checkpoint: StoreCheckpoint) -> None:
        """Commit as any segmented store does, and keep the sequence number that was reached."""
        super().commit(checkpoint)
        self._committed_sequence = self._sequence

    def rollback_transaction(self) -> None:
        """Discard the transaction's writes, and go back to the committed sequence number."""
        super().rollback_transaction()
        self._sequence = self._committed_sequence

    def _complete_checkpoint(self, checkpoint: StoreCheckpoint) -> StoreCheckpoint:
        """Complete the checkpoint; without a changelog, its position is the sequence number."""
        noted = super()._complete_checkpoint(checkpoint)
        # Without a changelog there is no offset: the sequence number stands in its place.
        return noted if checkpoint.topic_id else replace(noted, position=self._sequence)

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
        """Serialise early as any store does; do nothing for a store of duplicates.

        It serialises each value as it is put in any case.
        """
        if not self._retain_duplicates:  # those serialise each value as it is put
            super().serialize_early(on_refused)

    def put(
        self, key: Any, value: V | None, window_start_ms: int, timestamp_ms: int | None = None
    ) -> bool:
        """Set the value of `key` in the window that starts then, unless the window has expired.

        None deletes the value. Returns whether the window is live; `dropped` counts one that has
        expired.
        """
        encoded = self._serialize_key(key)
        self._check_not_drained()
        sequence = 0
        put: Any = value
        if self._retain_duplicates:
            if value is None:
                return True
            put = self._serialize_duplicate(value)
        if not self._admit_write(window_start_ms):
            return False
        if self._retain_duplicates:
            sequence = self._sequence = (self._sequence + 1) & SEQUENCE_MAX
        self._write_value(
            self._build_disk_key(encoded, window_start_ms, sequence),
            self._create_window(key, window_start_ms),
            put,
            timestamp_ms,
        )
        return True

    def entry_for_update(
        self, key: Any, window_start_ms: int
    ) -> StoreEntry[Windowed[Any], V] | None:
        """Return the entry of `key` in a window, counted as written, or None if it has expired.

        Set its `value` and `timestamp_ms` in place. `dropped` counts an expired one.
        """
        try:
            encoded = self._encode_key(key)
        except Exception as error:
            raise self._serde_error("key", key, error) from error
        if self._drained is not None:
            self._check_not_drained()
        if window_start_ms > self._stream_time_ms:
            self._stream_time_ms = window_start_ms
        elif window_start_ms <= self._stream_time_ms - self._retention_ms:
            self.dropped += 1
            return None
        affixes = self._affixes.get(window_start_ms)
        before, after = self._key_affixes(window_start_ms) if affixes is None else affixes
        disk_key = before + encoded + after
        held = self._overlay.get(disk_key)
        if held is None:
            return self._take_for_update(disk_key, self._create_window(key, window_start_ms))
        return held

    def _key_affixes(self, window_start_ms: int) -> tuple[bytes, bytes]:
        """Return the bytes before and after a key on disk, for a window that starts then.

        They are cached, as many records in a row are in the same few windows.
        """
        if window_start_ms < 0:
            raise ValueError(
                f"store {self.name!r}: windows begin at 0 or later, not {window_start_ms}"
            )
        if len(self._affixes) >= _AFFIXES_MAX:
            self._affixes.clear()
        affixes = self._affixes[window_start_ms] = (
            self._segment_of(window_start_ms),
            pack_window(window_start_ms, 0),
        )
        return affixes

    def entry(self, key: Any, window_start_ms: int) -> ValueAndTimestamp[V] | None:
        """Return the value of `key` in a window and the timestamp of its record, or None."""
        encoded = self._serialize_key(key)
        if window_start_ms < self._live_from_ms:
            return None
        disk_key = self._build_disk_key(encoded, window_start_ms, 0)
        return self._read_value(disk_key, self._create_window(key, window_start_ms))

    def copy_entry(self, window: Windowed[Any]) -> ValueAndTimestamp[V] | None:
        """Return a copy of a window's value, for the caller to change, and its timestamp, or None.

        The value is never the object that the running transaction has put, which is to be written
        as it is.
        """
        encoded = self._serialize_key(window.key)
        if window.start_ms < self._live_from_ms:
            return None
        return self._copy_value(self._build_disk_key(encoded, window.start_ms, 0), window)

    def entries(
        self, key: Any, from_ms: int, to_ms: int, *, reverse: bool = False
    ) -> Iterator[tuple[int, V, int]]:
        """Yield start, value and timestamp of the windows of `key` that start between two times.

        Timestamps are of the records that wrote the values. Oldest first, or with `reverse` newest
        first.
        """
        encoded = self._serialize_key(key)
        length = SEGMENT_BYTES + len(encoded) + WINDOW_SUFFIX_BYTES
        from_ms = max(from_ms, self._live_from_ms)
        to_ms = min(to_ms, self._stream_time_ms)
        lower = encoded + pack_time(from_ms)
        upper = encoded + pack_window(max(to_ms, 0), SEQUENCE_MAX) + b"\0"
        for segment in self._live_segments(from_ms, to_ms, reverse=reverse):
            found = self._scan_range(segment + lower, segment + upper, reverse=reverse)
            for disk_key, entry, stored in found:
                if len(disk_key) == length:
                    start_ms, _ = unpack_window(disk_key[-WINDOW_SUFFIX_BYTES:])
                    yield (
                        start_ms,
                        self._entry_value(entry, stored),
                        self._entry_timestamp_ms(entry, stored),
                    )

    def all_entries(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[Any], V, int]]:
        """Yield the windows of all keys that start between the two times, with value and timestamp.

        Timestamps are of the records that wrote the values. Windows come a segment after the other,
        within one by key.
        """
        from_ms = max(from_ms, self._live_from_ms)
        to_ms = min(to_ms, self._stream_time_ms)
        if from_ms > to_ms:
            return
        last = next_segment(self._segment_of(to_ms))
        for disk_key, entry, stored in self._scan_range(
            self._segment_of(from_ms), last, reverse=False
        ):
            start_ms, _ = unpack_window(disk_key[-WINDOW_SUFFIX_BYTES:])
            if from_ms <= start_ms <= to_ms:
                window = self._window_of_entry(
                    disk_key[SEGMENT_BYTES:-WINDOW_SUFFIX_BYTES], start_ms, entry
                )
                yield (
                    window,
                    self._entry_value(entry, stored),
                    self._entry_timestamp_ms(entry, stored),
                )

    @overload
    def fetch(self, key: Any, from_ms: int) -> V | None: ...
    @overload
    def fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, V]]: ...
    def fetch(
        self, key: Any, from_ms: int, to_ms: int | None = None
    ) -> V | Iterator[tuple[int, V]] | None:
        """Return the value of `key` in one window, or its windows that start between two times.

        With one time it is the value in the window that starts then, or None. With two times it is
        the start and the value of each window, oldest first.
        """
        if to_ms is None:
            entry = self.entry(key, from_ms)
            return None if entry is None else entry.value
        return self._windows_of_key(key, from_ms, to_ms, reverse=False)

    def backward_fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, V]]:
        """Yield start and value of the windows of `key` between two times, newest first."""
        return self._windows_of_key(key, from_ms, to_ms, reverse=True)

    def fetch_range(
        self, key_from: Any, key_to: Any, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield the windows of a range of keys between two times, those of a key oldest first.

        The times are those of the windows' starts. Keys are from `key_from` to `key_to`, both
        included, by their bytes; None is no bound.
        """
        return self._windows_of_keys(key_from, key_to, from_ms, to_ms, reverse=False)

    def backward_fetch_range(
        self, key_from: Any, key_to: Any, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield the windows of a range of keys between two times, those of a key newest first."""
        return self._windows_of_keys(key_from, key_to, from_ms, to_ms, reverse=True)

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield the windows of all keys that start between two times, a key's oldest first."""
        return self._windows_of_keys(None, None, from_ms, to_ms, reverse=False)

    def backward_fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield the windows of all keys that start between two times, a key's newest first."""
        return self._windows_of_keys(None, None, from_ms, to_ms, reverse=True)

    def all(self) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield all windows with their values; those of a key come oldest first."""
        return self._windows_of_keys(None, None, 0, TIME_MAX, reverse=False)

    def backward_all(self) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield all windows with their values; those of a key come newest first."""
        return self._windows_of_keys(None, None, 0, TIME_MAX, reverse=True)

    def _windows_of_key(
        self, key: Any, from_ms: int, to_ms: int, *, reverse: bool
    ) -> Iterator[tuple[int, V]]:
        for start_ms, value, _ in self.entries(key, from_ms, to_ms, reverse=reverse):
            yield start_ms, value

    def _windows_of_keys(
        self, key_from: Any, key_to: Any, from_ms: int, to_ms: int, *, reverse: bool
    ) -> Iterator[tuple[Windowed[Any], V]]:
        first = b"" if key_from is None else self._serialize_key(key_from)
        last = None if key_to is None else self._serialize_key(key_to)
        from_ms = max(from_ms, self._live_from_ms)
        to_ms = min(to_ms, self._stream_time_ms)
        # Unlike in a range of one key, windows of other keys and times lie between the bounds.
        for segment in self._live_segments(from_ms, to_ms, reverse=reverse):
            upper = self._end_in_segment(segment, last)
            for disk_key, entry, stored in self._scan_range(
                segment + first, upper, reverse=reverse
            ):
                start_ms, _ = unpack_window(disk_key[-WINDOW_SUFFIX_BYTES:])
                encoded = disk_key[SEGMENT_BYTES:-WINDOW_SUFFIX_BYTES]
                if from_ms <= start_ms <= to_ms and first <= encoded:
                    if last is not None and encoded > last:
                        continue
                    yield (
                        self._window_of_entry(encoded, start_ms, entry),
                        self._entry_value(entry, stored),
                    )

    def _serialize_duplicate(self, value: V) -> bytes:
        try:
            return self._encode_put(value)
        except Exception as error:
            raise self._serde_error("value", value, error) from error

    def _entry_value(self, entry: StoreEntry[Windowed[Any], V] | None, stored_value: bytes) -> V:
        held: Any = None if entry is None else entry.value
        if self._retain_duplicates and held is not None:
            return self._decode_value(held)  # type: ignore[no-any-return]
        return super()._entry_value(entry, stored_value)

    @staticmethod
    def _end_in_segment(segment: bytes, last_key: bytes | None) -> bytes:
        if last_key is None:
            return next_segment(segment)
        return segment + largest_suffixed_key(last_key, pack_window(TIME_MAX, SEQUENCE_MAX)) + b"\0"

    def _window_of_entry(
        self, key_bytes: bytes, start_ms: int, entry: StoreEntry[Windowed[Any], V] | None
    ) -> Windowed[Any]:
        if entry is not None:
            return entry.key
        return self._create_window(self._decode_key(key_bytes), start_ms)

    def _create_window(self, key: Any, start_ms: int) -> Windowed[Any]:
        return Windowed(key, start_ms, min(start_ms + self._window_size_ms, TIME_MAX))

    def _build_disk_key(self, key_bytes: bytes, start_ms: int, sequence: int) -> bytes:
        return self._segment_of(start_ms) + key_bytes + pack_window(start_ms, sequence)

    def _to_disk_key(self, key: Windowed[Any]) -> bytes:
        return self._build_disk_key(self._serialize_key(key.key), key.start_ms, 0)

    def _time_of_changelog_key(self, changelog_key: bytes) -> int:
        return unpack_window(changelog_key[-WINDOW_SUFFIX_BYTES:])[0]  # type: ignore[no-any-return]

    def _to_time_key(self, disk_key: bytes) -> bytes:
        encoded = disk_key[SEGMENT_BYTES:-WINDOW_SUFFIX_BYTES]
        return BY_TIME + disk_key[-WINDOW_SUFFIX_BYTES:][:TIME_BYTES] + encoded

    def _from_time_key(self, time_key: bytes) -> tuple[bytes, Windowed[Any]]:
        (start_ms,) = unpack_time(time_key[len(BY_TIME) :][:TIME_BYTES])
        encoded = time_key[len(BY_TIME) + TIME_BYTES :]
        window = self._create_window(self._decode_key(encoded), start_ms)
        return self._build_disk_key(encoded, start_ms, 0), window


def _return_unchanged(value: Any) -> Any:
    return value
