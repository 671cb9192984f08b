"""Test that a consumer that joins converts a classic group in one batch, or not at all."""

from __future__ import annotations

import pytest

from coordinator.assignors.consumer_protocol import encode_assignment
from coordinator.errors import Code, Refused
from coordinator.groups.classic.state import GroupForgotten
from coordinator.groups.migration.policy import MigrationPolicy
from coordinator.groups.state import GroupCodec, Record
from coordinator.log.batch import RecordBatch
from tests.unit.coordinator.fakes import FakeLog
from tests.unit.coordinator.groups.classic.members import SESSION_MS, FakeMember, stable_group
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
from tests.unit.coordinator.world import World, code_of


def group_log(world: World) -> FakeLog:
    return world.group_logs[world.groups.partition_of(GROUP)]


def decoded(batch: RecordBatch) -> list[Record | None]:
    return [GroupCodec().decode_record(each.key, each.value) for each in batch.iterate_records()]


def test_the_group_is_converted_by_one_batch_with_the_newcomer_s_own_records(world: World) -> None:
    Migrant(world).stable_alone()
    before = len(list(group_log(world).batches()))
    consumer(world, "new").join(TOPIC)
    (batch,) = list(group_log(world).batches())[before:]
    records = decoded(batch)
    assert isinstance(records[0], GroupForgotten), "Kafka refuses to load two kinds at a time"
    assert [each for each in records if isinstance(each, GroupForgotten)] == records[:1]
    kinds = [type(each).__name__ for each in records[1:]]
    assert kinds[:5] == [
        "ConsumerMemberSaved",
        "ConsumerGroupSaved",
        "TargetAssignmentSaved",
        "TargetEpochSaved",
        "CurrentAssignmentSaved",
    ]
    assert kinds[5] == "ConsumerMemberSaved", "the newcomer"
    assert kind(world) == "consumer Reconciling"
    world.restart()
    assert kind(world) == "consumer Reconciling"


def test_a_group_in_the_middle_of_its_migration_goes_on_after_a_restart(world: World) -> None:
    old, new = Migrant(world).stable_alone(), consumer(world, "new")
    new.join(TOPIC)
    old.join()  # its revocation is requested, and not yet reported
    live = consumer_group(world)
    world.restart()
    assert consumer_group(world) == live
    old.take()
    assert len(old.has) == 3
    settle(old, new)
    assert sorted(old.has + [(TOPIC, p) for each in new.has.values() for p in each]) == ALL
    assert kind(world) == "consumer Stable"


def test_what_the_group_has_committed_stays_through_both_conversions(world: World) -> None:
    old = Migrant(world).stable_alone()
    world.commit(7, committer=old.committer)
    new = consumer(world, "new")
    new.join(TOPIC)
    settle(old, new)
    assert world.offset() == 7
    new.leave()
    assert kind(world) == "classic PreparingRebalance"
    world.restart()
    assert world.offset() == 7


def test_a_conversion_that_can_not_be_persisted_has_not_happened(world: World) -> None:
    first, second = Migrant(world, "a").stable_alone(), Migrant(world, "b")
    second.join()
    live = classic_group(world)
    group_log(world).fail_after = 0
    new = consumer(world, "new")
    assert code_of(new.join, TOPIC) is Code.KAFKA_STORAGE_ERROR
    group_log(world).fail_after = None
    assert classic_group(world) is live
    assert second.joined is None, "it goes on waiting"
    first.join()
    assert first.generation == second.generation == 2


