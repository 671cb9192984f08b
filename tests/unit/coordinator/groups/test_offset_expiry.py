"""Test that unused offsets expire after `offsets.retention.minutes`, by tombstones."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest

from coordinator.errors import Code, Refused
from coordinator.groups.classic.group_transition import ClassicGroupConfig
from coordinator.groups.offset_expiry import SLICE_SIZE
from coordinator.offsets.commit import CommittingMember, OffsetCommitCommand, OffsetToCommit
from coordinator.offsets.config import OffsetConfig
from tests.unit.coordinator.groups.classic.members import (
    SESSION_MS,
    FakeMember,
    phase,
    stable_group,
)
from tests.unit.coordinator.groups.consumer.members import Consumer
from tests.unit.coordinator.world import World

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
RETENTION_MS = 3 * HOUR_MS
CHECK_MS = 10 * MINUTE_MS


@pytest.fixture
def world() -> World:
    return World(
        ClassicGroupConfig(initial_rebalance_delay_ms=0),
        OffsetConfig(retention_ms=RETENTION_MS, retention_check_interval_ms=CHECK_MS),
    )


def commit(
    world: World,
    topics: Sequence[str] = ("words",),
    *,
    group_id: str = "counts",
    partitions: int = 1,
    committer: CommittingMember | None = None,
    retention_ms: int | None = None,
) -> None:
    offsets = [OffsetToCommit(topic, part, 7) for topic in topics for part in range(partitions)]
    world.groups.offsets.commit_offsets(
        OffsetCommitCommand(group_id, offsets, retention_ms=retention_ms),
        committer or CommittingMember(),
        unknown_group_code=Code.ILLEGAL_GENERATION,
    )


def topics(world: World, group_id: str = "counts") -> list[str]:
    """Return the topics of the group's offsets."""
    found = world.groups.offsets.fetch_offsets(group_id, None, require_stable=False)
    return sorted({offset.topic for offset in found})


def groups(world: World) -> list[str]:
    return sorted(group.group_id for group in world.groups.list_groups_unless_loading())


def consumer(world: World, *topics: str, name: str = "a") -> FakeMember:
    """Join a consumer that is subscribed to these topics."""
    member = FakeMember(world, name)
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    member.metadata = struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)
    return member


def pass_time(world: World, ms: int, *members: FakeMember) -> None:
    """Let time pass while the members send heartbeats."""
    while ms > 0:
        step_ms = min(ms, SESSION_MS - 1)
        world.clock.advance(step_ms)
        ms -= step_ms
        for member in members:
            member.heartbeat()


def test_offsets_of_a_simple_group_age_from_their_commit_and_the_last_takes_the_group_along(
    world: World,
) -> None:
    commit(world, ["words"])
    pass_time(world, HOUR_MS)
    commit(world, ["lines"])
    pass_time(world, RETENTION_MS - HOUR_MS - 1)
    assert topics(world) == ["lines", "words"]
    pass_time(world, 1)  # a check falls due here
    assert (topics(world), groups(world)) == (["lines"], ["counts"])
    pass_time(world, HOUR_MS)
    assert (topics(world), groups(world)) == ([], [])
    world.restart()
    assert (topics(world), groups(world)) == ([], [])


