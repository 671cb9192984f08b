"""Wait while RocksDB takes no writes, because it compacts or flushes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from state.errors import StateError

log = logging.getLogger(__name__)

_STEP_S = 0.01
_REPORT_S = 5.0
_MAX_S = 120.0


class WriteStall:
    """Waits for RocksDB to take one batch, outside of RocksDB, and says so when it takes long.

    `wait` waits so many seconds.
    """

    def __init__(self, store: str, path: Path, wait: Callable[[float], object]) -> None:
        self._store = store
        self._path = path
        self._wait = wait
        self._waited_s = 0.0

    def wait_for_room(self, database: Any, batch_bytes: int) -> None:
        """Wait a while for the database to take `batch_bytes`.

        Raises StateError after two minutes in all: its threads are dead, or the disk is.
        """
        figure = database.property_int_value
        rate = figure("rocksdb.actual-delayed-write-rate") or 0
        # RocksDB counts a refused write as written: it has caught up after twice its time.
        step_s = min(max(2 * batch_bytes / rate if rate else 0.0, _STEP_S), 1.0)
        self._wait(step_s)
        before_s, self._waited_s = self._waited_s, self._waited_s + step_s
        state = (
            f"store {self._store!r} in {self._path}: RocksDB has taken no write for "
            f"{self._waited_s:.0f} s, with {figure('rocksdb.num-immutable-mem-table')} buffers to "
            f"flush and {figure('rocksdb.estimate-pending-compaction-bytes')} bytes to compact"
        )
        if self._waited_s >= _MAX_S:
            raise StateError(f"{state}: is the disk too slow, or full?")
        if int(self._waited_s / _REPORT_S) > int(before_s / _REPORT_S):
            log.warning("%s", state)
