"""Test the heartbeat responses and timeouts of classic members in a consumer group."""

from __future__ import annotations

from coordinator.errors import Code
from tests.unit.coordinator.groups.classic.members import REBALANCE_MS, SESSION_MS
from tests.unit.coordinator.groups.consumer.members import Consumer
from tests.unit.coordinator.groups.migration.migrants import (
    ALL,
    TOPIC,
    Migrant,
    consumer,
    consumer_group,
    settle,
)
from tests.unit.coordinator.metrics.test_coordinator_figures import figures
from tests.unit.coordinator.world import World, code_of


def group_of_one(world: World) -> Consumer:
    new = consumer(world, "new")
    new.join(TOPIC)
    new.beat()
    return new


def pass_time(world: World, ms: int, *members: Migrant | Consumer) -> list[Code]:
    """Send only heartbeats for so long; return the codes that classic members get."""
    found = []
    for _ in range(0, ms, SESSION_MS // 2):
        for member in members:
            if isinstance(member, Consumer):
                member.beat()
            else:
                found.append(member.heartbeat())
        world.clock.advance(SESSION_MS // 2)
    return found


def test_a_member_that_waits_for_others_is_left_alone_until_all_of_it_is_free(
    world: World,
) -> None:
    new = group_of_one(world)
    old = Migrant(world)
    old.join()
    old.take()
    assert (old.has, old.heartbeat()) == ([], Code.NONE)
    new.beat()  # its response revokes three of them
    assert old.heartbeat() is Code.NONE
    new.beat()  # and has
    assert old.heartbeat() is Code.REBALANCE_IN_PROGRESS
    old.join()
    old.take()
    assert len(old.has) == 3
    assert old.heartbeat() is Code.NONE


def test_what_a_member_has_itself_is_not_waited_for(world: World) -> None:
    new = group_of_one(world)
    old = Migrant(world, topics=("words",))
    old.join()
    old.take()
    assert [topic for topic, _ in old.has] == ["words", "words"]
    old.topics = ("words", TOPIC)
    old.join()
    old.take()
    assert (len(old.has), old.heartbeat()) == (2, Code.NONE)
    new.beat()  # its response revokes some of them
    assert old.heartbeat() is Code.NONE
    new.beat()  # and has
    assert old.heartbeat() is Code.REBALANCE_IN_PROGRESS


def test_a_protocol_has_to_be_every_classic_member_s(world: World) -> None:
    group_of_one(world)
    Migrant(world, "both", protocols=("range", "roundrobin")).join()
    Migrant(world, "range").join()
    other = Migrant(world, "other", protocols=("roundrobin",))
    other.join()
    assert other.joined is not None
    assert other.joined.code is Code.INCONSISTENT_GROUP_PROTOCOL
    Migrant(world, "more", protocols=("roundrobin", "range")).join()
    assert len(consumer_group(world).members) == 4


def test_a_static_consumer_that_comes_back_as_a_classic_member_has_no_expression_any_more(
    world: World,
) -> None:
    group_of_one(world)
    with_regex = consumer(world, "regex", "one")
    with_regex.join(TOPIC, regex="w.*")
    back = Migrant(world, "back", instance_id="one")
    back.join()
    known = consumer_group(world).members[back.member_id]
    assert (known.regex, set(known.topics)) == ("", {TOPIC})
    assert consumer_group(world).regex_subscriber_counts == {}


def test_a_member_that_has_to_give_something_up_takes_what_it_keeps_and_joins_again(
    world: World,
) -> None:
    old = Migrant(world).stable_alone()
    consumer(world, "new").join(TOPIC)
    assert old.heartbeat() is Code.REBALANCE_IN_PROGRESS
    old.join()
    assert old.generation == 1, "it has not got to the next epoch yet"
    old.take()
    assert old.heartbeat() is Code.REBALANCE_IN_PROGRESS
    old.join()
    assert old.generation == 2
    assert old.heartbeat() is Code.NONE


def test_from_the_first_27_on_a_member_has_its_rebalance_time_out_to_join(world: World) -> None:
    old = Migrant(world).stable_alone()
    new = consumer(world, "new")
    new.join(TOPIC)
    codes = pass_time(world, REBALANCE_MS, old, new)
    assert set(codes) == {Code.REBALANCE_IN_PROGRESS}
    assert old.heartbeat() is Code.UNKNOWN_MEMBER_ID
    assert list(consumer_group(world).members) == ["new"]


def test_what_a_member_has_to_give_up_gives_it_no_less_time_to_join(world: World) -> None:
    """Check that the time to join begins with REBALANCE_IN_PROGRESS, not with the revoking join."""
    old = Migrant(world).stable_alone()
    new = consumer(world, "new")
    new.join(TOPIC)
    old.join()
    old.take()
    world.clock.advance(SESSION_MS - 1)
    new.beat()
    assert old.heartbeat() is Code.REBALANCE_IN_PROGRESS
    pass_time(world, REBALANCE_MS - SESSION_MS // 2, old, new)
    assert old.heartbeat() is Code.REBALANCE_IN_PROGRESS
    pass_time(world, SESSION_MS, old, new)
    assert old.heartbeat() is Code.UNKNOWN_MEMBER_ID


def test_who_has_joined_again_has_that_time_anew(world: World) -> None:
    old = Migrant(world).stable_alone()
    new = consumer(world, "new")
    new.join(TOPIC)
    pass_time(world, REBALANCE_MS - SESSION_MS, old, new)
    settle(old, new)
    assert set(pass_time(world, 2 * REBALANCE_MS, old, new)) == {Code.NONE}


def test_a_sync_that_is_told_27_counts_as_being_told(world: World) -> None:
    new = group_of_one(world)
    old = Migrant(world)
    old.join()
    old.take()
    settle(old, new)
    world.clock.advance(1_000)
    consumer(world, "third").join(TOPIC)
    old.sync()
    assert old.synced is not None
    assert old.synced.code is Code.REBALANCE_IN_PROGRESS
    pass_time(world, REBALANCE_MS, old, new)
    assert old.heartbeat() is Code.UNKNOWN_MEMBER_ID


def test_who_joins_and_never_syncs_is_out_after_its_rebalance_time_out(world: World) -> None:
    new = group_of_one(world)
    old = Migrant(world)
    old.join()
    pass_time(world, REBALANCE_MS, old, new)
    assert old.heartbeat() is Code.UNKNOWN_MEMBER_ID


def test_who_goes_over_to_the_consumer_protocol_has_nothing_to_join_or_sync_any_more(
    world: World,
) -> None:
    """Check that a static member may come back with the other protocol and the member id it had."""
    old = Migrant(world, instance_id="one").stable_alone()
    new = consumer(world, "new")
    new.join(TOPIC)
    assert old.heartbeat() is Code.REBALANCE_IN_PROGRESS
    old.join()
    assert old.heartbeat() is Code.REBALANCE_IN_PROGRESS
    changed = consumer(world, old.member_id, "one")
    changed.join(TOPIC)
    pass_time(world, 2 * REBALANCE_MS, new, changed)
    assert len(consumer_group(world).members) == 2


def test_a_join_that_can_not_be_persisted_changes_nothing(world: World) -> None:
    new = group_of_one(world)
    for log in world.group_logs:
        log.fail_after = 0
    assert code_of(Migrant(world, "a", instance_id="one").join_once) is Code.KAFKA_STORAGE_ERROR
    for log in world.group_logs:
        log.fail_after = None
    assert list(consumer_group(world).members) == ["new"]
    assert sorted(p for each in new.has.values() for p in each) == [p for _, p in ALL]


def test_a_group_s_changes_are_counted_by_what_they_are_for(world: World) -> None:
    old = Migrant(world).stable_alone()
    new = consumer(world, "new")
    new.join(TOPIC)
    settle(old, new)
    old.leave()
    world.clock.advance(1_000)
    new.beat()
    old.join()
    pass_time(world, REBALANCE_MS, new, old)
    causes = {
        key[3]: value
        for key, value in figures(world).items()
        if key[0] == "millrace_group_rebalances_total" and key[2] == "consumer"
    }
    assert causes == {"join": 2, "leave": 1, "sync": 1}
