"""Keep a store's data on RocksDB; no other package imports rocksdict.

Start reading at `disk`. Nothing here knows what a key or a value means.

disk               one database: reads, writes, bulk load, closing
empty_database     files of a new database, made once in a process
closing            the end of a database's handles, in the background where a disk is full
commit_mark        the last commit of a store without a changelog, in a file of its own
batches            writes in bounded batches, the checkpoint in the last
checkpoints        the checkpoint's encoding in a column family
ranges             iterators that their database owns
options            how a database is configured, and what a store's own tuning may not change
memory             one budget for all databases of a process
stalls             waiting while RocksDB takes no writes
stored_checkpoint  a store that nobody has open, read as it is
failures           translation of RocksDB's errors: damaged, locked, or a machine in trouble
"""

from state.rocksdb.closing import UNFLUSHED_STORES, is_closing_in_background
from state.rocksdb.disk import RocksDisk
from state.rocksdb.memory import MemoryBudget, MemoryUse
from state.rocksdb.stored_checkpoint import open_read_only, read_stored_checkpoint

__all__ = [
    "UNFLUSHED_STORES",
    "MemoryBudget",
    "MemoryUse",
    "RocksDisk",
    "is_closing_in_background",
    "open_read_only",
    "read_stored_checkpoint",
]
