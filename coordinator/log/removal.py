"""Remove the files of segments that no checkpoint has any more, or whose topic is deleted.

The files of a segment are renamed to `.deleted` at once, so that no start takes them for the log's,
and unlinked after `file.delete.delay.ms`. An answer that is being sent from a removed file is sent
until then, as in Kafka: the file stays open as long as an answer needs it, for that time at most.
Kafka keeps every file open for that time. Here one that nobody reads is closed at once, so that
deleting thousands of partitions uses up no file descriptors.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from weakref import ref

from coordinator.clock import Timer
from coordinator.log.disk import File
from coordinator.log.host import BrokerHost
from coordinator.log.saved_segment import SUFFIXES
from coordinator.log.segment import LogSegment

logger = logging.getLogger(__name__)


class SegmentFileRemover:
    """Renames, closes and unlinks the files of removed segments of one partition."""

    def __init__(self, host: BrokerHost) -> None:
        self._host = host
        self._timers: set[Timer] = set()

    def try_rename_then_unlink_later(
        self, segment: LogSegment, has_successor: bool, delay_ms: int
    ) -> bool:
        """Rename a segment's files and unlink them later, unless a successor has taken their names.

        Return whether no file is left under a name of the log.
        """
        gone = []
        stays = False
        for suffix in () if has_successor else SUFFIXES:
            path = segment.build_file_path(suffix)
            after = path.with_name(f"{path.name}.deleted")
            try:
                self._host.disk.rename_path(path, after)
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

    def close_files(self, segments: Iterable[LogSegment], delay_ms: int) -> None:
        """Close the segments' files: now if no answer is being sent from them, else a little later.

        A file in use is closed when its last answer ends, or after this delay.
        """
        released = [(segment.path, _release_file(segment)) for segment in segments]
        needed = [(path, file) for path, file in released if file and file()]
        if not needed:
            return

        def close_needed() -> None:
            for path, needed_file in needed:
                file = needed_file()
                if file is not None:
                    logger.warning("%s was removed: an answer from it is cut off", path)
                    file.close()

        # This timer isn't cancelled when the partition is closed: the files are to be closed then.
        self._host.scheduler.call_later(delay_ms, close_needed)

    def unlink_later(self, file_paths: list[Path], delay_ms: int) -> None:
        """Unlink files after a delay, on another thread."""
        if not file_paths:
            return
        disk = self._host.disk

        def unlink_files() -> None:
            for path in file_paths:
                disk.remove_file(path)

        def start_unlinking() -> None:
            self._timers.discard(timer)
            self._host.background.run_in_background(unlink_files, _log_if_failed)

        timer = self._host.scheduler.call_later(delay_ms, start_unlinking)
        self._timers.add(timer)

    def cancel_pending_unlinks(self) -> None:
        """Cancel the pending unlinks; the next start finds the files and unlinks them."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()


def _release_file(segment: LogSegment) -> ref[File] | None:
    """Take the file from a segment and return a weak reference to it, None if none was open.

    It is closed unless an answer needs it: nothing here keeps it.
    """
    file = segment.release_file()
    return None if file is None else ref(file)


def _log_if_failed(error: Exception | None) -> None:
    if error is not None:
        logger.warning("a deleted segment's file stays: %s", error)
