"""Translate errors of RocksDB; rocksdict hands over the text of RocksDB's Status, nothing else.

text                                    means
IO error: ... lock ...                  another handle has the database open: DirectoryLocked
Corruption: ...                         the data can't be trusted: StoreCorrupted
IO error: ... No such file ...          a file of the database is gone: StoreCorrupted
Result incomplete: Write stall          nothing is wrong: wait, and write again
IO error: ... No space left ..., other  the machine, or a newer version's database: StateError,
                                        and nothing is wiped
"""

from __future__ import annotations

import threading
from pathlib import Path

from state.errors import DirectoryLocked, StateError, StoreCorrupted

DISK_FULL = threading.Event()
"""Set once a disk has had no room for a write of this process."""
_NO_ROOM = ("No space left", "Disk quota exceeded", "File too large")


def is_write_stall(error: Exception) -> bool:
    """Return whether RocksDB refused a write because it would have had to delay it."""
    return "Write stall" in str(error)


def is_disk_full(error: Exception) -> bool:
    """Return whether a disk has no room for a write, or no more for this user."""
    return any(each in str(error) for each in _NO_ROOM)


def is_file_missing(error: Exception) -> bool:
    """Return whether a file or a directory of the database is gone."""
    return "No such file or directory" in str(error)


def to_state_error(store_name: str, path: Path, operation: str, error: Exception) -> StateError:
    """Return the error to raise for one that RocksDB raised; `operation` completes "can't ..."."""
    if isinstance(error, StateError):
        return error
    text = str(error)
    if is_disk_full(error):
        DISK_FULL.set()
    if text.startswith("IO error") and ("While lock file" in text or "lock hold by" in text):
        return DirectoryLocked(f"{path} is open elsewhere: {text}")
    if text.startswith("Corruption") or is_file_missing(error):
        return StoreCorrupted(store_name, path, text)
    return StateError(
        f"store {store_name!r} in {path} can't {operation}: {text}{_suggest_remedy(error)}"
    )


def _suggest_remedy(error: Exception) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return (
            "; there is a file where a directory should be: remove it, the changelog has the data"
        )
    if is_disk_full(error):
        return "; make room and start again, what was committed is kept"
    return ""


def explain_missing_current(path: Path) -> str | None:
    """Return why a directory with data files is no database (it has no file CURRENT), else None.

    RocksDB would create a new database there.
    """
    if (path / "CURRENT").exists() or next(path.glob("*.sst"), None) is None:
        return None
    return "it has data files and no CURRENT, the file that says which of them count"
