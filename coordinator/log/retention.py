"""Decide which of the oldest segments of a partition have expired, from what is in memory.

Kafka's three rules, one after the other, each from the oldest segment on until one stays: all of it
is below the start offset; the log without it would still have `retention.bytes`; its newest record
is older than `retention.ms`. The last two are for topics whose cleanup policy has `delete`. The
active segment may go as well, if there is anything in it: an empty one takes its place. Where no
record of a segment has a timestamp, Kafka goes by the time of the file; here such a segment doesn't
grow old.
Source: UnifiedLog.deleteOldSegments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coordinator.log.segment import LogSegment
from coordinator.log.settings import LogSettings


def count_expired_segments(
    segments: Sequence[LogSegment], settings: LogSettings, start_offset: int, now_ms: int
) -> int:
    """Return how many segments, oldest first, retention no longer keeps."""
    ends = [segment.base_offset for segment in segments[1:]]
    count = _count_leading_matches(len(ends), lambda at: ends[at] <= start_offset)
    if not settings.is_deleted:
        return count
    excess = sum(segment.size for segment in segments[count:]) - settings.retention_bytes
    while settings.retention_bytes >= 0 and count < len(segments):
        size = segments[count].size
        if size == 0 or excess < size:
            break
        excess -= size
        count += 1
    if settings.retention_ms >= 0:
        oldest_ms = now_ms - settings.retention_ms
        rest = segments[count:]
        count += _count_leading_matches(
            len(rest), lambda at: 0 <= rest[at].max_timestamp_ms < oldest_ms
        )
    return count


def _count_leading_matches(count: int, is_expired: Callable[[int], bool]) -> int:
    """Return how many of the first `count` indexes in a row satisfy the condition."""
    return next((at for at in range(count) if not is_expired(at)), count)
