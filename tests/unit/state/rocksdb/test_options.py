"""Test that a store's own options apply, except those that safety or the memory budget need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rocksdict import BlockBasedOptions, Cache, DBCompactionStyle, Options, WriteBufferManager

from state.errors import StateError
from state.rocksdb import MemoryBudget, RocksDisk
from state.rocksdb.options import _FORBIDDEN_SETTINGS
from state.store_checkpoint import StoreCheckpoint


def options_file(path: Path) -> str:
    """Return the options that RocksDB recorded when the database was opened."""
    return max(path.glob("OPTIONS-*"), key=lambda file: int(file.name.split("-")[1])).read_text()


def test_tuning_changes_the_options_of_its_store(tmp_path: Path) -> None:
    def tune(options: Any) -> None:
        options.set_write_buffer_size(3 << 20)
        options.set_max_write_buffer_number(5)

    RocksDisk(tmp_path / "db", tune=tune).close()
    text = options_file(tmp_path / "db")
    data = text[text.index('[CFOptions "default"]') : text.index('[CFOptions "offsets"]')]
    assert "write_buffer_size=3145728\n" in data
    assert "max_write_buffer_number=5\n" in data


def test_what_the_guarantee_rests_on_is_in_force(tmp_path: Path) -> None:
    RocksDisk(tmp_path / "db").close()
    text = options_file(tmp_path / "db")
    for setting in (
        "atomic_flush=true",
        "wal_recovery_mode=kPointInTimeRecovery",
        "paranoid_checks=true",
        "unordered_write=false",
        "inplace_update_support=false",
        "cache_index_and_filter_blocks=true",
        "max_total_wal_size=16777216",
    ):
        assert f"{setting}\n" in text or f"{setting};" in text, setting


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda o: o.set_atomic_flush(False), "set_atomic_flush can't be used: a checkpoint may"),
        (
            lambda o: o.set_compaction_style(DBCompactionStyle.fifo()),
            "set_compaction_style can't be used: FIFO compaction drops data",
        ),
        (
            lambda o: o.set_write_buffer_manager(WriteBufferManager(1 << 20, False)),
            "set rocksdb_memory_max_bytes",
        ),
        (lambda o: o.set_wal_dir("/tmp"), "set_wal_dir can't be used: a store keeps to its"),
        (lambda o: o.optimize_for_point_lookup(8), "outside of rocksdb_memory_max_bytes"),
        (lambda o: o.set_no_such_thing(1), "its rocksdb options: AttributeError"),
        (lambda o: 1 / 0, "its rocksdb options: ZeroDivisionError"),
    ],
)
def test_tuning_that_would_break_a_promise_is_refused_by_name(
    tmp_path: Path, change: Callable[[Any], object], message: str
) -> None:
    with pytest.raises(StateError, match=message) as raised:
        RocksDisk(tmp_path / "db", store_name="counts", tune=change)
    assert "store 'counts'" in str(raised.value)


def test_every_setting_that_is_kept_is_one_of_rocksdict() -> None:
    assert [name for name in _FORBIDDEN_SETTINGS if not hasattr(Options, name)] == []


def test_a_table_format_of_the_users_own_shares_the_cache(tmp_path: Path) -> None:
    def tune(options: Any) -> None:
        table = BlockBasedOptions()
        table.set_block_size(16 << 10)
        table.set_block_cache(Cache(1 << 30))
        options.set_block_based_table_factory(table)

    budget = MemoryBudget(32 << 20)
    disk = RocksDisk(tmp_path / "db", tune=tune, budget=budget)
    disk.write_changes(
        {b"%06d" % n: b"v" * 1_000 for n in range(4_000)}, StoreCheckpoint(1, "topic")
    )
    disk.close()
    disk = RocksDisk(tmp_path / "db", tune=tune, budget=budget)
    before = budget.measure_use().total_bytes
    assert sum(1 for _ in disk.range(None, None)) == 4_000
    assert budget.measure_use().total_bytes > before + 1_000_000
    disk.close()
