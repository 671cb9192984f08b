"""Bound the memory of all databases of a process, however many stores it runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from rocksdict import Cache, WriteBufferManager

_SMALLEST_BYTES = 8 << 20


class MemoryUse(NamedTuple):
    """Reports the bytes that all databases use, and the part of them that write buffers use."""

    total_bytes: int
    write_buffer_bytes: int


class MemoryBudget:
    """Bounds the memory that block cache and write buffers of all databases take together.

    Write buffers are charged to the block cache and get at most half of it: what is being written,
    a restore included, drives blocks out instead of coming on top of them. Beyond its half a
    database that writes flushes its buffer early. Index and filter blocks are in the cache too, so
    nothing grows with the size of a store. The bound is soft by what flushes hold for a moment.

    Raises ValueError under 8 MiB: databases would flush at every write.
    """

    def __init__(self, max_bytes: int) -> None:
        if max_bytes < _SMALLEST_BYTES:
            raise ValueError(f"at least {_SMALLEST_BYTES} bytes for RocksDB, not {max_bytes}")
        self.max_bytes = max_bytes
        self.cache: Any = Cache(max_bytes)
        self.write_buffers: Any = WriteBufferManager.new_write_buffer_manager_with_cache(
            max_bytes // 2, False, self.cache
        )

    def is_tight(self) -> bool:
        """Return whether write buffers use more than half of their part of the budget."""
        return bool(self.write_buffers.get_usage() > self.max_bytes // 4)

    def measure_use(self) -> MemoryUse:
        """Return the memory in use now; for tests, which compare it with the budget."""
        return MemoryUse(self.cache.get_usage(), self.write_buffers.get_usage())
