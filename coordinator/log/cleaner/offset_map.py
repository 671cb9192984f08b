"""Map each key in the dirty section of a log to its last offset, in bounded memory.

Kafka keeps 24 bytes a key, a hash and an offset. Here it is a dictionary of the keys themselves:
never a mistaken key, and as fast as Python gets, for about six times the memory. The memory of an
entry is counted with its key. When the room is used up the map is full: the log is cleaned up to
the offset that the map has reached, and the rest of the dirty section with another map, after that.
It is divided by the keys' hashes, since a dictionary that grows, or is freed, holds up the loop
while it does so.
Source: SkimpyOffsetMap, Cleaner.buildOffsetMap.
"""

from __future__ import annotations

from coordinator.log.cleaner.steps import Steps

# On CPython 3.11: a bytes object (33 and its length, rounded up to 16), an int (32), and the entry
# in a dictionary, which takes most room, 54 bytes, just after it has doubled. Over a million keys
# it was 103 (measured with tracemalloc).
ENTRY_BYTES = 136
_PARTS = 256


class OffsetMap:
    """Maps keys to their last offsets, up to `bytes_max`, with room for one key at least."""

    def __init__(self, bytes_max: int) -> None:
        self.end_offset = 0  # keys of records below this offset are in the map
        self._parts: list[dict[bytes, int]] = [{} for _ in range(_PARTS)]
        self._count = 0
        self._room = bytes_max

    def try_put_offset(self, key: bytes, offset: int) -> bool:
        """Store the offset of a key, later than any before; return False if the map is full.

        Nothing is changed then.
        """
        offsets = self._parts[hash(key) % _PARTS]
        if key not in offsets:
            size = ENTRY_BYTES + len(key)
            if size > self._room and self._count:
                return False
            self._room -= size
            self._count += 1
        offsets[key] = offset
        return True

    def is_replaced(self, key: bytes, offset: int) -> bool:
        """Return whether the key was written again after this offset."""
        return self._parts[hash(key) % _PARTS].get(key, -1) > offset

    def __len__(self) -> int:
        return self._count

    def clear_in_steps(self) -> Steps[None]:
        """Remove all entries in steps, which takes as long as it took to add them."""
        for part in self._parts:
            part.clear()
            yield None
