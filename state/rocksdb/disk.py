"""Keep a store's data and checkpoint in one RocksDB database.

Data are in the default column family. The checkpoint is in the column family `offsets`, as KIP-1035
has it: the changelog offset as int64, big-endian, beside the changelog's topic id and the time of
the write. It goes through the write-ahead log (WAL), in the batch that carries the last of its data
or, where the data bypassed the log, after they have been flushed: it can't be ahead of them.

Theory of operation. A disk is in one of these phases:

    LOGGED     what was written is in the log: nothing is lost by `kill -9`
    BULK       what was loaded is in the write buffers only, its checkpoint in this object: a crash
               goes back to the last checkpoint in the log
    DAMAGED    RocksDB could not open it, or found damage in a read: every call but
               `clear_all_data` and `close` raises StoreCorrupted, whoever caught the first one
    CLOSED     every call but `clear_all_data` and `close` raises StateError

    phase      operation             next      what becomes true
    LOGGED     write_changes         LOGGED    the changes, then the checkpoint, are in the log
    LOGGED     load_changes, little  LOGGED    the same: for little, the log is cheaper than a flush
    LOGGED     load_changes, more    BULK      the changes are in the buffers
    BULK       load_changes          BULK      the same; at intervals they are flushed, and the
                                               checkpoint after them is in the log
    BULK       finish_load, write_changes,
               close                 LOGGED    the changes are flushed, the checkpoint is in the log
    LOGGED,
    BULK       damage in get, range  DAMAGED   no handle of it is left; `raise_if_corrupted` raises
    any        clear_all_data        LOGGED    there is an empty database
    any        close                 CLOSED    no handle of it is left: another may open it, at once
                                               or, where the disk is full, after some seconds
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rocksdict import Rdict, WriteOptions

from state.database_statistics import (
    STATISTICS_PROPERTY,
    DatabaseStatistic,
    parse_statistics,
)
from state.errors import StateError, StoreCorrupted
from state.keys import DiskEntry
from state.rocksdb import checkpoints, closing, failures
from state.rocksdb.batches import Change, ChangeBatchWriter, WriteHandles
from state.rocksdb.commit_mark import check_commit_mark, write_commit_mark
from state.rocksdb.empty_database import place_empty_database
from state.rocksdb.memory import MemoryBudget
from state.rocksdb.options import (
    BULK_LOAD_OPTIONS,
    DATA_FAMILY,
    NORMAL_OPTIONS,
    OFFSETS_FAMILY,
    TuneOptions,
    create_data_options,
    create_offsets_options,
)
from state.rocksdb.ranges import ClosedHandle, RangeCursor, iterate_range
from state.store_checkpoint import StoreCheckpoint

_BULK_FROM_BYTES = 4 << 20
"""The bytes that a restore loads before it bypasses the log."""
_WORTH_A_FLUSH_BYTES = 1 << 20
_OWN_BUDGET_BYTES = 32 << 20


class RocksDisk:
    """Stores data and checkpoint in one RocksDB database, in a directory of its own.

    `store` names it in messages. `budget` bounds its memory together with that of every other disk
    that has the same; without one it has 32 MiB to itself. `tune` may change its options. `wait`
    waits so many seconds while RocksDB takes no writes (it compacts, or flushes); without it
    RocksDB waits itself, and keeps all threads of Python waiting. `on_batch_written` is called
    between the batches of one write: a test ends the process there. With `collect_statistics`
    RocksDB counts what it does, at a cost for each call. `open_database` is called as Rdict is: a
    test opens one that stalls, or that is damaged while it is open.

    Raises DirectoryLocked if another handle has it open, StateError if it can't be opened or `tune`
    asks for what a store can't do. A damaged one can be opened, to be cleared.
    """

    bulk_durable_bytes: int = 128 << 20
    """The bytes that a restore loads between two checkpoints, and repeats at most after a crash."""

    _database: Any
    _data: Any
    _offsets: Any
    _offsets_handle: Any
    _get: Callable[[bytes], bytes | None]

    def __init__(
        self,
        path: Path,
        *,
        store_name: str | None = None,
        budget: MemoryBudget | None = None,
        tune: TuneOptions | None = None,
        wait: Callable[[float], object] | None = None,
        on_batch_written: Callable[[], object] | None = None,
        collect_statistics: bool = False,
        open_database: Callable[..., Any] = Rdict,
    ) -> None:
        self._path = path
        self._store = store_name or path.name
        self._budget = budget or MemoryBudget(_OWN_BUDGET_BYTES)
        self._tune = tune
        self._collect_statistics = collect_statistics
        self._batches = ChangeBatchWriter(
            self._store, path, wait=wait, on_batch_written=on_batch_written
        )
        self._open_database = open_database
        self._cursors: set[RangeCursor] = set()
        self._bulk = False
        self._loaded_bytes = 0
        self._unflushed_checkpoint: StoreCheckpoint | None = None
        self._unflushed_bytes = 0
        self._damage: StoreCorrupted | None = None
        self._logged = _create_write_options(use_log=True, refuse_stalls=wait is not None)
        self._unlogged = _create_write_options(use_log=False, refuse_stalls=wait is not None)
        self._replace_handles_by_closed(self._create_closed_error)
        self._open_column_families()

    def get(self, key: bytes) -> bytes | None:
        try:
            return self._get(key)  # raw mode: bytes in, bytes out
        except Exception as error:
            raise self._to_read_error(error) from error

    def range(
        self, first: bytes | None, end: bytes | None, *, reverse: bool = False
    ) -> Iterator[DiskEntry]:
        return iterate_range(
            self._create_iterator, self._cursors, first, end, reverse, self._to_read_error
        )

    def raise_if_corrupted(self) -> None:
        if self._damage is not None:
            raise self._damage

    def approximate_count(self) -> int:
        try:
            return int(self._data.property_int_value("rocksdb.estimate-num-keys") or 0)
        except Exception as error:  # it may be closed while a scrape of metrics asks
            raise self._to_state_error("be read", error) from error

    def read_properties(self, names: Iterable[str]) -> dict[str, int]:
        try:
            values = {name: self._data.property_int_value(name) for name in names}
        except Exception as error:  # it may be closed while a scrape of metrics asks
            raise self._to_state_error("be read", error) from error
        return {name: int(value) for name, value in values.items() if value is not None}

    def read_statistics(self, names: Collection[str]) -> dict[str, DatabaseStatistic]:
        try:
            text = self._database.property_value(STATISTICS_PROPERTY)
        except Exception as error:  # it may be closed while a scrape of metrics asks
            raise self._to_state_error("be read", error) from error
        return parse_statistics(text or "", names)

    def read_checkpoint(self) -> StoreCheckpoint | None:
        try:
            return checkpoints.read_checkpoint(self._offsets.get)
        except Exception as error:
            raise self._to_read_error(error) from error

    def write_changes(
        self,
        changes: Mapping[bytes, bytes | None],
        checkpoint: StoreCheckpoint,
        new_keys: Collection[bytes] = (),
    ) -> None:
        # What is in the log may not depend on what is not: the load is flushed first.
        self.finish_load()
        self._batches.write_changes(
            self._get_write_handles, changes.items(), checkpoint, self._logged
        )
        if checkpoint.last_commit:
            try:
                write_commit_mark(self._path, checkpoint.last_commit)
            except OSError as error:
                raise self._to_state_error("be written", error) from error
        self._flush_if_memory_is_tight()

    def delete_range(self, first: bytes, end: bytes) -> None:
        try:
            self._data.delete_range(first, end, self._unlogged if self._bulk else self._logged)
        except Exception as error:
            raise self._to_state_error("be written", error) from error

    def load_changes(self, changes: Iterable[Change], checkpoint: StoreCheckpoint) -> None:
        if self._loaded_bytes < _BULK_FROM_BYTES:
            self._loaded_bytes += self._batches.write_changes(
                self._get_write_handles, changes, checkpoint, self._logged
            )
            self._flush_if_memory_is_tight()
            return
        if not self._bulk:
            self._bulk = True
            self._set_compaction_options(BULK_LOAD_OPTIONS)
        self._unflushed_bytes += self._batches.write_changes(
            self._get_write_handles, changes, None, self._unlogged
        )
        self._unflushed_checkpoint = checkpoint
        if self._unflushed_bytes >= self.bulk_durable_bytes:
            self._flush_bulk_load()

    def finish_load(self) -> None:
        self.raise_if_corrupted()
        self._loaded_bytes = 0
        if self._bulk:
            self._flush_bulk_load()
            self._bulk = False
            self._set_compaction_options(NORMAL_OPTIONS)

    def clear_all_data(self) -> None:
        self._discard_bulk_load()
        self._close_handles()
        try:
            # CURRENT goes first: without it nothing that is left could pass for a database.
            (self._path / "CURRENT").unlink(missing_ok=True)
            shutil.rmtree(self._path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise self._to_state_error("be cleared", error) from error
        self._open_column_families()

    def move_data_aside(self, path: Path) -> None:
        """Move all data to the directory `path`, in the place of what is there, and begin empty."""
        self._discard_bulk_load()
        self._close_handles()
        try:
            shutil.rmtree(path, ignore_errors=True)
            self._path.rename(path)
        except OSError as error:
            raise self._to_state_error("be set aside", error) from error
        self._open_column_families()

    def close(self) -> None:
        try:
            if self._damage is None:
                self.finish_load()
        finally:
            self._close_handles(may_go_later=True)

    def _open_column_families(self) -> None:
        options = create_data_options(self._store, self._budget, self._tune)
        if self._collect_statistics:
            options.enable_statistics()
        families = {DATA_FAMILY: options, OFFSETS_FAMILY: create_offsets_options(self._budget)}
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            if self._tune is None:  # with other options its files may be others
                place_empty_database(self._path)
            if (reason := failures.explain_missing_current(self._path)) is not None:
                raise StoreCorrupted(self._store, self._path, reason)
            self._database = self._open_database(str(self._path), options, column_families=families)
            self._data = self._database.get_column_family(DATA_FAMILY)
            self._offsets = self._database.get_column_family(OFFSETS_FAMILY)
            self._offsets_handle = self._database.get_column_family_handle(OFFSETS_FAMILY)
            check_commit_mark(
                self._store, self._path, checkpoints.read_checkpoint(self._offsets.get)
            )
        except Exception as error:
            failed = failures.to_state_error(self._store, self._path, "be opened", error)
            if not isinstance(failed, StoreCorrupted):
                raise failed from error
            self._close_as_damaged(failed)
            return
        self._damage = None
        self._get = self._data.get

    def _flush_if_memory_is_tight(self) -> None:
        """Start a flush of this store's write buffer if memory is tight and the buffer not small.

        When the buffers of all stores are full RocksDB flushes the store that writes, however
        little it has; so a store that may not need its buffer for long leaves none behind.
        """
        if not self._budget.is_tight():
            return
        try:
            size = self._data.property_int_value("rocksdb.cur-size-active-mem-table")
            if size >= _WORTH_A_FLUSH_BYTES:
                self._data.flush(wait=False)
        except Exception as error:
            raise self._to_state_error("be flushed", error) from error

    def _flush_bulk_load(self) -> None:
        """Flush data that was loaded without the write-ahead log, then log its checkpoint."""
        try:
            self._data.flush()
        except Exception as error:
            raise self._to_state_error("be flushed", error) from error
        if self._unflushed_checkpoint is not None:
            self._batches.write_changes(
                self._get_write_handles, (), self._unflushed_checkpoint, self._logged
            )
        self._unflushed_checkpoint, self._unflushed_bytes = None, 0

    def _set_compaction_options(self, options: dict[str, str]) -> None:
        """Change options of the data column family, those of compaction, in the open database."""
        try:
            self._data.set_options(options)
        except Exception as error:
            raise self._to_state_error("be set up", error) from error

    def _get_write_handles(self) -> WriteHandles:
        return WriteHandles(self._database, self._offsets_handle)

    def _close_handles(self, *, may_go_later: bool = False) -> None:
        """Close every handle: each keeps the database, and RocksDB's lock, alive."""
        # rocksdict flushes at each close, so the column family of the data is closed first.
        handles = [self._data, self._offsets, self._database]
        self._replace_handles_by_closed(self._create_closed_error)
        for cursor in list(self._cursors):  # other threads may begin ranges meanwhile
            cursor.iterator = ClosedHandle(self._create_closed_error)
        self._cursors.clear()
        closing.close_handles(handles, self._store, self._path, may_go_later=may_go_later)
        handles.clear()

    def _close_as_damaged(self, damage: StoreCorrupted) -> None:
        """Close the database and let every later call raise `damage`.

        Nothing more is read or written, lest something wrong be committed: the caller that met the
        damage may have caught the error and gone on.
        """
        self._discard_bulk_load()
        self._close_handles()
        self._damage = damage
        self._replace_handles_by_closed(lambda: damage)

    def _discard_bulk_load(self) -> None:
        self._bulk, self._loaded_bytes = False, 0
        self._unflushed_checkpoint, self._unflushed_bytes = None, 0

    def _replace_handles_by_closed(self, create_error: Callable[[], StateError]) -> None:
        nothing = ClosedHandle(create_error)
        self._database = self._data = nothing
        self._offsets = self._offsets_handle = nothing
        self._get = nothing.raise_error

    def _create_closed_error(self) -> StateError:
        return StateError(f"store {self._store!r} in {self._path} is closed")

    def _create_iterator(self, read_options: Any) -> Any:
        try:
            return self._data.iter(read_options)
        except Exception as error:
            raise self._to_read_error(error) from error

    def _to_read_error(self, error: Exception) -> StateError:
        failed = self._to_state_error("be read", error)
        # If the disk is closed or damaged already, the error is `error` itself.
        if failed is not error and isinstance(failed, StoreCorrupted):
            self._close_as_damaged(failed)
        return failed

    def _to_state_error(self, operation: str, error: Exception) -> StateError:
        return failures.to_state_error(self._store, self._path, operation, error)


def _create_write_options(*, use_log: bool, refuse_stalls: bool) -> Any:
    """Return write options with or without the write-ahead log.

    With `refuse_stalls` RocksDB refuses a write that it would have to delay, and the caller waits.
    """
    options: Any = WriteOptions()  # rocksdict's stubs declare the settings as methods
    options.disable_wal = not use_log
    options.no_slowdown = refuse_stalls
    return options
