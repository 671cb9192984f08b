"""Flushing what is appended: when it is done, and what follows if it fails.

By its configuration a topic is flushed every `flush.messages`, and `flush.ms` after the first batch
that isn't; by default neither, for a checkpoint flushes too (see `segments`).

A flush that failed can't be tried again: the system may have marked as clean what it couldn't
write. All that came since the last good one is suspect then, and no append is taken. Before the
next one the suspect bytes are read, their checksums tested, written once more and flushed; if that
goes well, the log is whole again, and if not, the append is refused and so is the next.
"""

from __future__ import annotations

import logging
from pathlib import Path

from coordinator.clock import Timer
from coordinator.log.machine import Machine
from coordinator.log.segment import Damaged, Segment
from coordinator.log.settings import NEVER, LogSettings

logger = logging.getLogger(__name__)

_HEAL_INTERVAL_MS = 1_000


class FlushFailed(OSError):
    """Bytes were written, but are not known to be on the disk."""


class Flushing:
    """The flushes of one partition. `segments` are the log's own, which change under it."""

    def __init__(
        self, directory: Path, segments: list[Segment], settings: LogSettings, machine: Machine
    ) -> None:
        self.settings = settings
        self._directory = directory
        self._segments = segments
        self._machine = machine
        self._timer: Timer | None = None
        self._flushed_offset = 0
        self._are_names_flushed = False
        self._failure = ""
        self._heal_from_ms = 0

    @property
    def has_failed(self) -> bool:
        """Whether bytes are suspect."""
        return bool(self._failure)

    def written(self, size: int, last_offset: int) -> None:
        """A batch of this size is behind the end of the active segment: flush if it is time.
        OSError."""
        settings = self.settings
        if last_offset - self._flushed_offset >= settings.flush_messages - 1:
            self._flush(size)
            self._flushed_offset = last_offset + 1
        elif self._timer is None and settings.flush_ms < NEVER:
            self._flush_later()

    def flush_found(self) -> None:
        """Flush what a broker before this one has written and perhaps not flushed: it is in the log
        now, and a producer that asks again is told so."""
        if not self._unflushed():
            return
        if self.settings.flush_messages < NEVER:
            try:
                self._flush(0)
            except OSError as error:
                self.note_failed(error)
        elif self.settings.flush_ms < NEVER:
            self._flush_later()

    def _flush(self, added: int) -> None:
        """Now. `added` bytes are behind the end of the active segment."""
        for segment in self._unflushed(added):
            try:
                segment.file.flush()
            except OSError as error:
                self.note_failed(error)
                raise FlushFailed(error.errno, f"flush: {error.strerror}") from error
            segment.flushed_size = segment.size
        self.flush_names()
        self._segments[-1].flushed_size += added

    def _flush_later(self) -> None:
        self._timer = self._machine.scheduler.call_later(self.settings.flush_ms, self._flush_aside)

    def _flush_aside(self) -> None:
        """On another thread, for `flush.ms`."""
        self._timer = None
        segments = [(segment, segment.file, segment.size) for segment in self._unflushed()]
        if not segments:
            return

        def flush() -> None:
            for _, file, _ in segments:
                file.flush()
            self.flush_names()

        def done(error: Exception | None) -> None:
            if isinstance(error, OSError):
                self.note_failed(error)
                return
            for segment, _, size in segments:
                segment.flushed_size = max(segment.flushed_size, size)

        self._machine.background.run(flush, done)

    def _unflushed(self, added: int = 0) -> list[Segment]:
        active = self._segments[-1] if self._segments else None
        return [
            segment
            for segment in self._segments
            if segment.flushed_size < segment.size or (added and segment is active)
        ]

    def is_flushed_to(self, offset: int) -> None:
        """What a checkpoint vouches for is on the disk."""
        self._flushed_offset = offset

    # Names

    def names_have_changed(self) -> None:
        self._are_names_flushed = False

    def flush_names(self) -> None:
        """The directory with its segments, and the one that it is in. On any thread. OSError."""
        if not self._are_names_flushed:
            self._are_names_flushed = True
            try:
                for directory in (self._directory, self._directory.parent):
                    self._machine.disk.flush_directory(directory)
            except OSError:
                self._are_names_flushed = False
                raise

    # Healing

    def note_failed(self, error: OSError) -> None:
        """What was to be flushed is suspect."""
        logger.error("%s: a flush failed, nothing is appended: %s", self._directory, error)
        self._failure = str(error)

    def check(self) -> None:
        """Before an append: heal what is suspect. OSError if that doesn't go well."""
        if self._failure:
            self._heal()

    def _heal(self) -> None:
        """Write the suspect bytes again and flush them. OSError."""
        now_ms = self._machine.clock.monotonic_ms()
        if now_ms < self._heal_from_ms:
            raise FlushFailed(f"not flushed: {self._failure}")
        self._heal_from_ms = now_ms + _HEAL_INTERVAL_MS
        for segment in self._unflushed():
            try:
                segment.write_again(segment.flushed_size)
                segment.file.flush()
            except Damaged as error:
                raise FlushFailed(f"{error}, after a failed flush") from error
            segment.flushed_size = segment.size
        self.flush_names()
        logger.warning("%s: what was not flushed was written again", self._directory)
        self._failure = ""
        self._heal_from_ms = 0

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