def test_nothing_expires_between_two_checks(world: World) -> None:
    pass_time(world, CHECK_MS // 2)
    commit(world)
    pass_time(world, RETENTION_MS)
    assert topics(world) == ["words"]
    pass_time(world, CHECK_MS // 2)
    assert topics(world) == []


def test_offsets_of_a_group_that_was_left_age_from_then_whatever_their_commit(
    world: World,
) -> None:
    member = consumer(world, "words")
    stable_group(world, member)
    commit(world, committer=member.committer)
    pass_time(world, RETENTION_MS, member)
    member.leave()
    pass_time(world, RETENTION_MS - CHECK_MS)
    assert topics(world) == ["words"]
    pass_time(world, 2 * CHECK_MS)
    assert (topics(world), groups(world)) == ([], [])


def test_a_commit_to_a_group_that_was_left_does_not_make_it_younger(world: World) -> None:
    member = consumer(world, "words")
    stable_group(world, member)
    commit(world, committer=member.committer)
    member.leave()
    pass_time(world, RETENTION_MS - CHECK_MS)
    commit(world)
    pass_time(world, 2 * CHECK_MS)
    assert topics(world) == []


def test_the_time_at_which_a_group_was_left_outlives_a_restart(world: World) -> None:
    member = consumer(world, "words")
    stable_group(world, member)
    commit(world, committer=member.committer)
    member.leave()
    pass_time(world, RETENTION_MS - HOUR_MS)
    world.restart()
    pass_time(world, HOUR_MS - CHECK_MS)
    assert topics(world) == ["words"]
    pass_time(world, 2 * CHECK_MS)
    assert (topics(world), groups(world)) == ([], [])


def test_a_living_group_keeps_what_it_is_subscribed_to_and_nothing_else(world: World) -> None:
    member = consumer(world, "words")
    stable_group(world, member)
    commit(world, ["words", "lines"], committer=member.committer)
    pass_time(world, RETENTION_MS - CHECK_MS, member)
    assert topics(world) == ["lines", "words"]
    pass_time(world, 2 * CHECK_MS, member)
    assert topics(world) == ["words"]
    assert phase(world) == "Stable"


def test_a_topic_that_a_new_subscription_drops_loses_its_offsets(world: World) -> None:
    member = consumer(world, "words", "lines")
    stable_group(world, member)
    commit(world, ["words", "lines"], committer=member.committer)
    pass_time(world, 2 * RETENTION_MS, member)
    assert topics(world) == ["lines", "words"]
    member.metadata = consumer(world, "words").metadata
    stable_group(world, member)
    pass_time(world, CHECK_MS, member)
    assert topics(world) == ["words"]


@pytest.mark.parametrize(
    ("metadata", "kept"), [(b"?", ["lines", "words"]), (b"\0\0\0\0\0\0\xff\xff\xff\xff", [])]
)
def test_a_subscription_that_can_not_be_read_keeps_everything(
    world: World, metadata: bytes, kept: list[str]
) -> None:
    member = FakeMember(world, "a")
    member.metadata = metadata
    stable_group(world, member)
    commit(world, ["words", "lines"], committer=member.committer)
    pass_time(world, 2 * RETENTION_MS, member)
    assert topics(world) == kept


def test_in_a_rebalance_nothing_expires(world: World) -> None:
    member, other = consumer(world, "words"), consumer(world, "words", name="b")
    stable_group(world, member)
    commit(world, ["lines"], committer=member.committer)
    pass_time(world, RETENTION_MS + CHECK_MS - 100, member)
    assert topics(world) == ["lines"]
    other.join()
    assert phase(world) == "PreparingRebalance"
    pass_time(world, 100)  # a check falls due here
    assert topics(world) == ["lines"]
    stable_group(world, member, other)
    pass_time(world, CHECK_MS, member, other)
    assert topics(world) == []


def test_a_consumer_group_keeps_what_it_is_subscribed_to_and_ages_from_the_commit_once_it_is_empty(
    world: World,
) -> None:
    world.topics.create("words", 1)
    reader = Consumer(world, "r", group_id="counts")
    reader.join("words")
    committer = CommittingMember(generation=reader.epoch, member_id="r")
    commit(world, ["words", "lines"], committer=committer)
    for ms, kept in ((RETENTION_MS - MINUTE_MS, ["lines", "words"]), (MINUTE_MS, ["words"])):
        for _ in range(ms // (MINUTE_MS // 2)):
            pass_time(world, MINUTE_MS // 2)
            reader.beat()
        assert topics(world) == kept
    reader.leave()
    pass_time(world, CHECK_MS)
    assert (topics(world), groups(world)) == ([], [])
    world.restart()
    assert groups(world) == []


def test_what_an_open_transaction_is_about_to_replace_stays(world: World) -> None:
    commit(world, ["words", "lines"])
    pass_time(world, RETENTION_MS - MINUTE_MS // 2)
    owner = world.init()
    world.add_group(owner)
    world.stage(owner, 9)
    pass_time(world, MINUTE_MS // 2)
    assert (topics(world), groups(world)) == (["words"], ["counts"])
    world.end(owner, committed=False)
    pass_time(world, CHECK_MS)
    assert (topics(world), groups(world)) == ([], [])


def test_a_group_with_offsets_in_an_open_transaction_only_is_not_deleted(world: World) -> None:
    pass_time(world, CHECK_MS - 1)
    owner = world.init()
    world.add_group(owner)
    world.stage(owner, 9)
    pass_time(world, 1)
    assert groups(world) == ["counts"]
    world.end(owner)
    assert topics(world) == ["words"]


def test_an_empty_group_without_offsets_goes_with_the_next_check(world: World) -> None:
    member = consumer(world, "words")
    stable_group(world, member)
    pass_time(world, 2 * CHECK_MS, member)
    assert groups(world) == ["counts"]
    member.leave()
    pass_time(world, CHECK_MS)
    assert groups(world) == []
    world.restart()
    assert groups(world) == []


def test_an_offset_lives_as_long_as_its_client_wished_a_restart_or_not(world: World) -> None:
    commit(world, ["words"], retention_ms=HOUR_MS)
    commit(world, ["lines"], retention_ms=RETENTION_MS + HOUR_MS)
    pass_time(world, HOUR_MS // 2)
    world.restart()
    pass_time(world, HOUR_MS // 2)
    assert topics(world) == ["lines"]
    pass_time(world, RETENTION_MS - CHECK_MS)
    assert topics(world) == ["lines"]
    pass_time(world, CHECK_MS)
    assert topics(world) == []


def test_between_the_slices_of_a_large_group_others_have_their_turn(world: World) -> None:
    commit(world, partitions=3 * SLICE_SIZE)
    kept = world.groups.shards[world.groups.partition_of("counts")].state.offsets.committed
    seen: list[int] = []

    def look() -> None:
        """Queue a call behind the calls that are due now and those that they schedule."""
        seen.append(len(kept.get("counts", ())))
        if len(seen) < 6:
            world.clock.call_later(0, look)

    pass_time(world, RETENTION_MS - 1)
    world.clock.call_later(1, look)
    pass_time(world, 1)
    assert sorted(set(seen), reverse=True) == [3 * SLICE_SIZE, 2 * SLICE_SIZE, SLICE_SIZE, 0]


def test_a_failed_append_keeps_the_rest_of_a_large_group_for_the_next_check(
    world: World,
) -> None:
    partitions = 2 * SLICE_SIZE + SLICE_SIZE // 2
    commit(world, partitions=partitions)
    pass_time(world, RETENTION_MS - 1)
    index = world.groups.partition_of("counts")
    kept = world.groups.shards[index].state.offsets.committed
    world.group_logs[index].fail_after = 1
    pass_time(world, 1)
    assert len(kept["counts"]) == partitions - SLICE_SIZE
    world.group_logs[index].fail_after = None
    pass_time(world, CHECK_MS)
    assert groups(world) == []
    world.restart()
    assert groups(world) == []
    committed, *gone = [batch.record_count for batch in world.group_logs[index].batches()]
    assert (committed, gone) == (partitions, [SLICE_SIZE, SLICE_SIZE, SLICE_SIZE // 2 + 1])


def test_a_shard_that_resigns_in_the_middle_of_a_check_is_left_alone(world: World) -> None:
    commit(world, partitions=2 * SLICE_SIZE)
    index = world.groups.partition_of("counts")
    pass_time(world, RETENTION_MS - 1)
    world.clock.call_later(1, lambda: world.groups.resign_shard(index))
    pass_time(world, 1)  # after the check has begun, before its first slice
    begin_offset = world.group_logs[index].end_offset
    pass_time(world, CHECK_MS)
    assert world.group_logs[index].end_offset == begin_offset
    with pytest.raises(Refused):
        topics(world)
    load_slice = world.groups.elect_shard(index)
    while not load_slice():
        pass
    pass_time(world, CHECK_MS)
    assert groups(world) == []
