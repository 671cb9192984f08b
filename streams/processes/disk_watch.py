"""Look now and then whether a worker's state directory is there, and whether a disk is full.

Neither shows by itself at once. Files that a process has open stay when their directory is removed:
the worker goes on for as long as it creates none, and what it writes is gone with it. An embedded
broker whose disk is full refuses writes and goes on, so that its clients see time-outs; where its
own log is on the same disk, that is empty. So the worker, which can see both, names them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from state.directory import StateDirectory
from streams.common.host import Event, Host

log = logging.getLogger(__name__)

_LOOK_INTERVAL_S = 5.0
_LOG_INTERVAL_S = 60.0
_FREE_MIN_BYTES = 64 << 10
"""With less than that a broker can't append a batch of any size to each of some partitions."""


class DiskWatch:
    """Watches a worker's state directory, and the disk of the embedded broker's data, if any.

    `troubles` has a line for each thing that was wrong at the last look.
    """

    def __init__(
        self, directory: StateDirectory, broker_data: Path | None, host: Host, stop: Event
    ) -> None:
        self.troubles: tuple[str, ...] = ()
        self._directory = directory
        self._broker_data = broker_data
        self._host = host
        self._stop = stop
        self._identity: tuple[int, int] | None = None
        self._logged_at_s: dict[str, float] = {}

    def watch_until_stopped(self) -> None:
        """Look every few seconds until `stop` is set, and log what is wrong once a minute."""
        self.remember_directory()
        while not self._stop.wait(_LOOK_INTERVAL_S):
            self.look_at_disks()

    def remember_directory(self) -> None:
        """Remember which directory is at the path of the state directory now."""
        self._identity = self._directory.find_device_and_inode()

    def look_at_disks(self) -> None:
        """Check the disks once, and log problems that were not logged within the last minute."""
        self.troubles = tuple(self._find_disk_troubles())
        now_s = self._host.monotonic_s()
        for each in self.troubles:
            if now_s - self._logged_at_s.get(each, -_LOG_INTERVAL_S) >= _LOG_INTERVAL_S:
                self._logged_at_s[each] = now_s
                log.error("%s", each)
        for each in self._logged_at_s.keys() - set(self.troubles):
            del self._logged_at_s[each]
            log.info("no longer so: %s", each)

    def _find_disk_troubles(self) -> Iterator[str]:
        if self._directory.find_device_and_inode() != self._identity:
            yield (
                f"the state directory {self._directory.path} was removed, or replaced, under this "
                "worker: it goes on until it has to create a file there. End it and start another: "
                "its stores are restored from their changelogs"
            )
        with suppress(OSError):  # without a directory there is no broker here, which is told
            if self._broker_data is not None and _measure_free_bytes(self._broker_data) < (
                _FREE_MIN_BYTES
            ):
                yield (
                    f"the disk of the embedded broker's data is full ({self._broker_data}): it "
                    "refuses writes and goes on, and nothing is committed until there is room"
                )


def _measure_free_bytes(path: Path) -> int:
    """Return the bytes that this user may still write; the last ones are often kept for root."""
    found = os.statvfs(path)
    return found.f_frsize * (found.f_bavail if os.geteuid() else found.f_bfree)
