"""Read a store on disk, or how far it is, without opening it for writing."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rocksdict import AccessType, Rdict

from state.rocksdb.disk import RocksDisk
from state.rocksdb.memory import MemoryBudget
from state.rocksdb.options import TuneOptions
from state.store_checkpoint import StoreCheckpoint


def read_stored_checkpoint(
    path: Path, *, budget: MemoryBudget | None = None, tune: TuneOptions | None = None
) -> StoreCheckpoint | None:
    """Return the checkpoint of the store in the directory `path`, which nobody may write meanwhile.

    None if the store was never written. Nothing is flushed or compacted, so it takes a fraction of
    the time of an opening. Raises StateError for a store that can't be read.
    """
    disk = open_read_only(path, budget=budget, tune=tune)
    try:
        return disk.read_checkpoint()
    finally:
        disk.close()


def open_read_only(
    path: Path, *, budget: MemoryBudget | None = None, tune: TuneOptions | None = None
) -> RocksDisk:
    """Open the store in the directory `path` to read it, which nobody may write meanwhile.

    Raises StateError for a store that can't be read.
    """
    read_only = partial(Rdict, access_type=AccessType.read_only())
    return RocksDisk(path, budget=budget, tune=tune, open_database=read_only)
