"""Test that a consumer group with only classic members becomes a classic one in one batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.assignors.consumer_protocol import decode_assignment
from coordinator.errors import Code
from coordinator.groups.classic.state import GroupSaved
from coordinator.groups.consumer.config import ConsumerGroupSettings
from coordinator.groups.consumer.record_types import ConsumerGroupForgotten
from coordinator.groups.migration.downgrade import convert_to_classic_group
from coordinator.groups.migration.policy import MigrationPolicy
from coordinator.groups.state import GroupCodec
from tests.unit.coordinator.groups.classic.members import REBALANCE_MS, SESSION_MS
from tests.unit.coordinator.groups.consumer.members import Consumer
from tests.unit.coordinator.groups.migration.migrants import (
    ALL,
    GROUP,
    TOPIC,
    Migrant,
    classic_group,
    consumer,
    consumer_group,
    kind,
    settle,
)
from tests.unit.coordinator.groups.saved_groups import SavedGroups
from tests.unit.coordinator.world import World, code_of

CONSUMER_SESSION_MS = 45_000


def mixed(world: World, instance_id: str | None = None) -> tuple[Migrant, Consumer]:
    """Return a classic member and a consumer that own three partitions each."""
    old, new = Migrant(world, "old").stable_alone(), consumer(world, "new", instance_id)
    new.join(TOPIC)
    settle(old, new)
    assert kind(world) == "consumer Stable"
    assert len(old.has) == 3
    return old, new


def test_the_classic_group_that_is_left_is_what_its_record_says(world: World) -> None:
    old, new = mixed(world)
    epoch = consumer_group(world).epoch
    new.leave()
    assert kind(world) == "classic PreparingRebalance"
    loaded = SavedGroups(world.group_logs).read_logs()[GROUP]
    assert (loaded.generation, loaded.protocol, loaded.leader) == (epoch, "range", old.member_id)
    [member] = loaded.members
    assert decode_assignment(member.assignment)[0] == old.has
    world.restart()
    assert kind(world) == "classic Stable", "the round is lost, as any that is under way"
    assert old.heartbeat() is Code.NONE
    old.join()
    assert old.generation == epoch + 1


def test_a_compaction_leaves_nothing_of_the_consumer_group(world: World) -> None:
    """Check that a compaction also drops resolved expressions of the former consumer group.

    Their tombstones come before the record of the classic group: Kafka refuses to load two types at
    a time.
    """
    old, new = mixed(world)
    new.beat(regex="w.*")
    settle(old, new)
    assert consumer_group(world).resolved_regexes
    new.leave()
    log = world.group_logs[world.groups.partition_of(GROUP)]
    *_, batch = log.batches()
    written = [GroupCodec().decode_record(each.key, each.value) for each in batch.iterate_records()]
    assert isinstance(written[-1], GroupSaved)
    assert isinstance(written[-2], ConsumerGroupForgotten)
    last = {each.key: each.value for batch in log.batches() for each in batch.iterate_records()}
    left = [
        GroupCodec().decode_record(key, value) for key, value in last.items() if value is not None
    ]
    assert [type(each) for each in left] == [GroupSaved]


def test_a_downgrade_that_can_not_be_persisted_has_not_happened(world: World) -> None:
    old, new = mixed(world)
    for log in world.group_logs:
        log.fail_after = 0
    assert code_of(new.leave) is Code.KAFKA_STORAGE_ERROR
    for log in world.group_logs:
        log.fail_after = None
    assert kind(world) == "consumer Stable"
    settle(old, new)
    assert len(old.has) == 3


def test_a_consumer_that_falls_silent_is_tried_again_until_the_group_can_be_converted(
    world: World,
) -> None:
    old, _ = mixed(world)
    for log in world.group_logs:
        log.fail_after = 0
    for _ in range(CONSUMER_SESSION_MS // 5_000 + 1):
        world.clock.advance(5_000)
        assert old.heartbeat() is Code.NONE
    for log in world.group_logs:
        log.fail_after = None
    world.clock.advance(1_000)
    assert kind(world) == "classic PreparingRebalance"
    old.join()
    assert old.generation == 3


def test_sessions_go_on_in_the_classic_group(world: World) -> None:
    old, new = mixed(world)
    other = Migrant(world, "other")
    other.join()
    other.take()
    settle(old, other, new)
    epoch = consumer_group(world).epoch
    new.leave()
    old.join()
    other.join()
    world.clock.advance(0)
    assert (old.generation, other.generation) == (epoch + 1, epoch + 1)
    old.sync_with({old: ALL[:3], other: ALL[3:]})
    world.clock.advance(SESSION_MS - 1)
    assert old.heartbeat() is Code.NONE
    world.clock.advance(1)
    assert old.heartbeat() is Code.REBALANCE_IN_PROGRESS, "the other one's session is over"


def test_the_time_to_join_a_consumer_group_ends_with_it(world: World) -> None:
    """Check that a member gets the whole rebalance timeout again in the next consumer group."""
    old, new = mixed(world)
    third = consumer(world, "third")
    third.join(TOPIC)
    assert old.heartbeat() is Code.REBALANCE_IN_PROGRESS
    third.leave()
    new.leave()
    old.join()
    world.clock.advance(0)
    old.sync_with({old: ALL})
    for _ in range(REBALANCE_MS // 5_000 - 2):
        world.clock.advance(5_000)
        assert old.heartbeat() is Code.NONE
    again = consumer(world, "again")
    again.join(TOPIC)
    for _ in range(4):
        assert old.heartbeat() is Code.REBALANCE_IN_PROGRESS
        again.beat()
        world.clock.advance(5_000)
    assert old.heartbeat() is Code.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    "policy",
    [MigrationPolicy(allows_downgrade=False), MigrationPolicy(classic_max_size=0)],
    ids=["policy", "size"],
)
def test_a_group_that_is_not_to_be_converted_goes_on_with_classic_members(
    world: World, policy: MigrationPolicy
) -> None:
    old, new = mixed(world)
    world.policy = policy
    world.restart()
    new.leave()
    assert kind(world) == "consumer Assigning"
    world.clock.advance(1_000)  # a target assignment holds for so long
    old.go_on()
    assert (old.has, kind(world)) == (ALL, "consumer Stable")
    assert old.heartbeat() is Code.NONE


def test_the_last_member_that_leaves_leaves_an_empty_consumer_group(world: World) -> None:
    old, new = mixed(world)
    old.leave()
    new.beat()
    new.leave()
    assert kind(world) == "consumer Empty"


def test_a_static_consumer_that_comes_back_as_a_classic_member_keeps_its_share(
    world: World,
) -> None:
    old, new = mixed(world, "one")
    share = [(TOPIC, p) for each in new.has.values() for p in sorted(each)]
    back = Migrant(world, "back", instance_id="one")
    back.join()
    assert kind(world) == "classic Stable"
    assert old.heartbeat() is back.heartbeat() is Code.NONE
    back.take()
    assert back.has == share
    world.restart()
    assert kind(world) == "classic Stable"
    assert old.heartbeat() is back.heartbeat() is Code.NONE
    assert classic_group(world).find_static_member_id("one") == back.member_id


@pytest.mark.parametrize("preferred", [b"", b"\x01", b"\xff\xff", b"\x00\x03"])
def test_an_assignment_is_written_in_the_version_of_the_protocol_that_all_offer(
    world: World, preferred: bytes
) -> None:
    """Check the version of an assignment where a member prefers a protocol that no other offers.

    That protocol's metadata are the member's own affair.
    """
    old, new = mixed(world)
    group = consumer_group(world)
    known = group.members[old.member_id]
    assert known.classic is not None
    protocols = (("odd", preferred), *known.classic.protocols)
    odd = replace(known, classic=replace(known.classic, protocols=protocols))
    other = replace(known, member_id="other", instance_id=None)
    group.members.update({old.member_id: odd, "other": other})
    made = convert_to_classic_group(group, [group.members[new.member_id]], {}, world.topics, 0)
    assert made.protocol == "range"
    assert made.members[old.member_id].assignment[:2] == b"\x00\x01"
    assert decode_assignment(made.members[old.member_id].assignment)[0] == old.has


def test_metadata_that_nobody_can_read_keep_no_one_in_the_group(world: World) -> None:
    """Check that a silent member is fenced even if the remaining one's metadata are unreadable."""
    old, new = mixed(world)
    group = consumer_group(world)
    known = group.members[old.member_id]
    assert known.classic is not None
    unreadable = replace(known.classic, protocols=(("odd", b"\x01"),))
    group.members[old.member_id] = replace(known, classic=unreadable)
    made = convert_to_classic_group(group, [group.members[new.member_id]], {}, world.topics, 0)
    assert decode_assignment(made.members[old.member_id].assignment)[0] == old.has


