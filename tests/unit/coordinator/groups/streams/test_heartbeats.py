"""Test what members of a streams group are told, and what its log says afterwards."""

from __future__ import annotations

import pytest

from coordinator.errors import Code, Refused
from coordinator.groups.streams.configure import StreamsStatusCode
from coordinator.groups.streams.effect_executor import ASSIGNOR
from coordinator.groups.streams.member_check import check_streams_group_size
from coordinator.groups.streams.record_types import StreamsGroupForgotten
from coordinator.groups.streams.state import AWAY_EPOCH, LEFT_EPOCH, StreamsGroupPhase
from coordinator.groups.streams.tasks import NO_ROLES, TaskRoles
from coordinator.groups.streams.topology import StreamsSubtopology, StreamsTopology
from coordinator.shard.decision import Decision
from tests.unit.coordinator.groups.streams.members import (
    AT_ONCE,
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    STATELESS,
    TOPOLOGY,
    FakeStreamsMember,
    find_group,
)
from tests.unit.coordinator.world import World


@pytest.fixture
def at_once(world: World) -> World:
    """Return a world whose group is assigned without a delay, on a topic of four partitions."""
    world.streams_settings[GROUP] = AT_ONCE
    world.topics.grow("words", 4)
    return world


def refusal(member: FakeStreamsMember, **fields: object) -> Code:
    with pytest.raises(Refused) as refused:
        member.send(**fields)
    return refused.value.code


def test_the_first_member_gets_every_task(at_once: World) -> None:
    member = FakeStreamsMember(at_once, "m")
    answer = member.join()
    assert (answer.epoch, member.active, answer.statuses) == (2, [0, 1, 2, 3], ())
    assert find_group(at_once).phase is StreamsGroupPhase.STABLE


def test_a_task_goes_to_another_member_only_when_it_is_given_up(at_once: World) -> None:
    first, second = FakeStreamsMember(at_once, "a"), FakeStreamsMember(at_once, "b")
    first.join()
    second.join()
    assert (second.epoch, second.active) == (3, [])
    first.beat()
    assert (first.epoch, first.active) == (2, [0, 1])
    second.beat()
    assert second.active == []  # as the first one has not said that it has given anything up
    first.beat()
    assert first.epoch == 3
    second.beat()
    assert second.active == [2, 3]
    assert find_group(at_once).phase is StreamsGroupPhase.STABLE