def test_the_timers_of_the_classic_group_are_called_off(world: World) -> None:
    old = Migrant(world, "a").stable_alone()
    pending = Migrant(world, "b")
    pending.join_once()
    new = consumer(world, "new")
    new.join(TOPIC)
    for _ in range(4):
        world.clock.advance(SESSION_MS // 2)
        old.go_on()
        new.beat()
    assert kind(world) == "consumer Stable"
    assert len(consumer_group(world).members) == 2


def test_what_the_leader_has_not_assigned_a_static_member_brings_an_epoch_for(
    world: World,
) -> None:
    """Check that a static member with its old subscription gets the new epoch it needs."""
    Migrant(world, instance_id="one").stable_alone()
    world.topics.grow(TOPIC, 8)  # after the leader has looked
    back = consumer(world, "new", "one")
    assert back.join(TOPIC).epoch == 2
    settle(back)
    assert [len(each) for each in back.has.values()] == [8]


def test_what_the_leader_has_assigned_in_full_stays_at_its_generation(world: World) -> None:
    Migrant(world, instance_id="one").stable_alone()
    assert consumer(world, "new", "one").join(TOPIC).epoch == 1


def test_a_classic_member_has_its_own_session_time_out_from_the_conversion_on(
    world: World,
) -> None:
    Migrant(world).stable_alone()
    new = consumer(world, "new")
    new.join(TOPIC)
    world.clock.advance(SESSION_MS - 1)
    assert len(consumer_group(world).members) == 2
    world.clock.advance(1)
    assert list(consumer_group(world).members) == ["new"]


def test_members_that_are_joining_for_the_first_time_are_converted_too(world: World) -> None:
    """Check that topics are read from the offered protocols while the group has chosen none yet."""
    old = Migrant(world)
    old.join()
    assert kind(world) == "classic PreparingRebalance"
    new = consumer(world, "new")
    new.join(TOPIC)
    assert old.joined is not None
    assert old.joined.code is Code.REBALANCE_IN_PROGRESS
    old.join()
    assert old.generation == 1, "there has been none before"
    assert consumer_group(world).members[old.member_id].topics == {TOPIC}


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (MigrationPolicy(allows_upgrade=False), "because online upgrade is disabled."),
        (
            MigrationPolicy(consumer_max_size=1),
            "because the group size exceeds the consumer group maximum size.",
        ),
    ],
)
def test_a_group_that_is_not_to_be_converted_stays_as_it_is(
    world: World, policy: MigrationPolicy, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = Migrant(world, "a"), Migrant(world, "b")
    stable_group(world, a, b)
    world.policy = policy
    world.restart()
    with pytest.raises(Refused, match=why) as refused:
        consumer(world, "new").join(TOPIC)
    assert refused.value.code is Code.GROUP_ID_NOT_FOUND
    assert why in caplog.text, "clients show the code only"
    assert kind(world) == "classic Stable"
    assert a.heartbeat() is Code.NONE


def test_as_many_as_a_consumer_group_may_have_are_converted(world: World) -> None:
    world.policy = MigrationPolicy(consumer_max_size=1)
    world.restart()
    Migrant(world).stable_alone()
    consumer(world, "new").join(TOPIC)
    assert kind(world) == "consumer Reconciling"


def test_two_owners_of_one_partition_are_not_taken_over(world: World) -> None:
    """Check that a consumer group takes one owner where the classic leader assigned two."""
    a, b = Migrant(world, "a"), Migrant(world, "b")
    for member in (a, b):
        member.join()
    world.clock.advance(0)
    b.sync()
    a.sync({a: encode_assignment(ALL), b: encode_assignment(ALL[:1])})
    assert code_of(consumer(world, "new").join, TOPIC) is Code.UNKNOWN_SERVER_ERROR
    assert kind(world) == "classic Stable"


def test_partitions_of_a_topic_that_is_gone_are_nobody_s(world: World) -> None:
    old = Migrant(world)
    old.join()
    world.clock.advance(0)
    old.sync_with({old: [(TOPIC, 0), ("gone", 0)]})
    consumer(world, "new").join(TOPIC)
    (topic_id,) = consumer_group(world).members[old.member_id].assigned
    found = world.topics.by_id(topic_id)
    assert found is not None
    assert found.name == TOPIC


def test_metadata_that_nobody_can_read_keep_the_group_classic(world: World) -> None:
    stable_group(world, FakeMember(world, "a"))
    with pytest.raises(Refused, match="the embedded consumer protocol is malformed"):
        consumer(world, "new").join(TOPIC)
