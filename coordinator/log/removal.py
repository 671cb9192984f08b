"""Removing the files of segments that are in no checkpoint any more.

They are renamed to `.deleted` at once, so that no start takes them for the log's, and unlinked
after `file.delete.delay.ms`, as in Kafka: what is being sent from them is sent until then.
"""

from __future__ import annotations

import logging
from pathlib import Path

from coordinator.clock import Timer
from coordinator.log.machine import Machine
from coordinator.log.segment import SUFFIXES, Segment

logger = logging.getLogger(__name__)


class Removal:
    """The files of one partition that wait for their end."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._timers: set[Timer] = set()

    def set_aside(self, segment: Segment, has_successor: bool, delay_ms: int) -> bool:
        """Rename the files of a segment and unlink them later, unless a successor has taken their
        names. Whether none of them is in the log's way any more."""
        gone = []
        stays = False
        for suffix in () if has_successor else SUFFIXES:
            path = segment.path_of(suffix)
            after = path.with_name(f"{path.name}.deleted")
            try:
                self._machine.disk.rename(path, after)
            except FileNotFoundError:
                continue
            except OSError as error:
                logger.warning("%s stays: %s", path, error)
                stays = True
                continue
            gone.append(after)
        self.unlink_later(gone, delay_ms, None if stays else segment)
        return not stays

    def unlink_later(
        self, paths: list[Path], delay_ms: int, segment: Segment | None = None
    ) -> None:
        """Unlink files after a while, on another thread; the segment is closed then."""
        if not paths and segment is None:
            return
        disk = self._machine.disk

        def unlink() -> None:
            for path in paths:
                disk.remove(path)

        def remove() -> None:
            self._timers.discard(timer)
            if segment is not None:
                segment.close()
            self._machine.background.run(unlink, _log_if_failed)

        timer = self._machine.scheduler.call_later(delay_ms, remove)
        self._timers.add(timer)

    def close(self) -> None:
        """What still waits is found and unlinked by the next start."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()


def _log_if_failed(error: Exception | None) -> None:
    if error is not None:
        logger.warning("a deleted segment's file stays: %s", error)
