"""Serialise windowed keys as Kafka Streams does, for its own deserialisers to read.

    time window   key, start (int64)
    session       key, end (int64), start (int64)

Big-endian, in ms. Changelogs of window stores have a sequence number more (`state.keys`). Source:
TimeWindowedSerializer, SessionWindowedSerializer, and what they call of WindowKeySchema and
SessionKeySchema. No bytes at all are read as None, as there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from state.keys import (
    SESSION_SUFFIX_BYTES,
    TIME_MAX,
    pack_session,
    pack_time,
    unpack_session,
    unpack_time,
)
from state.shown_values import describe_value
from state.windowed import Windowed
from streams.common.durations import Duration, duration_to_ms
from streams.serdes.serde import Field, Serde

K = TypeVar("K")

_TIME_BYTES = 8


def windowed(inner: Serde[K], size_ms: Duration | None = None) -> Serde[Windowed[K]]:
    """Return the serde of keys in time windows of `size_ms`, with `inner` for the key itself.

    The size may be a timedelta. The end of a window is not written: it is computed from the size,
    and a window of another size is not written. Without a size the end is read as 2**63 - 1. Raises
    ValueError for a size that is none or is not above 0.

    >>> hourly = serdes.windowed(serdes.string, timedelta(hours=1))
    >>> hourly.deserialize(hourly.serialize(Windowed("ann", 0, 3_600_000)))
    Windowed(key='ann', start_ms=0, end_ms=3600000)
    """
    has_size = size_ms is not None
    size = TIME_MAX if size_ms is None else duration_to_ms(size_ms, "size_ms")
    if size == 0:
        raise ValueError("serdes.windowed needs a window's size above 0 ms")
    serialize_key, deserialize_key = inner.serialize, inner.deserialize

    def serialize_window(key: Windowed[K]) -> bytes:
        if type(key) is Windowed:
            inner_key, start_ms = key.key, key.start_ms
            if inner_key is not None and 0 <= start_ms <= TIME_MAX:
                if has_size and key.end_ms != min(start_ms + size, TIME_MAX):
                    raise ValueError(
                        f"needs windows of {size} ms, since their end is not written, got {key}"
                    )
                return serialize_key(inner_key) + pack_time(start_ms)
        raise _create_invalid_key_error(key)

    def deserialize_window(data: bytes) -> Any:
        if not data:
            return None
        (start_ms,) = unpack_time(_require_window_suffix(data, _TIME_BYTES))
        if start_ms < 0:
            raise ValueError(f"the start of a window must not be negative, got {start_ms}")
        return Windowed(
            deserialize_key(data[:-_TIME_BYTES]), start_ms, min(start_ms + size, TIME_MAX)
        )

    name = f"windowed({inner.name})" if size_ms is None else f"windowed({inner.name}, {size})"
    return _create_windowed_serde(
        name, serialize_window, deserialize_window, inner, lambda bound: windowed(bound, size_ms)
    )


def session_windowed(inner: Serde[K]) -> Serde[Windowed[K]]:
    """Return the serde of keys in sessions, with `inner` for the key itself.

    >>> sessions = serdes.session_windowed(serdes.string)
    >>> sessions.deserialize(sessions.serialize(Windowed("ann", 5, 70)))
    Windowed(key='ann', start_ms=5, end_ms=70)
    """
    serialize_key, deserialize_key = inner.serialize, inner.deserialize

    def serialize_session(key: Windowed[K]) -> bytes:
        if (
            type(key) is not Windowed
            or key.key is None
            or not 0 <= key.start_ms <= key.end_ms <= TIME_MAX
        ):
            raise _create_invalid_key_error(key)
        return serialize_key(key.key) + pack_session(key.end_ms, key.start_ms)

    def deserialize_session(data: bytes) -> Any:
        if not data:
            return None
        end_ms, start_ms = unpack_session(_require_window_suffix(data, SESSION_SUFFIX_BYTES))
        if not 0 <= start_ms <= end_ms:
            raise ValueError(f"a session can't go from {start_ms} to {end_ms}")
        return Windowed(deserialize_key(data[:-SESSION_SUFFIX_BYTES]), start_ms, end_ms)

    name = f"session_windowed({inner.name})"
    return _create_windowed_serde(
        name, serialize_session, deserialize_session, inner, session_windowed
    )


def _create_windowed_serde(
    name: str,
    serialize: Callable[[Windowed[K]], bytes],
    deserialize: Callable[[bytes], Any],
    inner: Serde[K],
    wrap_serde: Callable[[Serde[K]], Serde[Windowed[K]]],
) -> Serde[Windowed[K]]:
    """Return a serde of windowed keys that binds itself to a topic if `inner` has to be bound."""

    def bind_to_topic(topic: str, field: Field) -> Serde[Windowed[K]]:
        return wrap_serde(inner.for_topic(topic, field))

    binder = None if inner.binder is None else bind_to_topic
    return Serde(name, serialize, deserialize, binder, inner, inner.message_type)


def _require_window_suffix(data: bytes, length: int) -> bytes:
    if len(data) < length:
        raise ValueError(f"needs a key and {length} bytes of its window, got {len(data)} bytes")
    return data[-length:]


def _create_invalid_key_error(key: Any) -> Exception:
    if type(key) is not Windowed:
        return TypeError(f"needs a Windowed key, got {describe_value(key)}")
    return ValueError(
        f"needs a key, and a window that does not begin before 0 or end before it begins, got {key}"
    )
