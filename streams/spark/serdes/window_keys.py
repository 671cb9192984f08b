"""Split windowed keys into columns: the key, the window's start and the window's end.

    TIME        key, start (int64)                             as a topic has them
    SEQUENCED   key, start (int64), sequence number (int32)    as the changelog of a store has them
    SESSION     key, end (int64), start (int64)                as both have them

The end of a time window is not written: it is the start and the window's size. Ends of windows
without end, and times later than a timestamp can be (the end of the year 9999), are null.
Source: `streams.serdes.windows`, `state.keys`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streams.spark.serdes.arrow_numbers import from_big_endian
from streams.spark.source.options import WindowedKeyKind

TIMESTAMP_MS_MAX = 253_402_300_799_999
"""The last ms of the year 9999, which is the last that Python's datetime has."""
_MS = pa.timestamp("ms", tz="UTC")
_US = pa.timestamp("us", tz="UTC")
# Scalars with a type: for Python's own numbers pyarrow looks for dateutil on the path each time.
_LAST_MS = pa.scalar(TIMESTAMP_MS_MAX, pa.int64())
_NULL = pa.scalar(None, pa.int64())


class WindowKeyLayout(Enum):
    """Names, as formats of `struct`, the layouts of the window bytes that follow a key."""

    TIME = ">q"
    SEQUENCED = ">qi"
    SESSION = ">qq"

    @property
    def size(self) -> int:
        """Return the number of bytes that a window takes in a key."""
        return struct.calcsize(self.value)


def choose_key_layout(windowed: WindowedKeyKind, *, is_of_store: bool) -> WindowKeyLayout:
    """Return the layout of windowed keys in a topic, or in the changelog of a store."""
    if windowed is WindowedKeyKind.SESSION:
        return WindowKeyLayout.SESSION
    return WindowKeyLayout.SEQUENCED if is_of_store else WindowKeyLayout.TIME


@dataclass(frozen=True, slots=True)
class WindowedKeys:
    """Represents a batch of windowed keys, split into keys and windows.

    `starts_ms` and `ends_ms` are int64 arrays; `causes` says why a row has no window. Such a row is
    null.
    """

    keys: list[bytes | None]
    starts_ms: Any
    ends_ms: Any
    causes: dict[int, str]


def split_windowed_keys(
    keys: Sequence[bytes | None], layout: WindowKeyLayout, window_size_ms: int | None
) -> WindowedKeys:
    """Split each windowed key into its key and its window; a null key has no window."""
    size = layout.size
    causes = {
        row: f"a key and {size} bytes of its window are needed"
        for row, key in enumerate(keys)
        if key is not None and len(key) < size
    }
    fine = [None if row in causes else key for row, key in enumerate(keys)] if causes else keys
    first = _read_int64(fine, -size, -size + 8 if size > 8 else None)
    if layout is WindowKeyLayout.SESSION:
        starts, ends = _read_int64(fine, -8, None), first
        wrong = pc.or_(pc.less(starts, 0), pc.less(ends, starts))
    else:
        bounded = pc.min_element_wise(first, pa.scalar(2**62), skip_nulls=False)
        size_ms = None if window_size_ms is None else min(window_size_ms, 2**62)
        starts, ends = first, pc.add(bounded, pa.scalar(size_ms, pa.int64()))
        wrong = pc.less(starts, 0)
    wrong = pc.or_(wrong, pc.greater(starts, TIMESTAMP_MS_MAX))
    if pc.any(wrong).as_py():
        for row, is_wrong in enumerate(wrong.to_pylist()):
            if is_wrong:
                causes[row] = f"a window can't be from {starts[row]} to {ends[row]} ms"
        starts, ends = (pc.if_else(wrong, None, each) for each in (starts, ends))
    plain = [None if key is None else key[:-size] for key in fine]
    for row in causes:
        plain[row] = None
    return WindowedKeys(plain, starts, ends, causes)


def to_spark_timestamps(times_ms: Any) -> Any:
    """Convert times in ms to Spark timestamps; times beyond the range of timestamps become null."""
    said = pc.if_else(pc.greater(times_ms, _LAST_MS), _NULL, times_ms)
    return said.cast(_MS).cast(_US)


def _read_int64(keys: Sequence[bytes | None], start_byte: int, end_byte: int | None) -> Any:
    """Return the big-endian int64 between two bytes of each key as an Arrow array."""
    return from_big_endian(
        [None if key is None else key[start_byte:end_byte] for key in keys], pa.int64()
    )
