"""Set the options of a store's database, and restrict what a store's own tuning may change.

The write-ahead log is on and not synced: `kill -9` loses nothing, a power cut loses a suffix, and
the checkpoint goes back with it. Column families are flushed together (atomic_flush), so that a
power cut that takes the log leaves no checkpoint without the data below it; and since no column
family holds old logs back, a log is replayed at open for what the write buffers hold, no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    DBCompressionType,
    DBRecoveryMode,
    Options,
)

from state.errors import StateError
from state.rocksdb.memory import MemoryBudget

TuneOptions = Callable[[Any], object]
"""A function that changes the options of a store's data in place."""

DATA_FAMILY, OFFSETS_FAMILY = "default", "offsets"
"""The column families of a store: its data, and its checkpoint."""
WRITE_BUFFER_BYTES = 8 << 20
"""The size of a write buffer. It is small: a skip list that fits the processor's cache takes
records a third faster, and what is replayed at open after `kill -9` is at most some of these."""
_WRITE_BUFFERS = 3
_WAL_BYTES_MAX = 2 * WRITE_BUFFER_BYTES
_ARENA_BLOCK_BYTES = 256 << 10
"""The memory of an almost empty write buffer; the default is 1 MiB, times the number of stores."""
_BUFFER_BLOOM_RATIO = 0.015
"""The share of a write buffer that is a bloom filter of its keys, with 10 bits or more for each. A
key that the store does not have is then not searched for in the buffers."""
_L0_COMPACTION = 4
_L0_SLOWDOWN = 32
_L0_STOP = 48
_OPEN_FILES_MAX = 128

BULK_LOAD_OPTIONS = {"level0_file_num_compaction_trigger": "16"}
"""Options for a bulk load: fewer, larger compactions. The trigger is below that of the slowdown, so
that the writes after the load don't wait."""
NORMAL_OPTIONS = {"level0_file_num_compaction_trigger": str(_L0_COMPACTION)}

_FORBIDDEN_SETTINGS = {
    "create_if_missing": "a store is made when it is first opened",
    "create_missing_column_families": "a store is made when it is first opened",
    "set_allow_ingest_behind": "deleted keys would come back",
    "set_atomic_flush": "a checkpoint may not be on disk before its data",
    "set_compaction_style": "FIFO compaction drops data; for universal compaction call "
    "optimize_universal_style_compaction",
    "set_cuckoo_table_factory": "it has no ranges",
    "set_db_log_dir": "a store keeps to its directory",
    "set_db_paths": "a store keeps to its directory",
    "set_db_write_buffer_size": "set rocksdb_memory_max_bytes: one budget for all stores",
    "set_enable_pipelined_write": "it excludes atomic_flush",
    "set_env": "a store is on the file system",
    "set_error_if_exists": "a store is opened again and again",
    "set_fifo_compaction_options": "FIFO compaction drops data",
    "set_inplace_update_support": "iterators would see later writes",
    "set_paranoid_checks": "damage must be seen",
    "set_plain_table_factory": "it has no range deletions",
    "prepare_for_bulk_load": "a store is also read; a restore has settings of its own",
    "set_prefix_extractor": "ranges over several prefixes would miss entries",
    "set_row_cache": "it would be outside of rocksdb_memory_max_bytes",
    "set_unordered_write": "a checkpoint may not be on disk before its data",
    "set_wal_dir": "a store keeps to its directory",
    "set_wal_recovery_mode": "what is recovered must be a prefix of what was written",
    "set_wal_size_limit_mb": "old logs serve nothing here",
    "set_wal_ttl_seconds": "old logs serve nothing here",
    "set_write_buffer_manager": "set rocksdb_memory_max_bytes: one budget for all stores",
}


class RestrictedOptions:
    """Wraps rocksdict's Options, without the settings that a store must keep as they are.

    Raises StateError, with the store and the reason, where one of those is asked for.
    """

    def __init__(self, store: str, options: Any, budget: MemoryBudget) -> None:
        self._store = store
        self._options = options
        self._budget = budget

    def __getattr__(self, name: str) -> Any:
        if name in _FORBIDDEN_SETTINGS:
            raise StateError(
                f"store {self._store!r}: {name} can't be used: {_FORBIDDEN_SETTINGS[name]}"
            )
        return getattr(self._options, name)

    def set_block_based_table_factory(self, factory: Any) -> None:
        """Set the table factory, with the block cache that all stores share."""
        factory.set_block_cache(self._budget.cache)
        self._options.set_block_based_table_factory(factory)

    def optimize_for_point_lookup(self, cache_size: int) -> None:
        raise StateError(
            f"store {self._store!r}: optimize_for_point_lookup can't be used: its cache would be "
            "outside of rocksdb_memory_max_bytes"
        )


def create_data_options(store_name: str, budget: MemoryBudget, tune: TuneOptions | None) -> Any:
    """Return the options of the database and of the column family that holds a store's data."""
    options = _create_common_options(budget, WRITE_BUFFER_BYTES, _ARENA_BLOCK_BYTES)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_max_background_jobs(2)
    options.set_max_open_files(_OPEN_FILES_MAX)
    options.set_bytes_per_sync(1 << 20)
    options.set_wal_bytes_per_sync(1 << 20)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1 << 20)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    options.set_manifest_preallocation_size(64 << 10)
    options.set_max_manifest_file_size(4 << 20)
    options.set_max_total_wal_size(_WAL_BYTES_MAX)
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    options.set_atomic_flush(True)
    options.set_write_buffer_manager(budget.write_buffers)
    options.set_memtable_prefix_bloom_ratio(_BUFFER_BLOOM_RATIO)
    options.set_memtable_whole_key_filtering(True)
    if tune is not None:
        try:
            tune(RestrictedOptions(store_name, options, budget))
        except StateError:
            raise
        except Exception as error:
            raise StateError(f"store {store_name!r}: its rocksdb options: {error!r}") from error
    return options


def create_offsets_options(budget: MemoryBudget) -> Any:
    """Return the options of the column family that holds the checkpoint: one small entry or two."""
    return _create_common_options(budget, 1 << 20, 16 << 10)


def _create_common_options(
    budget: MemoryBudget, write_buffer_bytes: int, arena_block_bytes: int
) -> Any:
    options = Options(raw_mode=True)
    options.set_write_buffer_size(write_buffer_bytes)
    options.set_max_write_buffer_number(_WRITE_BUFFERS)
    options.set_arena_block_size(arena_block_bytes)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_level_compaction_dynamic_level_bytes(True)
    options.set_max_bytes_for_level_base(4 * WRITE_BUFFER_BYTES)
    options.set_target_file_size_base(2 * WRITE_BUFFER_BYTES)
    options.set_target_file_size_multiplier(2)
    options.set_level_zero_file_num_compaction_trigger(_L0_COMPACTION)
    options.set_level_zero_slowdown_writes_trigger(_L0_SLOWDOWN)
    options.set_level_zero_stop_writes_trigger(_L0_STOP)
    table = BlockBasedOptions()
    table.set_format_version(6)
    table.set_block_size(4096)
    table.set_bloom_filter(10, False)
    table.set_block_cache(budget.cache)
    # Index and filter blocks are cached in pieces: a filter that is larger than a shard of the
    # cache would be read from its file, whole, for each key.
    table.set_cache_index_and_filter_blocks(True)
    table.set_index_type(BlockBasedIndexType.two_level_index_search())
    table.set_partition_filters(True)
    table.set_metadata_block_size(4096)
    table.set_pin_top_level_index_and_filter(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    options.set_block_based_table_factory(table)
    return options
