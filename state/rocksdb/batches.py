"""Write changes to a database in bounded batches, the last of which has the checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from rocksdict import WriteBatch

from state.rocksdb import failures
from state.rocksdb.checkpoints import add_checkpoint
from state.rocksdb.stalls import WriteStall
from state.store_checkpoint import StoreCheckpoint

Change = tuple[bytes, bytes | None]
"""A key with its value; None deletes it."""


class WriteHandles(NamedTuple):
    """Holds the handles of an open database, and of its column family of checkpoints."""

    database: Any
    offsets: Any


class ChangeBatchWriter:
    """Writes the changes of one store, and keeps no handle of its database.

    `wait` waits so many seconds while RocksDB takes no writes; without it RocksDB waits itself.
    `on_batch_written` is called between the batches of one write.
    """

    batch_bytes_max: int = 128 << 10
    """The largest batch. rocksdict holds the interpreter lock while it writes one: this takes one
    to three milliseconds, after which other threads get their turn."""
    batch_step_count: int = 64
    """The number of keys that are put into a batch before its size is checked again."""

    def __init__(
        self,
        store_name: str,
        path: Path,
        *,
        wait: Callable[[float], object] | None,
        on_batch_written: Callable[[], object] | None,
    ) -> None:
        self._store = store_name
        self._path = path
        self._wait = wait
        self._on_batch_written = on_batch_written

    def write_changes(
        self,
        get_handles: Callable[[], WriteHandles],
        changes: Iterable[Change],
        checkpoint: StoreCheckpoint | None,
        write_options: Any,
    ) -> int:
        """Write changes in bounded batches, the checkpoint in the last; return their bytes.

        `get_handles` is called for each batch, as the database may have been closed since the one
        before. Raises StateError.
        """
        entries = iter(changes)
        written = 0
        following = list(islice(entries, self.batch_step_count))
        while True:
            batch, kept = WriteBatch(raw_mode=True), following
            _add_to_batch(batch, following)
            following = list(islice(entries, self.batch_step_count))
            while following and batch.size_in_bytes() < self.batch_bytes_max:
                _add_to_batch(batch, following)
                kept += following
                following = list(islice(entries, self.batch_step_count))
            written += batch.size_in_bytes()
            last = None if following else checkpoint
            self._write_batch(get_handles, batch, kept, last, write_options)
            if not following:
                return written
            if self._on_batch_written is not None:
                self._on_batch_written()

    def _write_batch(
        self,
        get_handles: Callable[[], WriteHandles],
        batch: Any,
        entries: list[Change],
        checkpoint: StoreCheckpoint | None,
        write_options: Any,
    ) -> None:
        """Write one batch; while RocksDB takes no writes, wait outside of it and write it again."""
        write = get_handles().database.write
        stall: WriteStall | None = None
        while True:
            if checkpoint is not None:
                add_checkpoint(batch, checkpoint, get_handles().offsets)
            size = batch.size_in_bytes()
            try:
                write(batch, write_options)
                return
            except Exception as error:
                if not failures.is_write_stall(error):
                    raise failures.to_state_error(
                        self._store, self._path, "be written", error
                    ) from error
            if stall is None:
                assert self._wait is not None
                stall = WriteStall(self._store, self._path, self._wait)
            stall.wait_for_room(get_handles().database, size)
            batch = WriteBatch(raw_mode=True)  # a batch can be written once
            _add_to_batch(batch, entries)


def _add_to_batch(batch: Any, entries: list[Change]) -> None:
    put, delete = batch.put, batch.delete
    for key, value in entries:
        if value is None:
            delete(key)
        else:
            put(key, value)
