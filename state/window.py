"""Store a value for each key and window of time until the window expires."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar, overload

from state.cache import ObjectCache
from state.drained_writes import create_write_after_drain_error
from state.entry import StoreEntry, ValueAndTimestamp, to_value_and_timestamp
from state.errors import create_store_serde_error
from state.guessed_names import explain_guessed_names
from state.keys import (
    BY_TIME,
    SEGMENT_BYTES,
    SEQUENCE_MAX,
    TIME_BYTES,
    TIME_MAX,
    WINDOW_SUFFIX_BYTES,
    DiskKey,
    Segment,
    StartMs,
    TimestampMs,
    WindowSuffix,
    encode_next_segment,
    find_largest_suffixed_key,
    pack_time,
    pack_window,
    unpack_time,
    unpack_window,
)
from state.segmented import SegmentedStore, WindowSettings
from state.state_serdes import StoreCodecs
from state.store import StoreDisk
from state.stored_value import get_entry_timestamp_ms
from state.transaction import raise_no_record
from state.windowed import Windowed

IsStored: TypeAlias = bool
"""True unless the window has expired."""

V = TypeVar("V")

_AFFIXES_MAX = 256


@explain_guessed_names({})
class WindowStore(SegmentedStore[V]):
    """Stores values by key and the start of their window (Kafka Streams' TimestampedWindowStore).

    All times are in ms, and ranges of them include both ends.
    """

    _kind = "windows"

    def __init__(
        self,
        name: str,
        disk: StoreDisk,
        codecs: StoreCodecs,
        settings: WindowSettings,
        *,
        cache: ObjectCache | None = None,
        clock: Callable[[], int] = raise_no_record,
    ) -> None:
        super().__init__(name, disk, codecs, settings, cache=cache, clock=clock)
        self._affixes: dict[StartMs, tuple[Segment, WindowSuffix]] = {}
        self._window_size_ms = settings.window_size_ms

    def put(
        self, key: Any, value: V | None, window_start_ms: int, timestamp_ms: int | None = None
    ) -> IsStored:
        """Set the value of `key` in the window that starts then, unless the window has expired.

        None deletes the value. Returns whether the window is live; `dropped` counts one that has
        expired.
        """
        encoded = self._serialize_key(key)
        if self._drained is not None:
            raise create_write_after_drain_error(self.name)
        if not self._try_admit_write(window_start_ms):
            return False
        disk_key = self._build_disk_key(encoded, window_start_ms, 0)
        self._write_value(disk_key, self._create_window(key, window_start_ms), value, timestamp_ms)
        return True

    def get_entry_for_update(
        self, key: Any, window_start_ms: int
    ) -> StoreEntry[Windowed[Any], V] | None:
        """Return the entry of `key` in a window, counted as written, or None if it has expired.

        Set its `value` and `timestamp_ms` in place. `dropped` counts an expired one.
        """
        try:
            encoded = self._encode_key(key)
        except Exception as error:
            raise create_store_serde_error(self.name, "key", key, error) from error
        if self._drained is not None:
            raise create_write_after_drain_error(self.name)
        if window_start_ms > self._stream_time_ms:
            self._stream_time_ms = window_start_ms
        elif window_start_ms <= self._stream_time_ms - self._retention_ms:
            self.dropped += 1
            return None
        affixes = self._affixes.get(window_start_ms)
        before, after = self._encode_key_affixes(window_start_ms) if affixes is None else affixes
        disk_key = before + encoded + after
        held = self._overlay.get(disk_key)
        if held is not None:
            return held
        # A cached entry has its window already.
        cached = self._cached.entries.get(disk_key)
        window = self._create_window(key, window_start_ms) if cached is None else cached.key
        return self._move_to_overlay_for_update(disk_key, window)

    def _encode_key_affixes(self, window_start_ms: int) -> tuple[Segment, WindowSuffix]:
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
            self._encode_segment(window_start_ms),
            pack_window(window_start_ms, 0),
        )
        return affixes

    def entry(self, key: Any, window_start_ms: int) -> ValueAndTimestamp[V] | None:
        """Return the value of `key` in a window and the timestamp of its record, or None."""
        encoded = self._serialize_key(key)
        if window_start_ms < self._live_from_ms:
            return None
        disk_key = self._build_disk_key(encoded, window_start_ms, 0)
        window = self._create_window(key, window_start_ms)
        return to_value_and_timestamp(self._find_entry(disk_key, window))

    def copy_entry(self, window: Windowed[Any]) -> ValueAndTimestamp[V] | None:
        """Return a copy of a window's value, for the caller to change, and its timestamp, or None.

        The value is never the object that the running transaction has put, which is to be written
        as it is.
        """
        return None if window.start_ms < self._live_from_ms else super().copy_entry(window)

    def entries(
        self, key: Any, from_ms: int, to_ms: int, *, reverse: bool = False
    ) -> Iterator[tuple[StartMs, V, TimestampMs]]:
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
        for segment in self._iterate_live_segments(from_ms, to_ms, reverse=reverse):
            found = self._scan_range(segment + lower, segment + upper, reverse=reverse)
            for disk_key, entry, stored in found:
                if len(disk_key) == length:
                    start_ms, _ = unpack_window(disk_key[-WINDOW_SUFFIX_BYTES:])
                    yield (
                        start_ms,
                        self._read_entry_value(entry, stored),
                        get_entry_timestamp_ms(entry, stored),
                    )

    def all_entries(
        self, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed[Any], V, TimestampMs]]:
        """Yield the windows of all keys that start between the two times, with value and timestamp.

        Timestamps are of the records that wrote the values. Windows come a segment after the other,
        within one by key.
        """
        from_ms = max(from_ms, self._live_from_ms)
        to_ms = min(to_ms, self._stream_time_ms)
        if from_ms > to_ms:
            return
        last = encode_next_segment(self._encode_segment(to_ms))
        for disk_key, entry, stored in self._scan_range(
            self._encode_segment(from_ms), last, reverse=False
        ):
            start_ms, _ = unpack_window(disk_key[-WINDOW_SUFFIX_BYTES:])
            if from_ms <= start_ms <= to_ms:
                window = self._read_window_of_entry(
                    disk_key[SEGMENT_BYTES:-WINDOW_SUFFIX_BYTES], start_ms, entry
                )
                yield (
                    window,
                    self._read_entry_value(entry, stored),
                    get_entry_timestamp_ms(entry, stored),
                )

    @overload
    def fetch(self, key: Any, from_ms: int) -> V | None: ...
    @overload
    def fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[StartMs, V]]: ...
    def fetch(
        self, key: Any, from_ms: int, to_ms: int | None = None
    ) -> V | Iterator[tuple[StartMs, V]] | None:
        """Return the value of `key` in one window, or its windows that start between two times.

        With one time it is the value in the window that starts then, or None. With two times it is
        the start and the value of each window, oldest first.
        """
        if to_ms is None:
            entry = type(self).entry(self, key, from_ms)  # a caller may count calls of both
            return None if entry is None else entry.value
        return (
            (start_ms, value)
            for start_ms, value, _ in type(self).entries(self, key, from_ms, to_ms)
        )

    def backward_fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[StartMs, V]]:
        """Yield start and value of the windows of `key` between two times, newest first."""
        found = type(self).entries(self, key, from_ms, to_ms, reverse=True)
        return ((start_ms, value) for start_ms, value, _ in found)

    def fetch_range(
        self, key_from: Any, key_to: Any, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield the windows of a range of keys between two times, those of a key oldest first.

        The times are those of the windows' starts. Keys are from `key_from` to `key_to`, both
        included, by their bytes; None is no bound.
        """
        return self._iterate_windows_of_keys(key_from, key_to, from_ms, to_ms, reverse=False)

    def backward_fetch_range(
        self, key_from: Any, key_to: Any, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield the windows of a range of keys between two times, those of a key newest first."""
        return self._iterate_windows_of_keys(key_from, key_to, from_ms, to_ms, reverse=True)

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield the windows of all keys that start between two times, a key's oldest first."""
        return self._iterate_windows_of_keys(None, None, from_ms, to_ms, reverse=False)

    def backward_fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield the windows of all keys that start between two times, a key's newest first."""
        return self._iterate_windows_of_keys(None, None, from_ms, to_ms, reverse=True)

    def all(self) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield all windows with their values; those of a key come oldest first."""
        return self._iterate_windows_of_keys(None, None, 0, TIME_MAX, reverse=False)

    def backward_all(self) -> Iterator[tuple[Windowed[Any], V]]:
        """Yield all windows with their values; those of a key come newest first."""
        return self._iterate_windows_of_keys(None, None, 0, TIME_MAX, reverse=True)

    def _iterate_windows_of_keys(
        self, key_from: Any, key_to: Any, from_ms: int, to_ms: int, *, reverse: bool
    ) -> Iterator[tuple[Windowed[Any], V]]:
        first = b"" if key_from is None else self._serialize_key(key_from)
        last = None if key_to is None else self._serialize_key(key_to)
        from_ms = max(from_ms, self._live_from_ms)
        to_ms = min(to_ms, self._stream_time_ms)
        # Unlike in a range of one key, windows of other keys and times lie between the bounds.
        for segment in self._iterate_live_segments(from_ms, to_ms, reverse=reverse):
            upper = _compute_range_end_in_segment(segment, last)
            for disk_key, entry, stored in self._scan_range(
                segment + first, upper, reverse=reverse
            ):
                start_ms, _ = unpack_window(disk_key[-WINDOW_SUFFIX_BYTES:])
                encoded = disk_key[SEGMENT_BYTES:-WINDOW_SUFFIX_BYTES]
                if from_ms <= start_ms <= to_ms and first <= encoded:
                    if last is not None and encoded > last:
                        continue
                    yield (
                        self._read_window_of_entry(encoded, start_ms, entry),
                        self._read_entry_value(entry, stored),
                    )

    def _read_window_of_entry(
        self, key_bytes: bytes, start_ms: int, entry: StoreEntry[Windowed[Any], V] | None
    ) -> Windowed[Any]:
        if entry is not None:
            return entry.key
        return self._create_window(self._decode_key(key_bytes), start_ms)

    def _create_window(self, key: Any, start_ms: int) -> Windowed[Any]:
        return Windowed(key, start_ms, min(start_ms + self._window_size_ms, TIME_MAX))

    def _build_disk_key(self, key_bytes: bytes, start_ms: int, sequence: int) -> bytes:
        return self._encode_segment(start_ms) + key_bytes + pack_window(start_ms, sequence)

    def _to_disk_key(self, key: Windowed[Any]) -> bytes:
        return self._build_disk_key(self._serialize_key(key.key), key.start_ms, 0)

    def _decode_changelog_time_ms(self, changelog_key: bytes) -> int:
        return unpack_window(changelog_key[-WINDOW_SUFFIX_BYTES:])[0]  # type: ignore[no-any-return]

    def _to_time_key(self, disk_key: bytes) -> bytes:
        encoded = disk_key[SEGMENT_BYTES:-WINDOW_SUFFIX_BYTES]
        return BY_TIME + disk_key[-WINDOW_SUFFIX_BYTES:][:TIME_BYTES] + encoded

    def _to_disk_key_and_window(self, time_key: bytes) -> tuple[DiskKey, Windowed[Any]]:
        (start_ms,) = unpack_time(time_key[len(BY_TIME) :][:TIME_BYTES])
        encoded = time_key[len(BY_TIME) + TIME_BYTES :]
        window = self._create_window(self._decode_key(encoded), start_ms)
        return self._build_disk_key(encoded, start_ms, 0), window


def _compute_range_end_in_segment(segment: bytes, last_key: bytes | None) -> bytes:
    """Return the end of a range of keys in a segment; `last_key` is included, None is no bound."""
    if last_key is None:
        return encode_next_segment(segment)
    return (
        segment + find_largest_suffixed_key(last_key, pack_window(TIME_MAX, SEQUENCE_MAX)) + b"\0"
    )
