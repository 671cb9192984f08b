"""Give a record of a table's topic the key and the value that the table's store has of it.

Its writer has encoded the key as other bytes than the table's serde does, or nothing as a value.
"""

from __future__ import annotations

from typing import Any


class ReencodedRecord:
    """Represents a message with another key and value, for those who restore a store from it."""

    __slots__ = ("_key", "_message", "_value")

    def __init__(self, message: Any, key: bytes, value: bytes | None) -> None:
        self._message = message
        self._key = key
        self._value = value

    def key(self) -> bytes:
        """Return the key that the store has."""
        return self._key

    def value(self) -> bytes | None:
        """Return the value that the store has; None deletes the row."""
        return self._value

    def timestamp(self) -> tuple[int, int]:
        """Return the type of the message's timestamp, and the timestamp in ms."""
        found: tuple[int, int] = self._message.timestamp()
        return found

    def offset(self) -> int:
        """Return the message's offset."""
        offset: int = self._message.offset()
        return offset
