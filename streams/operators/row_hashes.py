"""Hash the rows that a foreign-key join sends, those of a slice together where that is possible.

Where the left table is read straight from a topic, a row is mostly written with the bytes that were
read. So the values of a slice are hashed together before it is processed, and each row finds its
hash. A row that is written otherwise is hashed by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from streams.common.murmur3 import murmur3_hash128, remember_hashes


class RowHasher:
    """Hashes the rows of a table as `serialize` writes them."""

    __slots__ = ("_last_row", "_previewed", "_serialize")

    def __init__(self, serialize: Callable[[Any], bytes]) -> None:
        self._serialize = serialize
        self._last_row: bytes | None = None
        """The row that was hashed last, as it was written."""
        self._previewed: Collection[bytes] = ()

    def hash_row(self, row: Any) -> bytes:
        """Return the hash of a row. Raises what the serializer raises."""
        row_bytes = self._serialize(row)
        row_hash = murmur3_hash128(row_bytes)
        self._last_row = row_bytes
        return row_hash

    def hash_values_ahead(self, values: Collection[bytes]) -> None:
        """Hash values together, the rows of which will be hashed next, if that is likely to help.

        It is if the last row was written with the bytes of one of the values before these. With a
        serde that writes other bytes than it read, the hashes would only take time and room.
        """
        if not values:
            return
        if self._last_row in self._previewed:
            remember_hashes(values)
        self._previewed = values
