"""Keep the origin of a buffered record, and restore it as a message when the record leaves.

What a sink writes then has that record's headers, and error messages name where it came from. Its
bytes are gone, as in Kafka Streams (ProcessorRecordContext).
"""

from __future__ import annotations

from typing import Any

from state.buffered_change import RecordOrigin, create_origin
from streams.common.message_headers import Header, TypeAndTimestampMs


def capture_origin(message: Any, timestamp_ms: int) -> RecordOrigin:
    """Return the origin of the record `message`; None stands for a change without a record."""
    if message is None:
        return RecordOrigin(timestamp_ms, -1, -1, "", ())
    headers = message.headers()
    return create_origin(
        (
            timestamp_ms,
            message.offset(),
            message.partition(),
            message.topic() or "",
            tuple(headers) if headers else (),
        )
    )


class OriginMessage:
    """Presents a RecordOrigin as a message from the consumer, for a context's `message`."""

    __slots__ = ("_origin",)

    def __init__(self, origin: RecordOrigin) -> None:
        self._origin = origin

    def topic(self) -> str | None:
        return self._origin.topic or None

    def partition(self) -> int:
        return self._origin.partition

    def offset(self) -> int:
        return self._origin.offset

    def timestamp(self) -> TypeAndTimestampMs:
        return 1, self._origin.timestamp_ms

    def headers(self) -> list[Header]:
        return list(self._origin.headers)

    def key(self) -> None:
        return None

    def value(self) -> None:
        return None
