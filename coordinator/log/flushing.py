"""Flush appended batches to disk, and handle a flush that fails.

By its configuration a topic is flushed every `flush.messages`, and `flush.ms` after the first
unflushed batch; by default neither, for a checkpoint flushes too (see `segments`).

A flush that failed can't be tried again: the system may have marked as clean what it couldn't
write. All bytes since the last good flush are suspect then, and no append is taken. Before the next
one the suspect bytes are read, their checksums tested, written once more and flushed; if that goes
well, the log is whole again, and if not, the append is refused and so is the next.
"""

from __future__ import annotations

import logging
from pathlib import Path

from coordinator.clock import Timer
from coordinator.log.batch import iterate_batches
from coordinator.log.host import BrokerHost
from coordinator.log.segment import CorruptBatch, LogSegment
from coordinator.log.settings import NEVER, LogSettings

logger = logging.getLogger(__name__)

_HEAL_INTERVAL_MS = 1_000
_PIECE_BYTES = 1 << 20


class FlushFailed(OSError):
    """Reports bytes that were written, but are not known to be on the disk."""


class LogFlusher:
    """Flushes the segments of one partition.

    `segments` is the log's own list, which changes while this works on it.
    """

    def __init__(
        self,
        directory: Path,
        segments: list[LogSegment],
        settings: LogSettings,
        host: BrokerHost,
    ) -> None:
        self.settings = settings
        self._directory = directory
        self._segments = segments
        self._host = host
        self._timer: Timer | None = None
        self._flushed_offset = 0
        self._are_directories_flushed = False
        self._failure = ""
        self._heal_from_ms = 0

    @property
    def has_failed(self) -> bool:
        """Return whether a flush has failed and the bytes since the last good one are suspect."""
        return bool(self._failure)

    def flush_if_due(self, written_bytes: int, last_offset: int) -> None:
        """Flush if it is time, after a batch was written behind the end of the active segment.

        Raises: OSError.
        """
        settings = self.settings
        if last_offset - self._flushed_offset >= settings.flush_messages - 1:
            self._flush_now(written_bytes)
            self._flushed_offset = last_offset + 1
        elif self._timer is None and settings.flush_ms < NEVER:
            self._schedule_flush()

    def flush_recovered_batches(self) -> None:
        """Flush or schedule a flush of batches that an earlier broker process wrote.

        They may never have been flushed, but are in the log now, and a producer that retries one is
        told so.
        """
        if not self._unflushed_segments():
            return
        if self.settings.flush_messages < NEVER:
            try:
                self._flush_now(0)
            except OSError as error:
                self.record_flush_failure(error)
        elif self.settings.flush_ms < NEVER:
            self._schedule_flush()

    def _flush_now(self, added_bytes: int) -> None:
        """Flush every segment that needs it now, and the directories.

        `added_bytes` are behind the end of the active segment. Raises: FlushFailed.
        """
        for segment in self._unflushed_segments(added_bytes):
            try:
                segment.file.flush()
            except OSError as error:
                self.record_flush_failure(error)
                raise FlushFailed(error.errno, f"flush: {error.strerror}") from error
            segment.flushed_size = segment.size
        self.flush_directories()
        self._segments[-1].flushed_size += added_bytes

    def _schedule_flush(self) -> None:
        self._timer = self._host.scheduler.call_later(
            self.settings.flush_ms, self._flush_in_background
        )

    def _flush_in_background(self) -> None:
        """Flush on another thread when `flush.ms` has passed."""
        self._timer = None
        segments = [(segment, segment.file, segment.size) for segment in self._unflushed_segments()]
        if not segments:
            return

        def flush_files() -> None:
            for _, file, _ in segments:
                file.flush()
            self.flush_directories()

        def mark_flushed(error: Exception | None) -> None:
            if isinstance(error, OSError):
                self.record_flush_failure(error)
                return
            for segment, _, size in segments:
                segment.flushed_size = max(segment.flushed_size, size)

        self._host.background.run_in_background(flush_files, mark_flushed)

    def _unflushed_segments(self, added_bytes: int = 0) -> list[LogSegment]:
        """Return the segments with unflushed bytes, and the active one if bytes were added."""
        active = self._segments[-1] if self._segments else None
        return [
            segment
            for segment in self._segments
            if segment.flushed_size < segment.size or (added_bytes and segment is active)
        ]

    def mark_flushed_to(self, offset: int) -> None:
        """Note that a checkpoint has flushed the log up to this offset."""
        self._flushed_offset = offset

    # Directories

    def mark_directory_changed(self) -> None:
        """Mark the directory as changed, so that it is flushed with the next files."""
        self._are_directories_flushed = False

    def flush_directories(self) -> None:
        """Flush the log's directory and the one above it, if names have changed.

        It may be called on any thread. Raises: OSError.
        """
        if not self._are_directories_flushed:
            self._are_directories_flushed = True
            try:
                for directory in (self._directory, self._directory.parent):
                    self._host.disk.flush_directory(directory)
            except OSError:
                self._are_directories_flushed = False
                raise

    # Healing after a failed flush

    def record_flush_failure(self, error: OSError) -> None:
        """Note that a flush failed: appends are refused until the bytes are written again."""
        logger.error("%s: a flush failed, nothing is appended: %s", self._directory, error)
        self._failure = str(error)

    def rewrite_if_flush_failed(self) -> None:
        """Write suspect bytes again before an append, if a flush has failed.

        Raises: OSError if that fails, too.
        """
        if self._failure:
            self._rewrite_unflushed()

    def _rewrite_unflushed(self) -> None:
        """Write the unflushed bytes again, after testing their checksums, and flush them.

        Raises: OSError.
        """
        now_ms = self._host.clock.monotonic_ms()
        if now_ms < self._heal_from_ms:
            raise FlushFailed(f"not flushed: {self._failure}")
        self._heal_from_ms = now_ms + _HEAL_INTERVAL_MS
        for segment in self._unflushed_segments():
            try:
                _rewrite_unflushed_bytes(segment)
                segment.file.flush()
            except CorruptBatch as error:
                raise FlushFailed(f"{error}, after a failed flush") from error
            segment.flushed_size = segment.size
        self.flush_directories()
        logger.warning("%s: what was not flushed was written again", self._directory)
        self._failure = ""
        self._heal_from_ms = 0

    def cancel_flush_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _rewrite_unflushed_bytes(segment: LogSegment) -> None:
    """Write a segment's unflushed bytes once more, after testing their checksums.

    Raises: OSError, `CorruptBatch`.
    """
    start = segment.flushed_size
    while start < segment.size:
        end = segment.find_whole_batches_end(start, segment.size, _PIECE_BYTES, True)
        data = segment.file.read(end - start, start)
        checked = 0
        for batch in iterate_batches(data):
            if not batch.is_intact():
                break
            checked += batch.size
        if checked < end - start:
            raise CorruptBatch(segment.path, start + checked)
        segment.file.write(data, start)
        start = end
