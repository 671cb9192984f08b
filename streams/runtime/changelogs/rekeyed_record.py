"""Give a record of a table's topic the key under which the table's store has it.

Its writer has encoded the key as other bytes than the table's serde does.
"""

from __future__ import annotations

from typing import Any


class RekeyedRecord:
    """Represents a message with another key, for those who restore a store from it."""

    __slots__ = ("_key", "_message")

    def __init__(self, message: Any, key: bytes) -> None:
        self._message = message
        self._key = key

    def key(self) -> bytes:
        """Return the key that the store has."""
        return self._key

    def value(self) -> bytes | None:
        """Return the message's value."""
        value: bytes | None = self._message.value()
        return value

    def timestamp(self) -> tuple[int, int]:
        """Return the type of the message's timestamp, and the timestamp in ms."""
        found: tuple[int, int] = self._message.timestamp()
        return found

    def offset(self) -> int:
        """Return the message's offset."""
        offset: int = self._message.offset()
        return offset
