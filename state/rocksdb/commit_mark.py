"""Mark in a file beside the database which commit a store has taken, and find one that it has lost.

RocksDB takes a write-ahead log (WAL) whose end is missing or damaged for one that a crash has cut
off, and opens the store as it was before. Where a changelog follows that is right. A store without
one would have lost commits in silence. So the number of its last commit is written a second time,
to a file that is no part of the database: if the database holds an older one when it is opened, it
is damaged. The file is written after the database, so that a crash between them proves nothing. It
is not synced, and only written for stores without a changelog that the commit has written.
"""

from __future__ import annotations

import os
from pathlib import Path

from state.errors import StoreCorrupted
from state.store_checkpoint import StoreCheckpoint

_FILE = "LAST-COMMIT"
_BYTES = 8


def write_commit_mark(path: Path, commit: int) -> None:
    """Write the number of the commit that the store in the directory `path` has. Raises OSError."""
    file = os.open(path / _FILE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.pwrite(file, commit.to_bytes(_BYTES, "big"), 0)
    finally:
        os.close(file)


def check_commit_mark(store: str, path: Path, checkpoint: StoreCheckpoint | None) -> None:
    """Raise StoreCorrupted if the database has lost a commit that it once had. Raises OSError."""
    try:
        marked = (path / _FILE).read_bytes()
    except FileNotFoundError:
        return  # no commit of this store has a number
    if len(marked) != _BYTES:
        return  # a power failure has taken it
    held = 0 if checkpoint is None else checkpoint.last_commit
    if held < (last := int.from_bytes(marked, "big")):
        raise StoreCorrupted(
            store,
            path,
            f"it has lost commits that were in it: it had that of number {last}, and "
            f"{f'holds up to that of {held}' if held else 'holds none'} now. Its write-ahead log "
            "(the files *.log) is damaged, cut off or gone",
        )
