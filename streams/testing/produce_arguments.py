"""Check the arguments of a producer in memory as confluent-kafka checks those of its own."""

from __future__ import annotations

from typing import Any

from streams.common.message_headers import Header


def encode_argument(argument: str, value: Any) -> bytes | None:
    """Convert a key or a value to bytes as confluent-kafka does. Raises TypeError."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"{argument} is to be bytes, and is {type(value).__name__}")


def encode_header(pair: Any) -> Header:
    """Return a header as a consumer reads it: text becomes bytes, as confluent-kafka writes it.

    Raises TypeError for a header that confluent-kafka refuses.
    """
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError("Headers are expected to be a list of (key, value) tuples")
    if not isinstance(pair[1], bytes | str | None):
        raise TypeError(
            "expected header value to be None, binary, or unicode string, not "
            f"{type(pair[1]).__name__}"
        )
    return pair[0], pair[1].encode() if isinstance(pair[1], str) else pair[1]
