"""Replace the closed segments of one log by cleaned ones, for the cleaner.

The cleaner chooses a run of segments, fills a new one with what is left of them, and has it put in
the place of the run, whole or not at all (see `segment_replacement`). Until a checkpoint has the
outcome, nothing else of this log is replaced or removed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from coordinator.log.host import BrokerHost
from coordinator.log.saved_segment import CLEANED, SavedSegment
from coordinator.log.segment import LogSegment
from coordinator.log.segment_replacement import JOURNAL, write_replacement_journal
from coordinator.log.segments import LogSegments

logger = logging.getLogger(__name__)


class LogCompaction:
    """Replaces runs of a log's segments, one at a time, and knows how far the log is clean.

    `on_replaced` is called after a run was replaced, for a checkpoint to be saved.
    """

    def __init__(
        self, segments: LogSegments, host: BrokerHost, on_replaced: Callable[[], None]
    ) -> None:
        self._segments = segments
        self._host = host
        self._on_replaced = on_replaced
        self.has_gaps = False  # a compaction has taken offsets away
        self.first_dirty_offset = 0  # the log has been cleaned up to here; 0 if that is unknown
        self.is_replacing = False  # until a checkpoint has the outcome
        self.damage: str | None = None  # if set, no segment is replaced
        self._newly_cleaned: LogSegment | None = None

    @property
    def has_unsaved(self) -> bool:
        """Return whether a segment has replaced others and no checkpoint has it."""
        return self._newly_cleaned is not None

    def list_closed_segments(self) -> list[LogSegment]:
        """Return all segments but the active one, oldest first."""
        return self._segments.all[:-1]

    @property
    def active_base_offset(self) -> int:
        """Return the offset at which the active segment begins, and the closed ones end.

        It is 0 for a log without a segment.
        """
        return self._segments.all[-1].base_offset if self._segments else 0

    def create_cleaned_segment(self, base_offset: int) -> LogSegment:
        """Create an empty segment beside the log, to hold what is left of a run of segments.

        The run begins at `base_offset`. The segment is filled with `append_batch` and
        `transaction_index.add_entry`. The last batch of the run stays, if only as an empty one: a
        segment begins where the one before it ends. Raises: OSError.
        """
        segment = self._segments.create_saved_segment(SavedSegment(base_offset), CLEANED)
        segment.file.truncate(0)
        return segment

    def discard_cleaned_segment(self, segment: LogSegment) -> None:
        """Close and remove a segment of `create_cleaned_segment` that will replace nothing."""
        segment.close()
        try:
            self._host.disk.remove_file(segment.path)
        except OSError as error:
            logger.warning("%s stays: %s", segment.path, error)

    def replace_segments(
        self,
        replaced_run: list[LogSegment],
        cleaned_segment: LogSegment,
        first_dirty_offset: int,
        on_done: Callable[[Exception | None], None],
    ) -> None:
        """Replace neighbouring closed segments by a cleaned one, whole or not at all.

        `on_done` is called when that is done, or with the error: the log is as it was then, and the
        cleaned segment is removed. `first_dirty_offset`: up to where the log is clean with that;
        the checkpoint that has the new segment says so, too.
        """
        directory, topic_id = self._segments.directory, self._segments.topic_id
        if self.is_replacing:
            raise ValueError(f"{directory}: another run is being replaced")
        self.is_replacing = True
        disk = self._host.disk
        bases = [segment.base_offset for segment in replaced_run]

        def write_decision() -> None:
            cleaned_segment.file.flush()
            disk.flush_directory(directory)
            write_replacement_journal(disk, directory, topic_id, bases)

        def finish_swap(error: Exception | None) -> None:
            if self._segments.is_closed:
                # The next start finishes the replacement if the journal is there.
                cleaned_segment.close()
                on_done(error or OSError(f"{directory}: the log is closed"))
                return
            if error is None and self.damage is not None:
                error = OSError(f"{directory} is damaged: {self.damage}")
            if error is None:
                error = self._swap_segments(replaced_run, cleaned_segment, first_dirty_offset)
            if error is None:
                self._on_replaced()
            # The journal is removed before the cleaned file: a journal without the file would mean
            # that the file was put in place. If the journal stays, so does the file, and the next
            # start puts it in place.
            elif self._try_remove_journal():
                self.discard_cleaned_segment(cleaned_segment)
            on_done(error)

        self._host.background.run_in_background(write_decision, finish_swap)

    def _swap_segments(
        self, replaced_run: list[LogSegment], cleaned_segment: LogSegment, first_dirty_offset: int
    ) -> Exception | None:
        """Rename the cleaned segment's file and put it into the log; return the error if any."""
        try:
            cleaned_segment.rename_to_log()
        except OSError as error:
            return error
        self._segments.replace_run(replaced_run, cleaned_segment)
        self.record_unsaved_replacement(cleaned_segment)
        self.first_dirty_offset = first_dirty_offset
        return None

    def record_unsaved_replacement(self, cleaned_segment: LogSegment) -> None:
        """Record that a cleaned segment has replaced others, which no checkpoint has saved yet."""
        self.is_replacing = self.has_gaps = True
        self._newly_cleaned = cleaned_segment

    def finish_replacement_if_saved(self, saved_segments: Iterable[LogSegment]) -> None:
        """Finish the replacement if a checkpoint has its segment, or the log has it no longer.

        It is called when no file of the replaced run is left under a name of the log.
        """
        new = self._newly_cleaned
        if new is not None and (
            new not in self._segments.all or any(new is segment for segment in saved_segments)
        ):
            self._try_remove_journal()

    def _try_remove_journal(self) -> bool:
        """Remove the journal of a finished replacement; return False if that fails."""
        directory = self._segments.directory
        try:
            self._host.disk.remove_file(directory / JOURNAL)
        except OSError as error:
            logger.warning("%s: the journal stays: %s", directory, error)
            return False
        self.is_replacing = False
        self._newly_cleaned = None
        return True
