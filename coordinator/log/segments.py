"""Manage the segments of a partition: appending, rolling, replacing and removing.

rolled     a full segment is followed by an empty one that begins at the end of the log
flushed    when the topic's configuration says so (see `flushing`), and when saved
saved      with a checkpoint (see `checkpointing`)
replaced   by a cleaned segment (see `compaction`)
removed    forgotten at once; the files go when a checkpoint no longer has them (see `removal`)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from coordinator.log.data_directory import write_partition_metadata
from coordinator.log.flushing import LogFlusher
from coordinator.log.host import BrokerHost
from coordinator.log.removal import SegmentFileRemover
from coordinator.log.saved_segment import SUFFIXES, SavedSegment, build_segment_file_name
from coordinator.log.segment import LogSegment
from coordinator.log.settings import LogSettings


class LogSegments:
    """Manages the segments of one log, oldest first; the last one is the active one.

    The directory is made with the first. `all` is one list for life: whoever was given it sees the
    segments that are added and taken away.
    """

    def __init__(
        self, directory: Path, topic_id: UUID, settings: LogSettings, host: BrokerHost
    ) -> None:
        self.directory = directory
        self.topic_id = topic_id
        self.settings = settings
        self.host = host
        self.all: list[LogSegment] = []
        self.flushing = LogFlusher(directory, self.all, settings, host)
        self.removal = SegmentFileRemover(host)
        # The batches and bytes ever appended, or found behind the last checkpoint at the start.
        self.appended_count = 0
        self.appended_bytes = 0
        self.recovered_bytes = 0  # of them, those that were found
        self.forgotten_count = 0  # segments that were taken out of the log
        self.removed: list[LogSegment] = []  # forgotten, and in no checkpoint yet
        self.is_closed = False

    def __bool__(self) -> bool:
        return bool(self.all)

    def apply_settings(self, settings: LogSettings) -> None:
        """Use these settings of the topic from now on."""
        self.settings = self.flushing.settings = settings
        for segment in self.all:
            segment.index_interval_bytes = settings.index_interval_bytes

    # Finding

    def find_segment_index(self, offset: int) -> int:
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

    def find_active_segment_with_room(
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
        disk = self.host.disk
        if not self.all:
            disk.make_directory(self.directory)
            write_partition_metadata(disk, self.directory, self.topic_id)
        segment = self.create_saved_segment(SavedSegment(base_offset))
        _ = segment.file  # created on disk before anything depends on it
        # Only now: a flush of the directory on another thread may not have seen this name.
        self.flushing.mark_directory_changed()
        self.all.append(segment)
        return segment

    def create_saved_segment(self, saved: SavedSegment, suffix: str = "") -> LogSegment:
        """Make the segment of a checkpoint's entry; its files are opened when they are needed.

        `suffix` follows the name of its `.log` file.
        """
        interval_bytes = self.settings.index_interval_bytes
        return LogSegment(self.directory, saved, self.host.disk, interval_bytes, suffix)

    def append_batch(
        self, segment: LogSegment, data: bytes | bytearray, last_offset: int, timestamp_ms: int
    ) -> None:
        """Write a batch to the active segment, and flush if it is time.

        Raises: OSError; nothing has changed then, but that a failed flush leaves the log closed to
        appends (see `flushing`).
        """
        size = len(data)
        self.flushing.rewrite_if_flush_failed()
        _ = segment.index  # loaded first: if that fails, nothing has been written
        try:
            segment.file.write(data, segment.size)
            self.flushing.flush_if_due(size, last_offset)
        except OSError:
            # If even this fails, the next append overwrites the torn piece, or a start cuts it.
            with suppress(OSError):
                segment.truncate_to_size()
            raise
        segment.index_batch_and_move_end(size, last_offset, timestamp_ms)
        self.appended_count += 1
        self.appended_bytes += size

    def count_unsaved_batch(self, batch_bytes: int) -> None:
        """Count a batch that was found in the log and that no checkpoint covers."""
        self.appended_count += 1
        self.appended_bytes += batch_bytes
        self.recovered_bytes += batch_bytes

    # Removing

    def replace_run(self, replaced_run: list[LogSegment], cleaned_segment: LogSegment) -> None:
        """Put a cleaned segment in the place of a run; the run's files go after a checkpoint."""
        at = self.all.index(replaced_run[0])
        self.all[at : at + len(replaced_run)] = [cleaned_segment]
        self.removed += replaced_run

    def detach_segments(self, segments: list[LogSegment]) -> None:
        """Take segments out of the log; their files are removed after the next checkpoint."""
        self.removed += segments
        self.forgotten_count += len(segments)
        gone = set(segments)
        self.all[:] = [segment for segment in self.all if segment not in gone]

    def try_rename_removed_files(self, removed: Sequence[LogSegment]) -> bool:
        """Rename the files of removed segments that no checkpoint has, and unlink them later.

        Return whether none is left under a name of the log; those that are stay in `removed`.
        """
        gone = {segment for segment in removed if self._try_rename_and_unlink_files(segment)}
        self.removed = [segment for segment in self.removed if segment not in gone]
        return len(gone) == len(removed)

    def _try_rename_and_unlink_files(self, segment: LogSegment) -> bool:
        """Rename a removed segment's files and unlink them after `file.delete.delay.ms`.

        Return whether none is left under a name of the log.
        """
        has_successor = any(each.base_offset == segment.base_offset for each in self.all)
        return self.removal.try_rename_then_unlink_later(
            segment, has_successor, self.settings.file_delete_delay_ms
        )

    def list_segment_paths(self, base_offset: int) -> list[Path]:
        """Return the path of every file that a segment may have."""
        return [
            self.directory / build_segment_file_name(base_offset, suffix) for suffix in SUFFIXES
        ]

    def unlink_later(self, paths: list[Path]) -> None:
        """Unlink the renamed files of removed segments after `file.delete.delay.ms`."""
        self.removal.unlink_later(paths, self.settings.file_delete_delay_ms)

    def close(self) -> None:
        """Close the files and stop the timers; nothing more is done to the files."""
        self._cancel_timers_and_mark_closed()
        for segment in (*self.all, *self.removed):
            segment.close()
        self.all.clear()

    def close_files_for_removal(self) -> None:
        """Stop all work on the files, which are going to be removed.

        Answers that are being sent from them have `file.delete.delay.ms` to be sent.
        """
        self._cancel_timers_and_mark_closed()
        delay_ms = self.settings.file_delete_delay_ms
        self.removal.close_files((*self.all, *self.removed), delay_ms)
        self.all.clear()

    def _cancel_timers_and_mark_closed(self) -> None:
        self.is_closed = True
        self.removal.cancel_pending_unlinks()
        self.flushing.cancel_flush_timer()
