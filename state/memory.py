"""A store's disk in memory: for tests, and for state that is rebuilt at each start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from state.store import Checkpoint


class MemoryDisk:
    """Keeps what is written for as long as the process lives."""

    def __init__(self) -> None:
        self._data: dict[bytes, bytes] = {}
        self._checkpoint: Checkpoint | None = None

    def get(self, key: bytes) -> bytes | None:
        return self._data.get(key)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        yield from sorted(self._data.items())

    def checkpoint(self) -> Checkpoint | None:
        return self._checkpoint

    def write(self, changes: Mapping[bytes, bytes | None], checkpoint: Checkpoint) -> None:
        for key, value in changes.items():
            if value is None:
                self._data.pop(key, None)
            else:
                self._data[key] = value
        self._checkpoint = checkpoint

    def clear(self) -> None:
        self._data = {}
        self._checkpoint = None

    def close(self) -> None:
        """Nothing to release."""
