"""Remember the results of a function of bytes, within a number of bytes of memory.

Results are kept in two generations: when the newer one is full, it becomes the older one, and the
older one is dropped. So what was computed last is remembered without an order being kept.
"""

from __future__ import annotations

_ENTRY_BYTES = 140
"""The measured size of an entry without its data: the headers of two objects, a short result and
their place in a dict."""


class RecentResults:
    """Holds recent results of a function of bytes, which take up to `bytes_max` bytes.

    Results are short and never empty. Threads may share the object: each of its steps leaves the
    generations usable, and a race between two of them costs at most a repeated computation.
    """

    __slots__ = ("_generation_bytes_max", "_newer", "_newer_bytes", "_older")

    def __init__(self, bytes_max: int) -> None:
        self._generation_bytes_max = bytes_max // 2
        self._newer: dict[bytes, bytes] = {}
        self._older: dict[bytes, bytes] = {}
        self._newer_bytes = 0

    def find_result(self, data: bytes) -> bytes | None:
        """Return the result for `data`, None if it is not remembered."""
        return self._newer.get(data) or self._older.get(data)

    def add_result(self, data: bytes, result: bytes) -> None:
        """Remember the result for `data`, unless that is larger than a generation."""
        size_bytes = len(data) + _ENTRY_BYTES
        if size_bytes <= self._generation_bytes_max:
            self._newer_bytes += size_bytes
            if self._newer_bytes > self._generation_bytes_max:
                self._older, self._newer, self._newer_bytes = self._newer, {}, size_bytes
            self._newer[data] = result