def outdated(world: World) -> tuple[Migrant, Consumer, int]:
    """Return a classic member, a static consumer, and a group epoch that has no target yet."""
    old, new = mixed(world, "one")
    world.group_settings[GROUP] = ConsumerGroupSettings(assignment_interval_ms=15_000)
    third = consumer(world, "third")
    third.join(TOPIC)
    third.leave()
    group = consumer_group(world)
    assert group.epoch == group.target_epoch + 2
    return old, new, group.epoch


def test_the_generation_is_the_group_s_epoch_also_while_the_target_is_older(world: World) -> None:
    old, new, epoch = outdated(world)
    new.leave()
    assert classic_group(world).generation == epoch
    old.join()
    world.clock.advance(0)
    assert old.generation == epoch + 1


def test_members_are_assigned_their_target_whatever_they_have_got_to(world: World) -> None:
    old, new = mixed(world)
    third = consumer(world, "third")
    third.join(TOPIC)
    target = consumer_group(world).target_assignment_of(old.member_id, None)
    third.leave()
    new.leave()
    given, _ = decode_assignment(classic_group(world).members[old.member_id].assignment)
    assert [partition for _, partition in given] == sorted(p for t in target.values() for p in t)
    assert (len(old.has), len(given)) == (3, 2)


def test_with_an_older_target_who_comes_back_has_to_join_the_classic_group_anew(
    world: World,
) -> None:
    outdated(world)
    Migrant(world, "back", instance_id="one").join()
    assert kind(world) == "classic PreparingRebalance"


