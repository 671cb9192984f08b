"""Test from where a standby follows its changelog, by ranges that may be older than offsets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata
from streams.runtime.offsets.offset_metadata import encode_metadata
from streams.runtime.restoring.followed_ranges import FollowedRangeFetcher
from tests.unit.streams.runtime.fakes import Clock, FakeAdmin, ThreadsOnClock
from tests.unit.streams.runtime.restored import CHANGELOG, INPUT, Restoring


@pytest.mark.parametrize("is_lost", [False, True])
def test_an_end_that_is_older_than_the_committed_offsets_is_fetched_again(
    caplog: pytest.LogCaptureFixture, *, is_lost: bool
) -> None:
    """Test a standby that begins while the active task commits for the first time."""
    world = Restoring()
    committed = OffsetAndMetadata(7, encode_metadata({CHANGELOG.topic: 2}))
    ranges = FollowedRangeFetcher(
        "standby-0",
        FakeAdmin(world.kafka, world.script),
        ThreadsOnClock(Clock()),
        lambda partitions: CommittedOffsets({INPUT: committed}, []),
        is_transactional=True,
    )
    logged = replace(world.store(), damage="it is damaged")
    fetched = ranges.fetch_ranges([logged])[CHANGELOG]
    assert fetched.end_offset == 0
    if not is_lost:
        world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"))
    task = world.task(logged, required=2)
    start = ranges.find_follow_start(task, logged, None, fetched)
    assert (start is None) == is_lost
    assert ("when it stood at 2" in caplog.text) == is_lost
