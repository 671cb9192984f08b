"""Decide which part of a log can be cleaned, and whether it is worth it, from what is in memory.

    clean                dirty                          not to be cleaned yet
    |--------------------|------------------------------|------------------------->
    start                first dirty offset             end of the section

The first dirty offset is where the last cleaning ended (`LogCompaction.first_dirty_offset`). The
section ends with the last closed segment that is stable altogether and whose records are older than
`min.compaction.lag.ms`. It is cleaned if its dirty part is more than `min.cleanable.dirty.ratio` of
it, or older than `max.compaction.lag.ms`.
Source: LogCleanerManager.{cleanableOffsets, calculateCleanableBytes, maxCompactionDelay},
Cleaner.groupSegmentsBySize.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.log.partition import PartitionLog
from coordinator.log.segment import LogSegment
from coordinator.log.settings import LogSettings

_OFFSETS_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanableSection:
    """Represents the part of a log that may be cleaned now.

    Kafka: `LogToClean`.
    """

    segments: Sequence[LogSegment]  # oldest first, the clean ones as well
    first_dirty_offset: int
    end_offset: int
    dirty_bytes: int
    ratio: float  # dirty bytes divided by all bytes
    is_overdue: bool

    def is_worth_cleaning(self, settings: LogSettings) -> bool:
        """Return whether the section is dirty enough to be cleaned, or overdue."""
        return self.dirty_bytes > 0 and (
            self.is_overdue or self.ratio > settings.min_cleanable_dirty_ratio
        )


def find_cleanable_section(partition: PartitionLog, now_ms: int) -> CleanableSection:
    """Find the part of a partition's log that may be cleaned, and how dirty it is."""
    start = partition.start_offset
    first_dirty = partition.compaction.first_dirty_offset
    if not start <= first_dirty <= partition.end_offset:
        first_dirty = start
    settings = partition.settings
    closed = partition.compaction.list_closed_segments()
    ends = [each.base_offset for each in closed[1:]]
    if closed:
        ends.append(partition.compaction.active_base_offset)
    youngest_ms = now_ms - settings.min_compaction_lag_ms
    dirty: list[LogSegment] = []
    taken = 0
    for segment, end in zip(closed, ends, strict=True):
        if end > first_dirty:
            is_young = settings.min_compaction_lag_ms > 0 and segment.max_timestamp_ms > youngest_ms
            if is_young or end > partition.last_stable_offset:
                break
            dirty.append(segment)
        taken += 1
    dirty_bytes = sum(segment.size for segment in dirty)
    clean_bytes = sum(each.size for each in closed[:taken] if each.base_offset < first_dirty)
    return CleanableSection(
        segments=closed[:taken],
        first_dirty_offset=first_dirty,
        end_offset=ends[taken - 1] if taken else first_dirty,
        dirty_bytes=dirty_bytes,
        ratio=dirty_bytes / (clean_bytes + dirty_bytes) if dirty_bytes else 0.0,
        is_overdue=any(
            0 < segment.first_timestamp_ms < now_ms - settings.max_compaction_lag_ms
            for segment in dirty
        ),
    )


def group_segments_by_size(
    segments: Sequence[LogSegment], end_offset: int, settings: LogSettings
) -> list[list[LogSegment]]:
    """Group neighbouring segments into runs that become one segment each.

    Those of a run together are no larger than a segment may be. `end_offset` is where the last
    segment ends. Kafka: `Cleaner.groupSegmentsBySize`.
    """
    ends = [*(each.base_offset for each in segments[1:]), end_offset]
    found: list[list[LogSegment]] = []
    size = index_size = 0
    for segment, end in zip(segments, ends, strict=True):
        size += segment.size
        index_size += segment.saved.index_bytes
        fits = (
            bool(found)
            and size <= settings.segment_bytes
            and index_size <= settings.segment_index_bytes
            and end - 1 - found[-1][0].base_offset <= _OFFSETS_MAX
        )
        if fits:
            found[-1].append(segment)
        else:
            found.append([segment])
            size, index_size = segment.size, segment.saved.index_bytes
    return found
