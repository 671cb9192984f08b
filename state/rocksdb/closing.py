"""Close the handles of a database without waiting for a disk that is full.

rocksdict flushes as a handle is closed. Where the disk is full the flush fails, and RocksDB waits a
second after it, for one database after the other: an application of sixty stores took a minute to
end. Nothing is lost without the flush, since what was committed is in the log. So once a disk has
been full in this process, handles are closed on threads of their own; until they have gone, the
lock of RocksDB keeps others from opening the database, and they try again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

from state.rocksdb import failures
from state.rocksdb.ranges import ClosedHandle

log = logging.getLogger(__name__)

_THREAD_NAME = "close-store"


class UnflushedReason(StrEnum):
    """Says why a store is closed without a flush, and where what was committed is."""

    DISK_FULL = "as a disk is full"
    FILES_REMOVED = "as files of theirs were removed under this process"
    REFUSED = "as they can't be written"

    @property
    def remaining_copy(self) -> str:
        """Return where what was committed is nevertheless."""
        if self is UnflushedReason.FILES_REMOVED:
            return "what was committed is in their changelogs, from which a new start restores it"
        return "what was committed is in their logs and changelogs"


class UnflushedStores:
    """Counts the stores that were closed without a flush, for one warning about each reason."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stores: dict[UnflushedReason, list[str]] = {}

    def add_store(self, description: str, reason: UnflushedReason) -> None:
        """Add a store, described by its name and directory."""
        with self._lock:
            self._stores.setdefault(reason, []).append(description)

    def log_warning(self) -> None:
        """Log how many stores there were since the last warning, and which was the first."""
        with self._lock:
            found, self._stores = self._stores, {}
        for reason, stores in found.items():
            log.warning(
                "%d stores are closed without a flush, %s, the first is %s: %s",
                len(stores),
                reason,
                stores[0],
                reason.remaining_copy,
            )


UNFLUSHED_STORES = UnflushedStores()
"""The stores of this process: whoever has closed the last one logs the warning."""


def is_closing_in_background() -> bool:
    """Return whether handles are being closed for which nobody waits."""
    return any(thread.name == _THREAD_NAME for thread in threading.enumerate())


def close_handles(
    handles: Iterable[Any], store_name: str, path: Path, *, may_go_later: bool
) -> None:
    """Close the handles of a database, each of which keeps it and RocksDB's lock alive.

    With `may_go_later` they are closed in the background if a disk has been full.
    """
    opened = [each for each in handles if not isinstance(each, ClosedHandle)]
    if not opened:
        return
    if may_go_later and failures.DISK_FULL.is_set():
        UNFLUSHED_STORES.add_store(f"{store_name!r} in {path}", UnflushedReason.DISK_FULL)
        # No daemon: one that the interpreter's end cut off in RocksDB would abort the process.
        thread = threading.Thread(target=_close_all, args=(opened,), name=_THREAD_NAME)
        thread.start()
        return
    errors = _close_all(opened)
    if errors:
        failure = failures.to_state_error(store_name, path, "be flushed", errors[0])
        UNFLUSHED_STORES.add_store(f"{failure}", _find_reason(path, errors[0]))


def _find_reason(path: Path, error: Exception) -> UnflushedReason:
    """Return why a database can't be flushed."""
    if failures.is_disk_full(error):
        return UnflushedReason.DISK_FULL
    if failures.is_file_missing(error) or not path.exists():
        return UnflushedReason.FILES_REMOVED
    return UnflushedReason.REFUSED


def _close_all(handles: list[Any]) -> list[Exception]:
    """Close handles and drop them, which ends what RocksDB has scheduled; return what failed."""
    errors = [error for each in handles if (error := _close_handle(each)) is not None]
    handles.clear()
    return errors


def _close_handle(handle: Any) -> Exception | None:
    """Close a handle and return the error, without the traceback that would keep the handle."""
    try:
        handle.close()
    except Exception as error:
        return error.with_traceback(None)
    return None
