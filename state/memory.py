"""A store's disk in memory: for tests, and for state that is rebuilt at each start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from state.store import Checkpoint


class MemoryDisk:
    """Keeps what is written for as long as the process lives."""

    def __init__(self) -> None:
        self._data: dict[bytes, bytes] = {}
        self._checkpoint: Checkpoint | None = None

    def get(self, key: bytes) -> bytes | None:
        return self._data.get(key)

    def range(
        self, first: bytes | None, last: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        inside = (
            entry
            for entry in self._data.items()
            if (first is None or entry[0] >= first) and (last is None or entry[0] < last)
        )
        yield from sorted(inside, reverse=reverse)

    def approximate_count(self) -> int:
        return len(self._data)

    def checkpoint(self) -> Checkpoint | None:
        return self._checkpoint

    def write(self, changes: Mapping[bytes, bytes | None], checkpoint: Checkpoint) -> None:
        for key, value in changes.items():
            if value is None:
                self._data.pop(key, None)
            else:
                self._data[key] = value
        self._checkpoint = checkpoint

    def delete_range(self, first: bytes, last: bytes) -> None:
        for key in [key for key in self._data if first <= key < last]:
            del self._data[key]

    def load(self, changes: Iterable[tuple[bytes, bytes | None]], checkpoint: Checkpoint) -> None:
        self.write(dict(changes), checkpoint)

    def loaded(self) -> None:
        """Nothing is durable here."""

    def clear(self) -> None:
        self._data = {}
        self._checkpoint = None

    def close(self) -> None:
        """Nothing to release."""
