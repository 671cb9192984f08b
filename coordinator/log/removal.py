"""Removing the files of segments that are in no checkpoint any more, or whose topic is deleted.

The files of a segment are renamed to `.deleted` at once, so that no start takes them for the log's,
and unlinked after `file.delete.delay.ms`. What is being sent from a removed file is sent until
then, as in Kafka: the file stays open as long as an answer needs it, for that time at most. Kafka
keeps every file open for that time. Here one that nobody reads is closed at once, so that deleting
thousands of partitions uses up no file descriptors.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from weakref import ref

from coordinator.clock import Timer
from coordinator.log.disk import File
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
        self.unlink_later(gone, delay_ms)
        if not stays:
            self.close_files([segment], delay_ms)
        return not stays

    def close_files(self, segments: Iterable[Segment], delay_ms: int) -> None:
        """Close the files of these segments that no answer is being sent from now, and the others
        when their last answer ends, or after this delay."""
        released = [(segment.path, _released(segment)) for segment in segments]
        needed = [(path, file) for path, file in released if file and file()]
        if not needed:
            return

        def close() -> None:
            for path, needed_file in needed:
                file = needed_file()
                if file is not None:
                    logger.warning("%s was removed: an answer from it is cut off", path)
                    file.close()

        # It outlives this partition: nothing that it does is undone when the partition is closed.
        self._machine.scheduler.call_later(delay_ms, close)

    def unlink_later(self, paths: list[Path], delay_ms: int) -> None:
        """Unlink files after a while, on another thread."""
        if not paths:
            return
        disk = self._machine.disk

        def unlink() -> None:
            for path in paths:
                disk.remove(path)

        def remove() -> None:
            self._timers.discard(timer)
            self._machine.background.run(unlink, _log_if_failed)

        timer = self._machine.scheduler.call_later(delay_ms, remove)
        self._timers.add(timer)

    def close(self) -> None:
        """What still waits is found and unlinked by the next start."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()


def _released(segment: Segment) -> ref[File] | None:
    """The file that a segment has given up, if it had one open. It is closed unless an answer needs
    it: nothing here keeps it."""
    file = segment.release()
    return None if file is None else ref(file)


def _log_if_failed(error: Exception | None) -> None:
    if error is not None:
        logger.warning("a deleted segment's file stays: %s", error)
