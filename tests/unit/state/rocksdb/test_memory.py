"""Test that one budget bounds the memory that the forty stores of a process take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from state.rocksdb import MemoryBudget, RocksDisk
from state.store_checkpoint import StoreCheckpoint
from tests.processes import HANG_LIMIT_S

FORTY_STORES = """
import os, sys
from pathlib import Path
from state.rocksdb import MemoryBudget, RocksDisk
from state.store_checkpoint import StoreCheckpoint

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

begun = resident()
budget = MemoryBudget(64 << 20)
disks = [RocksDisk(Path(sys.argv[1]) / str(n), budget=budget) for n in range(40)]
value = os.urandom(1000)
most = 0
for first in (0, 2_500):
    for disk in disks:
        changes = {b"%06d" % n: value for n in range(first, first + 2_500)}
        write = disk.write_changes if first == 0 else lambda c, at: disk.load_changes(c.items(), at)
        write(changes, StoreCheckpoint(first + 2_500, "topic"))
    most = max(most, resident() - begun)
for disk in disks:
    disk.finish_load()
    assert sum(1 for _ in disk.range(None, None)) == 5_000
    most = max(most, resident() - begun)
for disk in disks:
    disk.close()
print(most)
"""


def test_forty_stores_that_write_load_and_read_stay_near_the_budget(memory_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FORTY_STORES, str(memory_path)],
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=True,
    )
    # A buffer stays in use until its flush is on the disk; a busy one is 60 MB behind.
    # 200 MB go through 40 stores; with a budget of its own each would hold 5 of them in buffers.
    assert int(ended.stdout) < (64 + 80) << 20


def test_write_buffers_are_charged_to_the_budget_and_given_back(tmp_path: Path) -> None:
    budget = MemoryBudget(32 << 20)
    disk = RocksDisk(tmp_path / "db", budget=budget)
    before = budget.measure_use()
    changes: dict[bytes, bytes | None] = {b"%06d" % n: b"v" * 1_000 for n in range(4_000)}
    disk.write_changes(changes, StoreCheckpoint(1, "topic"))
    used = budget.measure_use()
    assert used.write_buffer_bytes - before.write_buffer_bytes > 4_000_000
    assert used.total_bytes - before.total_bytes > 4_000_000
    disk.close()
    assert budget.measure_use().write_buffer_bytes == 0


def test_a_budget_that_would_flush_at_every_write_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 8388608 bytes for RocksDB, not 1000000"):
        MemoryBudget(1_000_000)
