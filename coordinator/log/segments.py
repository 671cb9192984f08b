"""Manages the segments of a partition: appending, rolling, saving, replacing and removing.

rolled     a full segment is followed by an empty one that begins at the end of the log
flushed    when the topic's configuration says so (see `flushing`), and when saved
saved      after SAVE_BYTES or SAVE_BATCHES, at a roll and when closed: flush, indexes,
           producers, checkpoint (see `checkpoint`); on another thread, except when closed
removed    forgotten at once; the files go when a checkpoint no longer has them (see `removal`)
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from coordinator.log.checkpoint import Checkpoint, Saving
from coordinator.log.flushing import Flushing
from coordinator.log.machine import Machine
from coordinator.log.producers import Producers
from coordinator.log.removal import Removal
from coordinator.log.replacing import JOURNAL, write_journal
from coordinator.log.segment import CLEANED, SUFFIXES, Saved, Segment, file_name
from coordinator.log.settings import LogSettings
from coordinator.log.storage import write_partition_metadata

logger = logging.getLogger(__name__)

# Limits of what a start after a kill has to read of a partition, not counting the batches that
# came in while the checkpoint was written.
SAVE_BYTES = 32 << 20
SAVE_BATCHES = 16_384


class _Captured(NamedTuple):
    """Represents the state of the log at the moment at which a checkpoint was begun."""

    saving: Saving
    states: list[tuple[Segment, Saved]]
    removed: tuple[Segment, ...]
    appended: int


class Segments:
    """Manages the segments of one log, oldest first; the last one is the active one.

    The directory is made with the first. `all` is one list for life: whoever was given it sees the
    segments that are added and taken away.
    """

    def __init__(
        self, directory: Path, topic_id: UUID, settings: LogSettings, machine: Machine
    ) -> None:
        self.directory = directory
        self.topic_id = topic_id
        self.settings = settings
        self.machine = machine
        self.all: list[Segment] = []
        self.flushing = Flushing(directory, self.all, settings, machine)
        self.removal = Removal(machine)
        self.has_gaps = False  # a compaction has taken offsets away
        self.first_dirty_offset = 0  # the log has been cleaned up to here
        self.is_replacing = False  # until a checkpoint has the outcome
        self._newly_cleaned: Segment | None = None
        self.recovery_point = 0
        self._unsaved_bytes = 0  # since the last attempt to save
        self._appended_at_save = 0
        self._appended = 0
        self._appended_saved = 0
        self._is_saving = False
        self._is_save_wanted = False
        self.when_wanted: Callable[[], None] = _nothing
        self._is_closed = False
        self.damage: str | None = None  # if set, no segment is replaced
        self._snapshot: Path | None = None
        self._removed: list[Segment] = []  # forgotten, and in no checkpoint yet

    def __bool__(self) -> bool:
        return bool(self.all)

    def reconfigure(self, settings: LogSettings) -> None:
        """Use these settings of the topic from now on."""
        self.settings = self.flushing.settings = settings
        for segment in self.all:
            segment.index_interval_bytes = settings.index_interval_bytes

    # Finding

    def with_offset(self, offset: int) -> int:
        """Return the index of the segment that has this offset, if any has; at least 0."""
        last = len(self.all) - 1
        if last < 0 or offset >= self.all[last].base_offset:
            return max(0, last)
        return max(0, bisect_right(self.all, offset, key=lambda each: each.base_offset) - 1)

    def end_of(self, at: int, end_offset: int) -> int:
        """Return the offset at which the segment at this index ends, exclusive."""
        return self.all[at + 1].base_offset if at + 1 < len(self.all) else end_offset

    @property
    def size(self) -> int:
        """Return the size of all segments in bytes."""
        return sum(segment.size for segment in self.all)

    # Appending

    def active_for(self, size: int, last_offset: int, timestamp_ms: int) -> Segment | None:
        """Return the active segment if this batch still goes there; None if a new one is due."""
        if not self.all:
            return None
        active = self.all[-1]
        settings = self.settings
        if not active.has_room(size, last_offset, settings.segment_bytes):
            return None
        if active.size and timestamp_ms - active.first_timestamp_ms > settings.segment_ms:
            return None
        return active

    def roll(self, base_offset: int) -> Segment:
        """Create an empty segment at the end of the log, the active one from now on.

        Raises: OSError.
        """
        disk = self.machine.disk
        if not self.all:
            disk.make_directory(self.directory)
            write_partition_metadata(disk, self.directory, self.topic_id)
        segment = self.open(Saved(base_offset))
        _ = segment.file  # created on disk before anything depends on it
        # Only now: a flush of the directory on another thread may not have seen this name.
        self.flushing.names_have_changed()
        self.all.append(segment)
        return segment

    def open(self, saved: Saved) -> Segment:
        """Make the segment of a checkpoint's entry; its files are opened when they are needed."""
        return Segment(self.directory, saved, self.machine.disk, self.settings.index_interval_bytes)

    def append(
        self, segment: Segment, data: bytes | bytearray, last_offset: int, timestamp_ms: int
    ) -> None:
        """Write a batch to the active segment, and flush if it is time.

        Raises: OSError; nothing has changed then, but that a failed flush leaves the log closed to
        appends (see `flushing`).
        """
        size = len(data)
        self.flushing.check()
        _ = segment.index  # loaded first: if that fails, nothing has been written
        try:
            segment.file.write(data, segment.size)
            self.flushing.written(size, last_offset)
        except OSError:
            segment.cut()
            raise
        segment.noted(size, last_offset, timestamp_ms)
        self._appended += 1
        self._unsaved_bytes += size

    def count_unsaved(self, size: int) -> None:
        """Count a batch that was found in the log and that no checkpoint covers."""
        self._appended += 1
        self._unsaved_bytes += size

    # Saving

    @property
    def is_save_due(self) -> bool:
        """Whether enough was appended since the last attempt for a new checkpoint."""
        return (
            self._unsaved_bytes >= SAVE_BYTES
            or self._appended - self._appended_at_save >= SAVE_BATCHES
        )

    @property
    def has_unsaved(self) -> bool:
        """Whether anything has changed that no checkpoint has."""
        return (
            self._appended != self._appended_saved
            or bool(self._removed)
            or self._newly_cleaned is not None
        )

    def save(self, start_offset: int, end_offset: int, producers: Producers) -> None:
        """Write a checkpoint of the log as it is now, on another thread.

        While one is being written, `on_save_wanted` is called at its end instead.
        """
        if self._is_saving:
            self._is_save_wanted = True
            return
        if self.flushing.has_failed or not self.all:
            return
        self._is_saving = True
        captured = self._captured(start_offset, end_offset, producers)
        self.machine.background.run(captured.saving.write, partial(self._saved, captured))

    def save_now(self, start_offset: int, end_offset: int, producers: Producers) -> None:
        """Write a checkpoint of the log as it is now, on this thread. Raises: OSError."""
        if self.flushing.has_failed or not self.all:
            return
        self._is_save_wanted = False  # no checkpoint follows this one
        captured = self._captured(start_offset, end_offset, producers)
        captured.saving.write()
        self._saved(captured, None)

    def _captured(self, start_offset: int, end_offset: int, producers: Producers) -> _Captured:
        """Copy the state of the log that a checkpoint needs, to be written on another thread."""
        pieces = []
        states = []
        for segment in self.all:
            if segment.is_saved:
                states.append((segment, segment.saved))
                continue
            state, added = segment.capture()
            states.append((segment, state))
            pieces += added
        self._unsaved_bytes = 0
        self._appended_at_save = self._appended
        checkpoint = Checkpoint(
            topic_id=self.topic_id,
            start_offset=start_offset,
            recovery_point=end_offset,
            has_gaps=self.has_gaps,
            first_dirty_offset=self.first_dirty_offset,
            segments=[state for _, state in states],
        )
        flushes = [segment.file for segment in self.all if not segment.is_saved]
        disk = self.machine.disk
        flush_names, known = self.flushing.flush_names, list(producers.items())
        saving = Saving(disk, self.directory, flushes, flush_names, pieces, known, checkpoint)
        return _Captured(saving, states, tuple(self._removed), self._appended)

    def _saved(self, captured: _Captured, error: Exception | None) -> None:
        """Apply the outcome of writing a checkpoint, and begin the next one if it is wanted."""
        self._is_saving = False
        if self._is_closed:
            return
        self._note_saved(captured, error)
        if self._is_save_wanted:
            self._is_save_wanted = False
            self.when_wanted()

    def _note_saved(self, captured: _Captured, error: Exception | None) -> None:
        """Note which state a checkpoint has, and remove the files that it made superfluous."""
        saving, states, removed, appended = captured
        if error is not None:
            if saving.flush_failed and isinstance(error, OSError):
                self.flushing.note_failed(error)
            else:
                logger.error("%s: no checkpoint: %s", self.directory, error)
            return
        for segment, state in states:
            segment.saved = state
            segment.flushed_size = max(segment.flushed_size, state.size)
        self._appended_saved = appended
        self.recovery_point = saving.checkpoint.recovery_point
        self._drop_snapshot(self._snapshot)
        self._snapshot = self.directory / saving.checkpoint.snapshot_name
        gone = {segment for segment in removed if self._set_aside(segment)}
        self._removed = [segment for segment in self._removed if segment not in gone]
        # The journal goes last: without it, leftover segments of a replaced run would be taken for
        # part of the log.
        new = self._newly_cleaned
        is_saved = new is not None and (new not in self.all or any(new is s for s, _ in states))
        if is_saved and len(gone) == len(removed):
            self._drop_journal()

    def _drop_journal(self) -> bool:
        """Remove the journal of a finished replacement; return False if that fails."""
        try:
            self.machine.disk.remove(self.directory / JOURNAL)
        except OSError as error:
            logger.warning("%s: the journal stays: %s", self.directory, error)
            return False
        self.is_replacing = False
        self._newly_cleaned = None
        return True

    def _drop_snapshot(self, path: Path | None) -> None:
        """Remove a producer snapshot that a newer one has made superfluous.

        One at whose offset a segment begins stays.
        """
        if path is None or path.name == file_name(self.recovery_point, "snapshot"):
            return
        if any(path == segment.path_of("snapshot") for segment in self.all):
            return
        try:
            self.machine.disk.remove(path)
        except OSError as error:
            logger.warning("%s stays: %s", path, error)

    def restored(self, checkpoint: Checkpoint) -> None:
        """Set recovery point, flushed and cleaned offsets to those of a restored checkpoint."""
        self.recovery_point = checkpoint.recovery_point
        self.first_dirty_offset = checkpoint.first_dirty_offset
        self.flushing.is_flushed_to(checkpoint.recovery_point)
        self._snapshot = self.directory / checkpoint.snapshot_name

    # Replacing

    def cleaned(self, base_offset: int) -> Segment:
        """Create an empty segment beside the log, to be put in the place of a run of segments.

        The run begins at this offset; `append_batch` fills the segment. Raises: OSError.
        """
        disk = self.machine.disk
        interval = self.settings.index_interval_bytes
        segment = Segment(self.directory, Saved(base_offset), disk, interval, CLEANED)
        segment.file.truncate(0)
        return segment

    def discard_cleaned(self, segment: Segment) -> None:
        """Close and remove a cleaned segment that will replace nothing."""
        segment.close()
        try:
            self.machine.disk.remove(segment.path)
        except OSError as error:
            logger.warning("%s stays: %s", segment.path, error)

    def replace(
        self,
        run: list[Segment],
        cleaned: Segment,
        first_dirty_offset: int,
        done: Callable[[Exception | None], None],
    ) -> None:
        """Replace a run of closed segments by a cleaned one (see `segment_replacement`).

        `on_done` is called when that is done, or with the error: the log is as it was then, and the
        cleaned segment is removed. One at a time. `first_dirty_offset`: up to where the log is
        clean with that.
        """
        if self.is_replacing:
            raise ValueError(f"{self.directory}: another run is being replaced")
        self.is_replacing = True
        disk = self.machine.disk
        bases = [segment.base_offset for segment in run]

        def write_decision() -> None:
            cleaned.file.flush()
            disk.flush_directory(self.directory)
            write_journal(disk, self.directory, self.topic_id, bases)

        def finish_swap(error: Exception | None) -> None:
            if self._is_closed:  # the next start finishes the replacement if the journal is there
                cleaned.close()
                done(error or OSError(f"{self.directory}: the log is closed"))
                return
            if error is None and self.damage is not None:
                error = OSError(f"{self.directory} is damaged: {self.damage}")
            if error is None:
                error = self._swap(run, cleaned, first_dirty_offset)
            # The journal is removed before the cleaned file: a journal without the file would mean
            # that the file was put in place. If the journal stays, so does the file, and the next
            # start puts it in place.
            if error is not None and self._drop_journal():
                self.discard_cleaned(cleaned)
            done(error)

        self.machine.background.run(write_decision, finish_swap)

    def _swap(
        self, run: list[Segment], cleaned: Segment, first_dirty_offset: int
    ) -> Exception | None:
        """Rename the cleaned segment's file and put it into the list; return the error if any."""
        try:
            cleaned.put_in_place()
        except OSError as error:
            return error
        at = self.all.index(run[0])
        self.all[at : at + len(run)] = [cleaned]
        self.is_replaced_by(cleaned)
        self.first_dirty_offset = first_dirty_offset
        self._removed += run
        return None

    def is_replaced_by(self, cleaned: Segment) -> None:
        """Note that this segment came of a replacement that no checkpoint has yet."""
        self.is_replacing = self.has_gaps = True
        self._newly_cleaned = cleaned

    # Removing

    def forget(self, segments: list[Segment]) -> None:
        """Take segments out of the log; their files are removed after the next checkpoint."""
        self._removed += segments
        gone = set(segments)
        self.all[:] = [segment for segment in self.all if segment not in gone]

    def _set_aside(self, segment: Segment) -> bool:
        """Rename a removed segment's files; return whether none is left under a name of the log."""
        has_successor = any(each.base_offset == segment.base_offset for each in self.all)
        return self.removal.set_aside(segment, has_successor, self.settings.file_delete_delay_ms)

    def paths_of(self, base_offset: int) -> list[Path]:
        """Return the path of every file that a segment may have."""
        return [self.directory / file_name(base_offset, suffix) for suffix in SUFFIXES]

    def remove_later(self, paths: list[Path]) -> None:
        """Unlink files that have no name of the log any more, after `file.delete.delay.ms`."""
        self.removal.unlink_later(paths, self.settings.file_delete_delay_ms)

    def close(self) -> None:
        """Close the files and stop the timers; nothing more is done to the files."""
        self._stop()
        for segment in (*self.all, *self._removed):
            segment.close()
        self.all.clear()

    def discard(self) -> None:
        """Stop all work on the files, which are going to be removed.

        Answers that are being sent from them have `file.delete.delay.ms` to be sent.
        """
        self._stop()
        delay_ms = self.settings.file_delete_delay_ms
        self.removal.close_files((*self.all, *self._removed), delay_ms)
        self.all.clear()

    def _stop(self) -> None:
        self._is_closed = True
        self.removal.close()
        self.flushing.close()


def _nothing() -> None:
    pass