def test_who_comes_back_from_an_expression_has_to_join_the_classic_group_anew(
    world: World,
) -> None:
    """Check that a member leaves its expression's topics behind, which only the target has."""
    old, new = mixed(world, "one")
    new.beat(regex="w.*")
    settle(old, new)
    Migrant(world, "back", instance_id="one").join()
    assert kind(world) == "classic PreparingRebalance"


def test_as_many_as_a_classic_group_may_have_are_converted(world: World) -> None:
    _, new = mixed(world)
    world.policy = MigrationPolicy(classic_max_size=1)
    world.restart()
    new.leave()
    assert kind(world) == "classic PreparingRebalance"


def test_the_records_of_a_static_consumer_that_comes_back_are_in_the_same_order(
    world: World,
) -> None:
    mixed(world, "one")
    Migrant(world, "back", instance_id="one").join()
    log = world.group_logs[world.groups.partition_of(GROUP)]
    *_, batch = log.batches()
    written = [GroupCodec().decode_record(each.key, each.value) for each in batch.iterate_records()]
    assert isinstance(written[-1], GroupSaved)
    assert isinstance(written[-2], ConsumerGroupForgotten)


def test_while_a_member_waits_for_what_another_has_the_group_that_is_classic_again_rebalances(
    world: World,
) -> None:
    """Check that the group rebalances, as no heartbeat would revoke or announce the partition."""
    waits, has_all = Migrant(world, "waits").stable_alone(), Migrant(world, "has all")
    has_all.join()
    waits.join()
    waits.sync_with({has_all: ALL})
    has_all.take()
    consumer(world, "new", "one").join(TOPIC)
    waits.go_on()
    assert (waits.has, waits.heartbeat()) == ([], Code.NONE)
    back = Migrant(world, "back", instance_id="one")
    back.join()
    assert kind(world) == "classic PreparingRebalance"
    assert code_of(back.sync) is Code.ILLEGAL_GENERATION, "it is given nothing as yet"
    assert waits.heartbeat() is Code.REBALANCE_IN_PROGRESS


def test_an_empty_consumer_group_makes_way_in_one_batch_with_the_newcomer(world: World) -> None:
    new = consumer(world, "new")
    new.join(TOPIC)
    new.leave()
    for log in world.group_logs:
        log.fail_after = 0
    old = Migrant(world)
    assert code_of(old.join_once) is Code.KAFKA_STORAGE_ERROR
    assert kind(world) == "consumer Empty"
    for log in world.group_logs:
        log.fail_after = None
    old.join()
    world.clock.advance(0)
    assert old.generation == 1
    world.restart()
    assert kind(world) == "classic Empty"


def test_a_round_that_nobody_comes_to_ends_as_any_other(world: World) -> None:
    old, new = mixed(world)
    new.leave()
    for _ in range(REBALANCE_MS // 5_000 + 1):
        old.heartbeat()
        world.clock.advance(5_000)
    assert kind(world) == "classic Empty"
