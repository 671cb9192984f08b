"""Split windowed keys into columns: the key, the window's start and the window's end.

    TIME        key, start (int64)                             as a topic has them
    SEQUENCED   key, start (int64), sequence number (int32)    as the changelog of a store has them
    SESSION     key, end (int64), start (int64)                as both have them

The end of a time window is not written: it is the start and the window's size. The end of a window
without an end, which no TIMESTAMP can be, is null there.
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

from state.keys import TIME_MAX
from streams.spark.serdes.arrow_numbers import decode_big_endian_numbers
from streams.spark.serdes.times import SPARK_MS_MAX, mark_times_beyond_spark
from streams.spark.source.options import TimeFormat, WindowedKeyKind

_ZERO = pa.scalar(0, pa.int64())
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
    keys: Sequence[bytes | None],
    layout: WindowKeyLayout,
    window_size_ms: int | None,
    times: TimeFormat = TimeFormat.TIMESTAMP,
) -> WindowedKeys:
    """Split each windowed key into its key and its window; a null key has no window.

    With `times=timestamp` a window that no TIMESTAMP can say is a cause as well.
    """
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
    else:
        starts, ends = first, _compute_ends(first, window_size_ms)
    wrong = pc.or_(pc.less(starts, _ZERO), pc.less(ends, starts))
    said = "a window can't be from {} to {} ms"
    _mark_wrong(causes, wrong, said, starts, ends)
    if times is TimeFormat.TIMESTAMP:
        if layout is not WindowKeyLayout.SESSION and (window_size_ms or 0) > SPARK_MS_MAX:
            ends = pc.if_else(mark_times_beyond_spark(ends), _NULL, ends)
        beyond = pc.or_kleene(mark_times_beyond_spark(starts), mark_times_beyond_spark(ends))
        beyond = pc.fill_null(beyond, pa.scalar(False))
        said = "its window from {} to {} ms is beyond Spark's TIMESTAMP: read it with times=ms"
        _mark_wrong(causes, beyond, said, starts, ends)
        wrong = pc.or_kleene(wrong, beyond)
    if causes:
        starts, ends = (pc.if_else(wrong, _NULL, each) for each in (starts, ends))
    plain = [None if key is None else key[:-size] for key in fine]
    for row in causes:
        plain[row] = None
    return WindowedKeys(plain, starts, ends, causes)


def _compute_ends(starts_ms: Any, window_size_ms: int | None) -> Any:
    """Compute the ends of time windows; one that would be beyond all times is the last time."""
    size_ms = TIME_MAX if window_size_ms is None else min(window_size_ms, TIME_MAX)
    last_start = pa.scalar(TIME_MAX - size_ms, pa.int64())
    bounded = pc.if_else(pc.greater(starts_ms, last_start), last_start, starts_ms)
    return pc.add(bounded, pa.scalar(size_ms, pa.int64()))


def _mark_wrong(
    causes: dict[int, str], wrong: Any, text: str, starts_ms: Any, ends_ms: Any
) -> None:
    """Add an error text for each row that `wrong` marks, to `causes` by the row's index.

    `text` has two braces, for the start and the end of the row's window in ms.
    """
    if pc.any(wrong).as_py():
        for row, is_wrong in enumerate(wrong.to_pylist()):
            if is_wrong:
                causes.setdefault(row, text.format(starts_ms[row], ends_ms[row]))


def _read_int64(keys: Sequence[bytes | None], start_byte: int, end_byte: int | None) -> Any:
    """Return the big-endian int64 between two bytes of each key as an Arrow array."""
    return decode_big_endian_numbers(
        [None if key is None else key[start_byte:end_byte] for key in keys], pa.int64()
    )