def test_a_member_that_does_not_revoke_in_time_is_fenced(at_once: World) -> None:
    first, second = FakeStreamsMember(at_once, "a"), FakeStreamsMember(at_once, "b")
    first.join()
    second.join()
    first.beat()
    for _ in range(REBALANCE_MS // 20_000):
        at_once.clock.advance(20_000)
        first_code = None
        second.beat()
        if "a" in find_group(at_once).members:
            first.send()  # it lives, and says nothing of its tasks
        else:
            first_code = refusal(first)
    assert first_code is Code.UNKNOWN_MEMBER_ID
    assert second.active == [0, 1, 2, 3]


def test_a_silent_member_is_fenced_when_its_session_ends(at_once: World) -> None:
    member = FakeStreamsMember(at_once, "m")
    member.join()
    at_once.clock.advance(SESSION_MS - 1)
    assert find_group(at_once).members
    at_once.clock.advance(1)
    group = find_group(at_once)
    assert (group.phase, group.epoch, group.target_epoch) == (StreamsGroupPhase.EMPTY, 3, 3)


def test_after_a_restart_members_go_on_where_they_were(at_once: World) -> None:
    first, second = FakeStreamsMember(at_once, "a"), FakeStreamsMember(at_once, "b")
    first.join()
    second.join()
    first.beat()
    before = find_group(at_once)
    at_once.restart()
    assert find_group(at_once) == before
    first.beat()
    second.beat()
    assert (first.active, second.active) == ([0, 1], [2, 3])


def test_a_lost_answer_is_given_again_to_who_owns_no_more_than_it_is_to_have(
    at_once: World,
) -> None:
    member = FakeStreamsMember(at_once, "m")
    member.join()
    FakeStreamsMember(at_once, "other").join()
    member.beat()
    kept, epoch = member.tasks, member.epoch
    assert member.beat().epoch == 3
    member.epoch = epoch
    assert member.beat().epoch == 3
    assert refusal(member, epoch=epoch, owned=None) is Code.FENCED_MEMBER_EPOCH
    more = TaskRoles(kept.active | {("0", 3)})
    assert refusal(member, epoch=epoch, owned=more) is Code.FENCED_MEMBER_EPOCH
    assert refusal(member, epoch=9, owned=kept) is Code.FENCED_MEMBER_EPOCH


def test_internal_topics_are_asked_for_until_they_are_there(at_once: World) -> None:
    member = FakeStreamsMember(at_once, "m", topology=TOPOLOGY)
    answer = member.join()
    assert member.statuses == [StreamsStatusCode.MISSING_INTERNAL_TOPICS]
    [topic] = answer.topics_to_create
    assert (topic.name, topic.partition_count) == ("counts-changelog", 4)
    assert (member.active, find_group(at_once).phase) == ([], StreamsGroupPhase.NOT_READY)
    at_once.topics.create("counts-changelog", 4)
    answer = member.beat()
    assert (answer.statuses, answer.topics_to_create, member.active) == ((), (), [0, 1, 2, 3])


def test_an_internal_topic_with_other_partitions_is_told(at_once: World) -> None:
    at_once.topics.create("counts-changelog", 3)
    member = FakeStreamsMember(at_once, "m", topology=TOPOLOGY)
    [status] = member.join().statuses
    assert status.code is StreamsStatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert status.detail == (
        "Existing topic counts-changelog has different number of partitions: expected 4, found 3"
    )


def test_a_deleted_source_topic_takes_all_tasks_away(at_once: World) -> None:
    member = FakeStreamsMember(at_once, "m")
    member.join()
    at_once.topics.delete("words")
    [status] = member.beat().statuses
    assert status.code is StreamsStatusCode.MISSING_SOURCE_TOPICS
    assert (member.active, find_group(at_once).phase) == ([], StreamsGroupPhase.NOT_READY)


def test_the_initial_delay_lets_members_that_start_together_share_the_tasks(world: World) -> None:
    world.topics.grow("words", 4)
    first, second = FakeStreamsMember(world, "a"), FakeStreamsMember(world, "b")
    first.join()
    assert (first.epoch, first.statuses) == (1, [StreamsStatusCode.ASSIGNMENT_DELAYED])
    world.clock.advance(1_000)
    second.join()
    assert (second.epoch, second.active) == (1, [])
    world.clock.advance(2_000)
    first.beat()
    second.beat()
    assert (first.epoch, second.epoch) == (3, 3)
    assert sorted((first.active, second.active)) == [[0, 2], [1, 3]]


def count_targets(world: World) -> int:
    """Return how many target assignments were computed for the group."""
    shard = world.groups.shards[world.groups.partition_of(GROUP)]
    counters = shard.assignor_counters.get(ASSIGNOR)
    return 0 if counters is None else counters.times.count


def test_members_that_join_at_once_make_one_assignment(world: World) -> None:
    members = [FakeStreamsMember(world, f"m-{number}") for number in range(50)]
    for member in members:
        member.join()
    assert count_targets(world) == 0
    world.clock.advance(3_000)
    for member in members:
        member.beat()
    assert count_targets(world) == 1
    assert find_group(world).phase is StreamsGroupPhase.STABLE
    late = [FakeStreamsMember(world, f"late-{number}") for number in range(50)]
    world.clock.advance(500)  # half of the assignment interval
    for member in late:
        member.join()
    assert count_targets(world) == 1
    world.clock.advance(500)
    for member in (*members, *late):
        member.beat()
    assert count_targets(world) == 2


def test_the_assignment_interval_delays_the_next_target(world: World) -> None:
    first, second = FakeStreamsMember(world, "a"), FakeStreamsMember(world, "b")
    first.join()
    world.clock.advance(3_000)
    first.beat()
    second.join()
    assert second.statuses == [StreamsStatusCode.ASSIGNMENT_DELAYED]
    assert find_group(world).phase is StreamsGroupPhase.ASSIGNING
    world.clock.advance(1_000)
    second.beat()
    assert (second.epoch, second.statuses) == (find_group(world).epoch, [])


def test_standby_tasks_are_on_other_processes_than_their_active_task(at_once: World) -> None:
    at_once.streams_settings[GROUP] = AT_ONCE.__class__(
        initial_rebalance_delay_ms=0, assignment_interval_ms=0, num_standby_replicas=1
    )
    at_once.topics.create("counts-changelog", 4)
    members = [
        FakeStreamsMember(at_once, f"m{i}", f"p{i // 2}", topology=TOPOLOGY) for i in range(4)
    ]
    for member in members:
        member.join()
    for _ in range(4):
        for member in members:
            member.beat()
    assert find_group(at_once).phase is StreamsGroupPhase.STABLE
    for process in (members[:2], members[2:]):
        active = {task for member in process for task in member.tasks.active}
        standby = {task for member in process for task in member.tasks.standby}
        assert (len(active), len(standby), active & standby) == (2, 2, set())


def test_a_changed_setting_brings_the_next_epoch(at_once: World) -> None:
    member = FakeStreamsMember(at_once, "m")
    member.join()
    at_once.streams_settings[GROUP] = AT_ONCE.__class__(
        initial_rebalance_delay_ms=0, assignment_interval_ms=0, num_standby_replicas=1
    )
    assert member.beat().epoch == 3
    assert member.beat().epoch == 3


def test_an_older_topology_is_told_and_another_one_is_refused(at_once: World) -> None:
    FakeStreamsMember(at_once, "a").join()
    older = FakeStreamsMember(at_once, "b", topology=StreamsTopology(0, STATELESS.subtopologies))
    older.join()
    assert older.statuses == [StreamsStatusCode.STALE_TOPOLOGY]
    for other in (
        StreamsTopology(2, STATELESS.subtopologies),
        StreamsTopology(1, (StreamsSubtopology("0", ("lines",)),)),
    ):
        with pytest.raises(Refused, match="Topology updates are not supported yet"):
            FakeStreamsMember(at_once, "c", topology=other).join()


def test_a_task_that_the_topology_does_not_have_is_refused(at_once: World) -> None:
    member = FakeStreamsMember(at_once, "m")
    member.join()
    for task in (("0", 4), ("1", 0)):
        owned = TaskRoles(frozenset({task}))
        assert refusal(member, owned=owned) is Code.INVALID_REQUEST


def test_topics_that_a_refused_heartbeat_has_found_are_described_once_the_log_grows(
    at_once: World,
) -> None:
    """Kafka describes a group as of the last record of its partition, whichever group's it is."""
    member = FakeStreamsMember(at_once, "m", topology=TOPOLOGY)
    [changelog] = member.join().topics_to_create
    at_once.topics.create(changelog.name, changelog.partition_count)

    def described_partition_count() -> int:
        described = at_once.groups.streams.describe_group(GROUP)
        return described.subtopologies["0"].changelog_topics[0].partition_count

    unknown_task = TaskRoles(frozenset({("2", 0)}))
    assert refusal(member, owned=unknown_task) is Code.INVALID_REQUEST
    assert described_partition_count() == 0
    log = at_once.groups.shards[at_once.groups.partition_of(GROUP)].log
    log.execute_decision(Decision([StreamsGroupForgotten("another group")], None))
    assert described_partition_count() == 4
    member.beat()
    assert described_partition_count() == 4


def test_a_static_member_keeps_its_tasks_while_it_is_away(at_once: World) -> None:
    member = FakeStreamsMember(at_once, "m", instance_id="i")
    other = FakeStreamsMember(at_once, "other")
    member.join()
    other.join()
    member.beat()
    member.beat()
    other.beat()
    assert other.active == [2, 3]
    member.send(epoch=AWAY_EPOCH)
    again = FakeStreamsMember(at_once, "m-2", "p-m", instance_id="i")
    again.join()
    assert again.active == [0, 1]
    assert refusal(member, epoch=3, owned=NO_ROLES) is Code.FENCED_INSTANCE_ID
    taken = FakeStreamsMember(at_once, "m-3", instance_id="i")
    with pytest.raises(Refused) as refused:
        taken.join()
    assert refused.value.code is Code.UNRELEASED_INSTANCE_ID


def test_the_last_member_that_leaves_leaves_an_empty_group(at_once: World) -> None:
    member = FakeStreamsMember(at_once, "m")
    member.join()
    member.send(epoch=LEFT_EPOCH)
    assert find_group(at_once).phase is StreamsGroupPhase.EMPTY
    assert at_once.group_log().end_offset
    at_once.restart()
    assert find_group(at_once).members == {}


def test_a_shutdown_is_told_to_every_member_until_all_have_left(at_once: World) -> None:
    first, second = FakeStreamsMember(at_once, "a"), FakeStreamsMember(at_once, "b")
    first.join()
    second.join()
    first.beat(shutdown_application=True)
    second.beat()
    assert second.statuses == [StreamsStatusCode.SHUTDOWN_APPLICATION]
    first.send(epoch=LEFT_EPOCH)
    second.send(epoch=LEFT_EPOCH)
    second.join()
    assert second.statuses == []


def test_endpoints_are_told_to_who_does_not_know_them(at_once: World) -> None:
    first, second = FakeStreamsMember(at_once, "a"), FakeStreamsMember(at_once, "b")
    first.join()
    answer = first.beat(endpoint=("h", 7))
    assert answer.endpoint_epoch == 1
    [endpoint] = answer.endpoints or ()
    assert (endpoint.endpoint, endpoint.active) == (("h", 7), [("words", [0, 1, 2, 3])])
    assert first.beat(endpoint_epoch=1).endpoints is None
    second.join()
    assert second.answer.endpoints is not None


def test_a_full_group_takes_no_more_members(at_once: World) -> None:
    FakeStreamsMember(at_once, "m", instance_id="i").join()
    group = find_group(at_once)
    check_streams_group_size(group, "m", None, 1)  # it is in the group
    check_streams_group_size(group, "n", "i", 1)  # it takes the place of the one that is there
    with pytest.raises(Refused, match="maximum capacity of 1 members"):
        check_streams_group_size(group, "n", None, 1)


def test_a_log_that_refuses_changes_nothing(at_once: World) -> None:
    member = FakeStreamsMember(at_once, "m")
    member.join()
    before = repr(find_group(at_once))
    at_once.group_log(GROUP).fail_after = 0
    with pytest.raises(Refused):
        FakeStreamsMember(at_once, "n").join()
    assert repr(find_group(at_once)) == before
