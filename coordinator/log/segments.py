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

from coordinator.log.checkpoint import CheckpointWriter, PartitionCheckpoint
from coordinator.log.data_directory import write_partition_metadata
from coordinator.log.flushing import LogFlusher
from coordinator.log.machine import BrokerMachine
from coordinator.log.producer_state import ProducerStateManager
from coordinator.log.removal import SegmentFileRemover
from coordinator.log.segment import CLEANED, SUFFIXES, LogSegment, SavedSegment, segment_file_name
from coordinator.log.segment_replacement import JOURNAL, write_journal
from coordinator.log.settings import LogSettings

logger = logging.getLogger(__name__)

# Limits of what a start after a kill has to read of a partition, not counting the batches that
# came in while the checkpoint was written.
SAVE_BYTES = 32 << 20
SAVE_BATCHES = 16_384


class _Captured(NamedTuple):
    """Represents the state of the log that one checkpoint saves, copied when it was begun."""

    saving: CheckpointWriter
    states: list[tuple[LogSegment, SavedSegment]]
    removed: tuple[LogSegment, ...]
    appended: int


class LogSegments:
    """Manages the segments of one log, oldest first; the last one is the active one.

    The directory is made with the first. `all` is one list for life: whoever was given it sees the
    segments that are added and taken away.
    """

    def __init__(
        self, directory: Path, topic_id: UUID, settings: LogSettings, machine: BrokerMachine
    ) -> None:
        self.directory = directory
        self.topic_id = topic_id
        self.settings = settings
        self.machine = machine
        self.all: list[LogSegment] = []
        self.flushing = LogFlusher(directory, self.all, settings, machine)
        self.removal = SegmentFileRemover(machine)
        self.has_gaps = False  # a compaction has taken offsets away
        self.first_dirty_offset = 0  # the log has been cleaned up to here
        self.is_replacing = False  # until a checkpoint has the outcome
        self._newly_cleaned: LogSegment | None = None
        self.recovery_point = 0
        self._unsaved_bytes = 0  # since the last attempt to save
        self._appended_at_save = 0
        self._appended = 0
        self._appended_saved = 0
        self._is_saving = False
        self._is_save_wanted = False
        self.on_save_wanted: Callable[[], None] = _do_nothing
        self._is_closed = False
        self.damage: str | None = None  # if set, no segment is replaced
        self._snapshot: Path | None = None
        self._removed: list[LogSegment] = []  # forgotten, and in no checkpoint yet

    def __bool__(self) -> bool:
        return bool(self.all)

    def apply_settings(self, settings: LogSettings) -> None:
        """Use these settings of the topic from now on."""
        self.settings = self.flushing.settings = settings
        for segment in self.all:
            segment.index_interval_bytes = settings.index_interval_bytes

    # Finding

    def segment_index_of(self, offset: int) -> int:
        """Return the index of the segment that has this offset, if any has; at least 0."""
        last = len(self.all) - 1
        if last < 0 or offset >= self.all[last].base_offset:
            return max(0, last)
        return max(0, bisect_right(self.all, offset, key=lambda each: each.base_offset) - 1)

    def segment_end_offset(self, segment_index: int, log_end_offset: int) -> int:
        """Return the offset at which the segment at this index ends, exclusive."""
        return (
            self.all[segment_index + 1].base_offset
            if segment_index + 1 < len(self.all)
            else log_end_offset
        )

    @property
    def size(self) -> int:
        """Return the size of all segments in bytes."""
        return sum(segment.size for segment in self.all)

    # Appending

    def active_segment_for(
        self, batch_bytes: int, last_offset: int, timestamp_ms: int
    ) -> LogSegment | None:
        """Return the active segment if a batch still fits; None if a new segment is due."""
        if not self.all:
            return None
        active = self.all[-1]
        settings = self.settings
        if not active.has_room(batch_bytes, last_offset, settings.segment_bytes):
            return None
        if active.size and timestamp_ms - active.first_timestamp_ms > settings.segment_ms:
            return None
        return active

    def roll_segment(self, base_offset: int) -> LogSegment:
        """Create an empty segment at the end of the log, the active one from now on.

        Raises: OSError.
        """
        disk = self.machine.disk
        if not self.all:
            disk.make_directory(self.directory)
            write_partition_metadata(disk, self.directory, self.topic_id)
        segment = self.open_segment(SavedSegment(base_offset))
        _ = segment.file  # created on disk before anything depends on it
        # Only now: a flush of the directory on another thread may not have seen this name.
        self.flushing.mark_directory_changed()
        self.all.append(segment)
        return segment

    def open_segment(self, saved: SavedSegment) -> LogSegment:
        """Make the segment of a checkpoint's entry; its files are opened when they are needed."""
        return LogSegment(
            self.directory, saved, self.machine.disk, self.settings.index_interval_bytes
        )

    def append_batch(
        self, segment: LogSegment, data: bytes | bytearray, last_offset: int, timestamp_ms: int
    ) -> None:
        """Write a batch to the active segment, and flush if it is time.

        Raises: OSError; nothing has changed then, but that a failed flush leaves the log closed to
        appends (see `flushing`).
        """
        size = len(data)
        self.flushing.heal_if_failed()
        _ = segment.index  # loaded first: if that fails, nothing has been written
        try:
            segment.file.write(data, segment.size)
            self.flushing.flush_if_due(size, last_offset)
        except OSError:
            segment.discard_failed_write()
            raise
        segment.index_batch(size, last_offset, timestamp_ms)
        self._appended += 1
        self._unsaved_bytes += size

    def count_unsaved_batch(self, batch_bytes: int) -> None:
        """Count a batch that was found in the log and that no checkpoint covers."""
        self._appended += 1
        self._unsaved_bytes += batch_bytes

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

    def save_checkpoint(
        self, start_offset: int, end_offset: int, producers: ProducerStateManager
    ) -> None:
        """Write a checkpoint of the log as it is now, on another thread.

        While one is being written, `on_save_wanted` is called at its end instead.
        """
        if self._is_saving:
            self._is_save_wanted = True
            return
        if self.flushing.has_failed or not self.all:
            return
        self._is_saving = True
        captured = self._capture_checkpoint(start_offset, end_offset, producers)
        self.machine.background.run_in_background(
            captured.saving.write_checkpoint, partial(self._finish_save, captured)
        )

    def save_checkpoint_now(
        self, start_offset: int, end_offset: int, producers: ProducerStateManager
    ) -> None:
        """Write a checkpoint of the log as it is now, on this thread. Raises: OSError."""
        if self.flushing.has_failed or not self.all:
            return
        self._is_save_wanted = False  # no checkpoint follows this one
        captured = self._capture_checkpoint(start_offset, end_offset, producers)
        captured.saving.write_checkpoint()
        self._finish_save(captured, None)

    def _capture_checkpoint(
        self, start_offset: int, end_offset: int, producers: ProducerStateManager
    ) -> _Captured:
        """Copy the state of the log that a checkpoint needs, to be written on another thread."""
        pieces = []
        states = []
        for segment in self.all:
            if segment.is_saved:
                states.append((segment, segment.saved))
                continue
            state, added = segment.capture_state()
            states.append((segment, state))
            pieces += added
        self._unsaved_bytes = 0
        self._appended_at_save = self._appended
        checkpoint = PartitionCheckpoint(
            topic_id=self.topic_id,
            start_offset=start_offset,
            recovery_point=end_offset,
            has_gaps=self.has_gaps,
            first_dirty_offset=self.first_dirty_offset,
            segments=[state for _, state in states],
        )
        flushes = [segment.file for segment in self.all if not segment.is_saved]
        disk = self.machine.disk
        flush_names, known = self.flushing.flush_directories, list(producers.iterate_producers())
        saving = CheckpointWriter(
            disk, self.directory, flushes, flush_names, pieces, known, checkpoint
        )
        return _Captured(saving, states, tuple(self._removed), self._appended)

    def _finish_save(self, captured: _Captured, error: Exception | None) -> None:
        """Apply the outcome of writing a checkpoint, and begin the next one if it is wanted."""
        self._is_saving = False
        if self._is_closed:
            return
        self._apply_save_outcome(captured, error)
        if self._is_save_wanted:
            self._is_save_wanted = False
            self.on_save_wanted()

    def _apply_save_outcome(self, captured: _Captured, error: Exception | None) -> None:
        """Record what a new checkpoint covers, and remove the files that it has superseded."""
        saving, states, removed, appended = captured
        if error is not None:
            if saving.flush_failed and isinstance(error, OSError):
                self.flushing.record_flush_failure(error)
            else:
                logger.error("%s: no checkpoint: %s", self.directory, error)
            return
        for segment, state in states:
            segment.saved = state
            segment.flushed_size = max(segment.flushed_size, state.size)
        self._appended_saved = appended
        self.recovery_point = saving.checkpoint.recovery_point
        self._remove_old_snapshot(self._snapshot)
        self._snapshot = self.directory / saving.checkpoint.snapshot_name
        gone = {segment for segment in removed if self._rename_segment_files(segment)}
        self._removed = [segment for segment in self._removed if segment not in gone]
        # The journal goes last: without it, leftover segments of a replaced run would be taken for
        # part of the log.
        new = self._newly_cleaned
        is_saved = new is not None and (new not in self.all or any(new is s for s, _ in states))
        if is_saved and len(gone) == len(removed):
            self._remove_journal()

    def _remove_journal(self) -> bool:
        """Remove the journal of a finished replacement; return False if that fails."""
        try:
            self.machine.disk.remove_file(self.directory / JOURNAL)
        except OSError as error:
            logger.warning("%s: the journal stays: %s", self.directory, error)
            return False
        self.is_replacing = False
        self._newly_cleaned = None
        return True

    def _remove_old_snapshot(self, path: Path | None) -> None:
        """Remove a producer snapshot that a newer one has made superfluous.

        One at whose offset a segment begins stays.
        """
        if path is None or path.name == segment_file_name(self.recovery_point, "snapshot"):
            return
        if any(path == segment.path_of("snapshot") for segment in self.all):
            return
        try:
            self.machine.disk.remove_file(path)
        except OSError as error:
            logger.warning("%s stays: %s", path, error)

    def restore_from(self, checkpoint: PartitionCheckpoint) -> None:
        """Set recovery point, flushed and cleaned offsets to those of a restored checkpoint."""
        self.recovery_point = checkpoint.recovery_point
        self.first_dirty_offset = checkpoint.first_dirty_offset
        self.flushing.mark_flushed_to(checkpoint.recovery_point)
        self._snapshot = self.directory / checkpoint.snapshot_name

    # Replacing

    def create_cleaned_segment(self, base_offset: int) -> LogSegment:
        """Create an empty segment beside the log, to be put in the place of a run of segments.

        The run begins at this offset; `append_batch` fills the segment. Raises: OSError.
        """
        disk = self.machine.disk
        interval = self.settings.index_interval_bytes
        segment = LogSegment(self.directory, SavedSegment(base_offset), disk, interval, CLEANED)
        segment.file.truncate(0)
        return segment

    def discard_cleaned_segment(self, segment: LogSegment) -> None:
        """Close and remove a cleaned segment that will replace nothing."""
        segment.close()
        try:
            self.machine.disk.remove_file(segment.path)
        except OSError as error:
            logger.warning("%s stays: %s", segment.path, error)

    def replace_segments(
        self,
        replaced_run: list[LogSegment],
        cleaned_segment: LogSegment,
        first_dirty_offset: int,
        on_done: Callable[[Exception | None], None],
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
        bases = [segment.base_offset for segment in replaced_run]

        def write_decision() -> None:
            cleaned_segment.file.flush()
            disk.flush_directory(self.directory)
            write_journal(disk, self.directory, self.topic_id, bases)

        def finish_swap(error: Exception | None) -> None:
            if self._is_closed:  # the next start finishes the replacement if the journal is there
                cleaned_segment.close()
                on_done(error or OSError(f"{self.directory}: the log is closed"))
                return
            if error is None and self.damage is not None:
                error = OSError(f"{self.directory} is damaged: {self.damage}")
            if error is None:
                error = self._swap_segments(replaced_run, cleaned_segment, first_dirty_offset)
            # The journal is removed before the cleaned file: a journal without the file would mean
            # that the file was put in place. If the journal stays, so does the file, and the next
            # start puts it in place.
            if error is not None and self._remove_journal():
                self.discard_cleaned_segment(cleaned_segment)
            on_done(error)

        self.machine.background.run_in_background(write_decision, finish_swap)

    def _swap_segments(
        self, replaced_run: list[LogSegment], cleaned_segment: LogSegment, first_dirty_offset: int
    ) -> Exception | None:
        """Rename the cleaned segment's file and put it into the list; return the error if any."""
        try:
            cleaned_segment.rename_to_log()
        except OSError as error:
            return error
        at = self.all.index(replaced_run[0])
        self.all[at : at + len(replaced_run)] = [cleaned_segment]
        self.mark_newly_cleaned(cleaned_segment)
        self.first_dirty_offset = first_dirty_offset
        self._removed += replaced_run
        return None

    def mark_newly_cleaned(self, cleaned_segment: LogSegment) -> None:
        """Record that a cleaned segment has replaced others, which no checkpoint has saved yet."""
        self.is_replacing = self.has_gaps = True
        self._newly_cleaned = cleaned_segment

    # Removing

    def forget_segments(self, segments: list[LogSegment]) -> None:
        """Take segments out of the log; their files are removed after the next checkpoint."""
        self._removed += segments
        gone = set(segments)
        self.all[:] = [segment for segment in self.all if segment not in gone]

    def _rename_segment_files(self, segment: LogSegment) -> bool:
        """Rename a removed segment's files; return whether none is left under a name of the log."""
        has_successor = any(each.base_offset == segment.base_offset for each in self.all)
        return self.removal.rename_then_unlink(
            segment, has_successor, self.settings.file_delete_delay_ms
        )

    def segment_paths(self, base_offset: int) -> list[Path]:
        """Return the path of every file that a segment may have."""
        return [self.directory / segment_file_name(base_offset, suffix) for suffix in SUFFIXES]

    def unlink_later(self, paths: list[Path]) -> None:
        """Unlink the renamed files of removed segments after `file.delete.delay.ms`."""
        self.removal.unlink_later(paths, self.settings.file_delete_delay_ms)

    def close(self) -> None:
        """Close the files and stop the timers; nothing more is done to the files."""
        self._stop_timers()
        for segment in (*self.all, *self._removed):
            segment.close()
        self.all.clear()

    def discard_files(self) -> None:
        """Stop all work on the files, which are going to be removed.

        Answers that are being sent from them have `file.delete.delay.ms` to be sent.
        """
        self._stop_timers()
        delay_ms = self.settings.file_delete_delay_ms
        self.removal.close_files((*self.all, *self._removed), delay_ms)
        self.all.clear()

    def _stop_timers(self) -> None:
        self._is_closed = True
        self.removal.close()
        self.flushing.close()


def _do_nothing() -> None:
    pass
