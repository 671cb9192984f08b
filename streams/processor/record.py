"""Represent a record with its headers and origin, as processors receive and forward it.

A record is never changed: `with_*` creates another. Its headers and origin are read from the
message that it came with, and only if they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, Generic

from typing_extensions import TypeVar

from state.guessed_names import explain_guessed_names
from streams.common.message_headers import Header, TypeAndTimestampMs, check_header_name

_TIME_MAX_MS = 2**63 - 1
K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)
K2 = TypeVar("K2")
V2 = TypeVar("V2")

Headers = tuple[Header, ...]
GivenHeaders = Iterable[Header] | Mapping[str, bytes | None]
"""Headers as a user gives them: pairs, or a dict if no name comes twice."""


@explain_guessed_names({"timestamp": "the time is timestamp_ms"})
class Record(Generic[K, V]):
    """Represents a record by key, value, timestamp in ms, headers and the place it was read from.

    `topic` is None, and `partition` and `offset` are -1, as in Kafka Streams, for a record that was
    created and not read: by a punctuation, or as the result of a commit.

    Raises: ValueError for a timestamp that is negative or has more than 64 bits, TypeError for one
    that is no whole number, as `with_timestamp`.
    """

    __slots__ = ("key", "own_headers", "source_message", "timestamp_ms", "value")

    def __init__(
        self,
        key: K,
        value: V,
        timestamp_ms: int,
        headers: GivenHeaders = (),
    ) -> None:
        self.key = key
        self.value = value
        check_record_time(timestamp_ms)
        self.timestamp_ms = timestamp_ms
        self.source_message: Any = None
        """The message that the record came with."""
        self.own_headers: Headers | None = to_headers(headers)
        """The record's own headers; None: it has those of its message."""

    @classmethod
    def from_message(
        cls, key: K, value: V, timestamp_ms: int, message: Any, own_headers: Headers | None = None
    ) -> Record[K, V]:
        """Return a record with the headers and origin of a message, or with `own_headers`."""
        record = _create_record(cls)
        record.key = key
        record.value = value
        record.timestamp_ms = timestamp_ms
        record.source_message = message
        record.own_headers = own_headers
        return record

    @property
    def headers(self) -> Headers:
        if self.own_headers is None:
            return () if self.source_message is None else tuple(self.source_message.headers() or ())
        return self.own_headers

    @property
    def topic(self) -> str | None:
        return None if self.source_message is None else self.source_message.topic()

    @property
    def partition(self) -> int:
        return -1 if self.source_message is None else self.source_message.partition()

    @property
    def offset(self) -> int:
        return -1 if self.source_message is None else self.source_message.offset()

    def with_key(self, key: K2) -> Record[K2, V]:
        return _record_from_message(
            key, self.value, self.timestamp_ms, self.source_message, self.own_headers
        )

    def with_value(self, value: V2) -> Record[K, V2]:
        return _record_from_message(
            self.key, value, self.timestamp_ms, self.source_message, self.own_headers
        )

    def with_timestamp(self, timestamp_ms: int) -> Record[K, V]:
        """Return a copy with another timestamp; raise ValueError if it is negative.

        Also if it has more than 64 bits, and TypeError if it is no whole number. Kafka Streams
        raises an error for a negative one, too.
        """
        check_record_time(timestamp_ms)
        return _record_from_message(
            self.key, self.value, timestamp_ms, self.source_message, self.own_headers
        )

    def with_headers(self, headers: GivenHeaders) -> Record[K, V]:
        return _record_from_message(
            self.key, self.value, self.timestamp_ms, self.source_message, to_headers(headers)
        )

    def __eq__(self, other: object) -> bool:
        """Return whether the other record has the same content, wherever they were read."""
        if not isinstance(other, Record):
            return NotImplemented
        return (self.key, self.value, self.timestamp_ms, self.headers) == (
            other.key,
            other.value,
            other.timestamp_ms,
            other.headers,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        where = f" from {self.topic}[{self.partition}]@{self.offset}" if self.topic else ""
        return f"<Record {self.key!r}: {self.value!r} at {self.timestamp_ms}{where}>"


def check_record_time(timestamp_ms: int) -> None:
    """Raise ValueError for a time that no record can have, TypeError for no whole number."""
    try:
        is_time = 0 <= index(timestamp_ms) <= _TIME_MAX_MS
    except TypeError:
        raise TypeError(
            f"a record's timestamp is a whole number of milliseconds, not {timestamp_ms!r:.100}"
        ) from None
    if not is_time:
        why = "be negative" if timestamp_ms < 0 else "have more than 64 bits"
        raise ValueError(f"a record's timestamp can't {why}: {timestamp_ms}")


def to_headers(headers: GivenHeaders) -> Headers:
    """Return headers that a user gave, as a tuple of names and values.

    Raises: TypeError or ValueError for a name that can't be written.
    """
    pairs = tuple(headers.items() if isinstance(headers, Mapping) else headers)
    for name, _ in pairs:
        check_header_name(name)
    return pairs


_create_record = Record.__new__
_record_from_message = Record.from_message


class MessageWithHeaders:
    """Presents the message being processed with the headers that a processor gave the record.

    A sink downstream writes the headers of `context.message`.
    """

    __slots__ = ("_headers", "message")

    def __init__(self, message: Any, headers: Headers) -> None:
        self.message = message
        self._headers = list(headers)

    def headers(self) -> list[Header]:
        return self._headers

    def topic(self) -> str | None:
        return None if self.message is None else self.message.topic()

    def partition(self) -> int:
        return -1 if self.message is None else self.message.partition()

    def offset(self) -> int:
        return -1 if self.message is None else self.message.offset()

    def key(self) -> bytes | None:
        return None if self.message is None else self.message.key()

    def value(self) -> bytes | None:
        return None if self.message is None else self.message.value()

    def timestamp(self) -> TypeAndTimestampMs:
        return (0, -1) if self.message is None else self.message.timestamp()
