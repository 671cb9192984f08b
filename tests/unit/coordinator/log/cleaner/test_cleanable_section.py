"""Test which section of a log is cleanable, when it is worth it, and how segments are grouped."""

from __future__ import annotations

from coordinator.log.batch import parse_header
from coordinator.log.cleaner.cleanable_section import (
    CleanableSection,
    find_cleanable_section,
    group_segments_by_size,
)
from coordinator.log.partition import PartitionLog
from coordinator.log.settings import LogSettings
from tests.own_batches import encode_batch
from tests.unit.coordinator.disks import MemoryDisk
from tests.unit.coordinator.log.cleaner.worlds import World
from tests.unit.coordinator.log.logs import NOW_MS

MINUTE_MS = 60_000


def log_of(ages_min: list[int], **configs: str) -> PartitionLog:
    """Return a log of one batch a segment with ages in minutes; the last segment is active."""
    log = World(MemoryDisk()).create(configs={"internal.segment.bytes": "80", **configs})
    for age in ages_min:
        data = encode_batch([(b"k", b"v")], timestamp_ms=NOW_MS - age * MINUTE_MS)
        log.append_produced(parse_header(data))
    return log


def section(log: PartitionLog, first_dirty_offset: int = 0) -> CleanableSection:
    if first_dirty_offset:
        clean_up_to(log, first_dirty_offset)
    return find_cleanable_section(log, NOW_MS)


def clean_up_to(log: PartitionLog, first_dirty_offset: int) -> None:
    """Replace the first segment by a copy that marks the log as clean below the offset."""
    [first, *_] = log.compaction.list_closed_segments()
    copy = log.compaction.create_cleaned_segment(first.base_offset)
    data = first.read_batches(0, first.size)
    batch = parse_header(data)
    copy.append_batch(data, batch.last_offset, batch.max_timestamp_ms)
    outcomes: list[Exception | None] = []
    log.compaction.replace_segments([first], copy, first_dirty_offset, outcomes.append)
    assert outcomes == [None]


def test_the_active_segment_is_never_in_the_section() -> None:
    found = section(log_of([5, 4, 3]))
    assert [each.base_offset for each in found.segments] == [0, 1]
    assert (found.first_dirty_offset, found.end_offset) == (0, 2)
    assert section(log_of([])).dirty_bytes == 0
    assert section(log_of([5])).dirty_bytes == 0


def test_what_was_cleaned_before_is_clean_and_counts_for_the_ratio() -> None:
    log = log_of([5, 4, 3, 2, 1])
    found = section(log, first_dirty_offset=3)
    assert (found.first_dirty_offset, found.end_offset) == (3, 4)
    assert found.ratio == 0.25
    assert not found.is_worth_cleaning(LogSettings(min_cleanable_dirty_ratio=0.25))
    assert found.is_worth_cleaning(LogSettings(min_cleanable_dirty_ratio=0.24))
    assert section(log, first_dirty_offset=4).dirty_bytes == 0


def test_an_offset_beyond_the_log_counts_for_nothing() -> None:
    assert section(log_of([5, 4, 3]), first_dirty_offset=99).first_dirty_offset == 0


def test_records_younger_than_the_minimal_lag_and_what_follows_are_left() -> None:
    log = log_of([50, 5, 40, 1], **{"min.compaction.lag.ms": str(10 * MINUTE_MS)})
    assert section(log).end_offset == 1


def test_records_older_than_the_maximal_lag_are_cleaned_whatever_the_ratio() -> None:
    configs = {"min.cleanable.dirty.ratio": "1", "max.compaction.lag.ms": str(10 * MINUTE_MS)}
    for oldest, is_worth_it in ((9, False), (11, True)):
        log = log_of([oldest, 5, 1], **configs)
        assert section(log).is_worth_cleaning(log.settings) is is_worth_it


def test_segments_that_fit_together_become_one() -> None:
    log = log_of([9, 8, 7, 6, 5, 4])
    segments = log.compaction.list_closed_segments()
    size = segments[0].size
    for room, expected in ((1, [1] * 5), (2, [2, 2, 1]), (3, [3, 2]), (9, [5])):
        found = group_segments_by_size(segments, 5, LogSettings(segment_bytes=room * size))
        assert [len(run) for run in found] == expected
        assert [each for run in found for each in run] == segments


def test_no_run_spans_more_offsets_than_an_index_can_tell() -> None:
    segments = log_of([9, 8, 7, 6]).compaction.list_closed_segments()
    settings = LogSettings(segment_bytes=1 << 30)
    assert [len(run) for run in group_segments_by_size(segments, 2**31, settings)] == [3]
    assert [len(run) for run in group_segments_by_size(segments, 2**31 + 1, settings)] == [2, 1]
