"""Save the checkpoints of one log while it is in use (see `checkpoint`).

A checkpoint is due after SAVE_BYTES or SAVE_BATCHES, at a roll and when the log is closed. The
state of the log is copied at one moment; the files are written on another thread, except when the
log is closed. What the new checkpoint no longer has is removed after it: the producer snapshot
before, the files of removed segments, and the journal of a replacement.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from coordinator.log.checkpoint import CheckpointWriter, PartitionCheckpoint
from coordinator.log.compaction import LogCompaction
from coordinator.log.host import BrokerHost
from coordinator.log.producer_state import ProducerStateManager
from coordinator.log.saved_segment import SavedSegment, build_segment_file_name
from coordinator.log.segment import LogSegment
from coordinator.log.segments import LogSegments

logger = logging.getLogger(__name__)

# Limits of what a start after a kill has to read of a partition, not counting the batches that
# came in while the checkpoint was written.
SAVE_BYTES = 32 << 20
SAVE_BATCHES = 16_384


class LogState(NamedTuple):
    """Represents the part of a log's state that is not in its segments."""

    start_offset: int
    end_offset: int
    producers: ProducerStateManager


class _CapturedCheckpoint(NamedTuple):
    """Represents the state of the log that one checkpoint saves, copied when it was begun."""

    writer: CheckpointWriter
    states: list[tuple[LogSegment, SavedSegment]]
    removed: tuple[LogSegment, ...]
    appended_count: int


class CheckpointSaver:
    """Saves the checkpoints of one log, one at a time, and knows what the last one covers.

    `read_state` returns the state of the log as it is now.
    """

    def __init__(
        self,
        segments: LogSegments,
        compaction: LogCompaction,
        host: BrokerHost,
        read_state: Callable[[], LogState],
    ) -> None:
        self._segments = segments
        self._compaction = compaction
        self._host = host
        self._read_state = read_state
        self._recovery_point = 0
        self._snapshot: Path | None = None
        # The segments' counts of what was appended, when a checkpoint was last begun or completed.
        self._bytes_at_save = 0
        self._count_at_save = 0
        self._count_saved = 0
        self._is_saving = False
        self._is_save_wanted = False

    @property
    def is_due(self) -> bool:
        """Return whether enough was appended since the last attempt for a new checkpoint."""
        segments = self._segments
        return (
            segments.appended_bytes - self._bytes_at_save >= SAVE_BYTES
            or segments.appended_count - self._count_at_save >= SAVE_BATCHES
        )

    @property
    def has_unsaved(self) -> bool:
        """Return whether a start after a kill would have to read anything of the log."""
        segments = self._segments
        return (
            segments.appended_count != self._count_saved
            or bool(segments.removed)
            or self._compaction.has_unsaved
        )

    def save_checkpoint_in_background(self) -> None:
        """Write a checkpoint of the log as it is now, on another thread.

        While one is being written, the next one is begun at its end instead.
        """
        if self._is_saving:
            self._is_save_wanted = True
            return
        if self._segments.flushing.has_failed or not self._segments:
            return
        self._is_saving = True
        captured = self._capture_checkpoint()
        self._host.background.run_in_background(
            captured.writer.write_checkpoint, partial(self._finish_save, captured)
        )

    def save_checkpoint_now(self) -> None:
        """Write a checkpoint of the log as it is now, on this thread. Raises: OSError."""
        if self._segments.flushing.has_failed or not self._segments:
            return
        self._is_save_wanted = False  # no checkpoint follows this one
        captured = self._capture_checkpoint()
        captured.writer.write_checkpoint()
        self._finish_save(captured, None)

    def restore_from(self, checkpoint: PartitionCheckpoint) -> None:
        """Take over from a restored checkpoint what it covers, and its producer snapshot."""
        self._segments.flushing.mark_flushed_to(checkpoint.recovery_point)
        self._recovery_point = checkpoint.recovery_point
        self._snapshot = self._segments.directory / checkpoint.snapshot_name

    def _capture_checkpoint(self) -> _CapturedCheckpoint:
        """Copy the state of the log that a checkpoint needs, to be written on another thread."""
        segments, compaction, log = self._segments, self._compaction, self._read_state()
        pieces = []
        states = []
        for segment in segments.all:
            if segment.is_saved:
                states.append((segment, segment.saved))
                continue
            state, added = segment.index_end_and_capture_state()
            states.append((segment, state))
            pieces += added
        self._bytes_at_save = segments.appended_bytes
        self._count_at_save = segments.appended_count
        checkpoint = PartitionCheckpoint(
            topic_id=segments.topic_id,
            start_offset=log.start_offset,
            recovery_point=log.end_offset,
            has_gaps=compaction.has_gaps,
            first_dirty_offset=compaction.first_dirty_offset,
            segments=[state for _, state in states],
        )
        writer = CheckpointWriter(
            self._host.disk,
            segments.directory,
            [segment.file for segment in segments.all if not segment.is_saved],
            segments.flushing.flush_directories,
            pieces,
            list(log.producers.iterate_producers()),
            checkpoint,
        )
        return _CapturedCheckpoint(writer, states, tuple(segments.removed), segments.appended_count)

    def _finish_save(self, captured: _CapturedCheckpoint, error: Exception | None) -> None:
        """Apply the outcome of writing a checkpoint, and begin the next one if it is wanted."""
        self._is_saving = False
        if self._segments.is_closed:
            return
        self._apply_save_outcome(captured, error)
        if self._is_save_wanted:
            self._is_save_wanted = False
            self.save_checkpoint_in_background()

    def _apply_save_outcome(self, captured: _CapturedCheckpoint, error: Exception | None) -> None:
        """Record what a new checkpoint covers, and remove the files that it has superseded."""
        writer, states, removed, appended_count = captured
        segments = self._segments
        if error is not None:
            if writer.flush_failed and isinstance(error, OSError):
                segments.flushing.record_flush_failure(error)
            else:
                logger.error("%s: no checkpoint: %s", segments.directory, error)
            return
        for segment, state in states:
            segment.saved = state
            segment.flushed_size = max(segment.flushed_size, state.size)
        self._count_saved = appended_count
        self._recovery_point = writer.checkpoint.recovery_point
        self._remove_old_snapshot(self._snapshot)
        self._snapshot = segments.directory / writer.checkpoint.snapshot_name
        # The journal goes last: without it, leftover segments of a replaced run would be taken for
        # part of the log.
        if segments.try_rename_removed_files(removed):
            self._compaction.finish_replacement_if_saved([segment for segment, _ in states])

    def _remove_old_snapshot(self, path: Path | None) -> None:
        """Remove a producer snapshot that a newer one has made superfluous.

        One at whose offset a segment begins stays.
        """
        if path is None or path.name == build_segment_file_name(self._recovery_point, "snapshot"):
            return
        if any(path == segment.build_file_path("snapshot") for segment in self._segments.all):
            return
        try:
            self._host.disk.remove_file(path)
        except OSError as error:
            logger.warning("%s stays: %s", path, error)
