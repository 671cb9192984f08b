"""Lay sessions out on disk by segment, key, end and start: those of a key are found as a range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from state.keys import (
    BY_TIME,
    SEGMENT_BYTES,
    SESSION_SUFFIX_BYTES,
    TIME_MAX,
    DiskKey,
    encode_next_segment,
    find_largest_suffixed_key,
    pack_session,
    unpack_session,
)
from state.segmented import SegmentedStore
from state.windowed import Windowed

V = TypeVar("V")

_SUFFIX_MAX = pack_session(TIME_MAX, TIME_MAX)


class SessionLayout(SegmentedStore[V]):
    """Translates sessions to and from keys on disk, and scans these, as the base of SessionStore.

    Sessions of a key come by their end, then by their start.
    """

    _kind = "sessions"

    def _iterate_sessions_of_key(
        self, key: Any, earliest_end_ms: int, latest_start_ms: int, *, reverse: bool
    ) -> Iterator[tuple[Windowed[Any], V]]:
        encoded = self._serialize_key(key)
        length = SEGMENT_BYTES + len(encoded) + SESSION_SUFFIX_BYTES
        earliest = max(earliest_end_ms, self._live_from_ms)
        lower = encoded + pack_session(earliest, 0)
        # No session ends after stream time: with this bound, longer keys that begin with this
        # key's bytes are not read.
        upper = encoded + pack_session(max(self._stream_time_ms, 0), TIME_MAX) + b"\0"
        for segment in self._iterate_live_segments(earliest, TIME_MAX, reverse=reverse):
            found = self._scan_range(segment + lower, segment + upper, reverse=reverse)
            for disk_key, entry, stored in found:
                if len(disk_key) == length:
                    end_ms, start_ms = unpack_session(disk_key[-SESSION_SUFFIX_BYTES:])
                    if start_ms <= latest_start_ms:
                        yield Windowed(key, start_ms, end_ms), self._read_entry_value(entry, stored)

    def _iterate_sessions_of_keys(
        self,
        key_from: Any,
        key_to: Any,
        earliest_end_ms: int,
        latest_end_ms: int,
        latest_start_ms: int,
        *,
        reverse: bool,
    ) -> Iterator[tuple[Windowed[Any], V]]:
        first = b"" if key_from is None else self._serialize_key(key_from)
        last = None if key_to is None else self._serialize_key(key_to)
        earliest = max(earliest_end_ms, self._live_from_ms)
        for segment in self._iterate_live_segments(earliest, latest_end_ms, reverse=reverse):
            upper = encode_next_segment(segment)
            if last is not None:
                upper = segment + find_largest_suffixed_key(last, _SUFFIX_MAX) + b"\0"
            for disk_key, entry, stored in self._scan_range(
                segment + first, upper, reverse=reverse
            ):
                end_ms, start_ms = unpack_session(disk_key[-SESSION_SUFFIX_BYTES:])
                encoded = disk_key[SEGMENT_BYTES:-SESSION_SUFFIX_BYTES]
                if not earliest <= end_ms <= latest_end_ms or start_ms > latest_start_ms:
                    continue
                if encoded >= first and (last is None or encoded <= last):
                    session = (
                        Windowed(self._decode_key(encoded), start_ms, end_ms)
                        if entry is None
                        else entry.key
                    )
                    yield session, self._read_entry_value(entry, stored)

    def _build_disk_key(self, key_bytes: bytes, session: Windowed[Any]) -> bytes:
        suffix = pack_session(session.end_ms, session.start_ms)
        return self._encode_segment(session.end_ms) + key_bytes + suffix

    def _to_disk_key(self, key: Windowed[Any]) -> bytes:
        return self._build_disk_key(self._serialize_key(key.key), key)

    def _decode_changelog_time_ms(self, changelog_key: bytes) -> int:
        return unpack_session(changelog_key[-SESSION_SUFFIX_BYTES:])[0]  # type: ignore[no-any-return]

    def _to_time_key(self, disk_key: bytes) -> bytes:
        encoded = disk_key[SEGMENT_BYTES:-SESSION_SUFFIX_BYTES]
        return BY_TIME + disk_key[-SESSION_SUFFIX_BYTES:] + encoded

    def _to_disk_key_and_window(self, time_key: bytes) -> tuple[DiskKey, Windowed[Any]]:
        times = time_key[len(BY_TIME) :][:SESSION_SUFFIX_BYTES]
        end_ms, start_ms = unpack_session(times)
        encoded = time_key[len(BY_TIME) + SESSION_SUFFIX_BYTES :]
        session = Windowed(self._decode_key(encoded), start_ms, end_ms)
        return self._build_disk_key(encoded, session), session
