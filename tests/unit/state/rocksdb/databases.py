"""Provide databases for `RocksDisk(open_database=...)` that measure, stall, or are damaged."""

from __future__ import annotations

from typing import Any

from rocksdict import Rdict


class Database:
    """Opens an Rdict, as RocksDisk does, and forwards every call to it."""

    def __init__(self) -> None:
        self._opened: Any = None

    def open(self, *arguments: Any, **named: Any) -> Any:
        self._opened = Rdict(*arguments, **named)
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened, name)


class WeighingDatabase(Database):
    """Records the size of each batch that is written, in bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def write(self, batch: Any, options: Any) -> None:
        self.sizes.append(batch.size_in_bytes())
        self._opened.write(batch, options)


class StalledDatabase(Database):
    """Refuses this many writes, as RocksDB does while it compacts or flushes."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self._refusals = refusals

    def write(self, batch: Any, options: Any) -> None:
        assert options.no_slowdown
        self._refusals -= 1
        if self._refusals >= 0:
            raise Exception("Result incomplete: Write stall")
        self._opened.write(batch, options)

    def property_int_value(self, name: str) -> int:
        return 1_000_000 if name == "rocksdb.actual-delayed-write-rate" else 3


class DamagedDatabase(Database):
    """Reports damage for every look-up from the time when `is_damaged` is set.

    Opening it again ends that.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_damaged = False

    def open(self, *arguments: Any, **named: Any) -> Any:
        self.is_damaged = False
        return super().open(*arguments, **named)

    def get_column_family(self, name: str) -> Any:
        family = self._opened.get_column_family(name)
        return DamagedFamily(self, family) if name == "default" else family


class DamagedFamily:
    """Stands in for a column family of a DamagedDatabase."""

    def __init__(self, database: DamagedDatabase, family: Any) -> None:
        self._database = database
        self._family = family

    def get(self, key: bytes) -> bytes | None:
        if self._database.is_damaged:
            raise Exception("Corruption: block checksum mismatch")
        found: bytes | None = self._family.get(key)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._family, name)
