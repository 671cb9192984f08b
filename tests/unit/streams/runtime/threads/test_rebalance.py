"""Test that tasks go on while their member joins, and what an assignment does to each of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams.common.topic_partitions import Partition
from streams.errors import GenerationOver, OutcomeUnknown, TaskMigrated
from streams.membership.group_member import MembershipSignal
from streams.membership.protocol import AssignmentInfo, EndpointTasks
from streams.runtime.clients import encode_group_metadata
from streams.runtime.threads.thread_state import ThreadState
from streams.testing.cluster import InMemoryTransaction
from tests.unit.streams.runtime.fakes import FakeProducer
from tests.unit.streams.runtime.world import (
    World,
    assign_partitions,
    build_counting_topology,
    build_mapping_topology,
)

BOTH = assign_partitions(0, 1)
REVOKED = assign_partitions(0)._replace(revoked=("0_1",))


def two_tasks(path: Path, **given: object) -> World:
    return World(build_mapping_topology(str.upper), path, partitions=2, **given)  # type: ignore[arg-type]


def run_steps(world: World, *steps: Callable[[], bool]) -> None:
    """Run the loop until each step in turn has returned True, one look a turn."""
    left = list(steps)

    def next_step() -> bool:
        if left and left[0]():
            left.pop(0)
        return not left

    world.run_until(next_step)


def commit_positions(world: World) -> bool:
    """Commit where the tasks begin, so that the commits to come are those of a test."""
    world.loop.commit_now()
    return True


def start_rebalance(world: World, assigned: AssignmentInfo, *, generations: int = 1) -> bool:
    """Let the group rebalance, and keep the answer to the join back."""
    world.member.answers_joins = False
    world.member.signalled = MembershipSignal.REBALANCE
    world.member.assign(assigned, generations=generations)
    return True


def answer_join(world: World, *values: str, partition: int = 1) -> bool:
    """Let the join be answered, after more records were loaded that nobody has processed."""
    world.load(*values, partition=partition)
    world.member.answers_joins = True
    return True


def load_records(world: World, *values: str) -> bool:
    """Load records that the second task reads."""
    world.load(*values, partition=1)
    return True


def outputs(world: World) -> list[str]:
    return [(value or b"").decode() for _, value in world.kafka.committed("out")]


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once"])
def test_tasks_go_on_and_are_committed_while_their_member_joins(
    tmp_path: Path, guarantee: str
) -> None:
    world = two_tasks(tmp_path, guarantee=guarantee)
    world.load("a")
    generations: list[int] = []

    def committed_while_joining() -> bool:
        generations.append(world.member.current_membership.generation)
        return world.member.is_joining and world.consumed(0)

    def loaded() -> bool:
        world.load("b")
        return True

    run_steps(
        world,
        lambda: world.consumed(0),
        lambda: start_rebalance(world, BOTH),
        loaded,
        committed_while_joining,
        lambda: answer_join(world),
        lambda: not world.member.is_joining,
    )
    assert outputs(world) == ["A", "B"]
    assert set(generations) == {1}
    assert world.script.calls.count("consumer.add_partitions") == 1, "nothing began anew"


def test_nothing_is_committed_from_the_answer_to_the_join_to_the_assignment(
    tmp_path: Path,
) -> None:
    world = two_tasks(tmp_path)
    turns: list[int] = []

    def answered_without_assignment() -> bool:
        world.member.generation_is_over = True
        world.load("a")
        return True

    def ten_turns_later() -> bool:
        turns.append(world.loop.counters.records)
        assert not world.consumed(0)
        return len(turns) == 10

    run_steps(
        world,
        lambda: bool(world.consumer.assigned),
        lambda: start_rebalance(world, BOTH),
        answered_without_assignment,
        ten_turns_later,
        lambda: answer_join(world),
        lambda: world.consumed(0),
    )
    assert turns[-1] == 1, "records are processed all the same"
    assert outputs(world) == ["A"]


@pytest.mark.parametrize(
    ("assigned", "generations", "committed_in"),
    [
        (BOTH, 1, 2),
        (REVOKED, 1, 2),
        (BOTH, 2, 1),  # another may have run them in between
        (assign_partitions(0), 1, 1),  # one isn't ours any more
    ],
)
def test_a_commit_under_way_enters_the_generation_that_begins_if_its_tasks_are_kept(
    tmp_path: Path, assigned: AssignmentInfo, generations: int, committed_in: int
) -> None:
    world = two_tasks(tmp_path)
    sent: list[bytes] = []

    def begin_generation_at_flush() -> bool:
        (producer,) = world.producers
        flush, send = producer.flush, producer.send_offsets_to_transaction

        def flush_and_begin() -> None:
            flush()
            world.member.generation_is_over = True

        def send_and_record(offsets: Any, group_metadata: bytes, limit_s: float = math.inf) -> None:
            sent.append(group_metadata)
            send(offsets, group_metadata, limit_s)

        producer.flush = flush_and_begin  # type: ignore[method-assign]
        producer.send_offsets_to_transaction = send_and_record  # type: ignore[method-assign]
        return start_rebalance(world, assigned, generations=generations)

    run_steps(
        world,
        lambda: len(world.consumer.assigned) == 2 and commit_positions(world),
        begin_generation_at_flush,
        lambda: world.member.is_joining and load_records(world, "a"),
        lambda: bool(sent),
    )
    assert sent == [encode_group_metadata("a", committed_in, "member-1", "worker-0")]


def test_revoked_tasks_are_committed_with_all_others_and_the_member_joins_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    world = two_tasks(tmp_path, commit_every_ms=3_600_000)

    def loaded() -> bool:
        world.load("a", partition=0)
        world.load("b", partition=1)
        return True

    def revoked() -> bool:
        if not world.member.is_joining:
            assert world.consumer.assigned == {Partition("in", 0)}
            world.directory.lock_task("0_1").release()  # the next owner can lock it
            world.member.assign(assign_partitions(0))
        return not world.member.is_joining

    run_steps(
        world,
        lambda: bool(world.consumer.assigned) and commit_positions(world),
        lambda: start_rebalance(world, REVOKED),
        lambda: world.member.is_joining and loaded(),
        lambda: len(world.consumer.taken) == 2 and answer_join(world),
        revoked,
        lambda: len(world.member.subscribed) == 3,
        # One commit more would mean that the revoked task was committed by itself.
        lambda: world.consumed(0) and world.consumed(1),
    )
    claims = [(each.tasks, each.generation) for each in world.member.subscriptions]
    assert claims == [((), -1), (("0_0", "0_1"), 1), (("0_0",), 2)]
    assert world.loop.counters.commits == 2, "the first one of where the tasks begin"
    assert sum(line.endswith(" gives up tasks 0_1") for line in caplog.messages) == 1
    assert world.loop.counters.recoveries == 0
    assert sorted(outputs(world)) == ["A", "B"]


def test_a_task_that_is_gone_without_being_revoked_is_closed_without_a_commit(
    tmp_path: Path,
) -> None:
    """Test a leader that has lost track of an owner: another member may have begun already."""
    world = two_tasks(tmp_path, commit_every_ms=3_600_000)

    def loaded() -> bool:
        world.load("a", partition=0)
        world.load("b", partition=1)
        return True

    run_steps(
        world,
        lambda: bool(world.consumer.assigned),
        lambda: start_rebalance(world, assign_partitions(0)),
        lambda: world.member.is_joining and loaded(),
        lambda: len(world.consumer.taken) == 2 and answer_join(world),
        lambda: len(world.consumer.taken) == 3,  # the one that stays is rolled back: read again
    )
    assert outputs(world) == ["A"]
    assert not world.consumed(1)
    assert len(world.member.subscribed) == 2, "there is nothing to join again for"


def test_a_moved_position_of_a_task_that_is_gone_without_being_revoked_is_not_committed(
    tmp_path: Path,
) -> None:
    """Test that a position is not set back which another member has committed meanwhile."""
    world = two_tasks(tmp_path, commit_every_ms=3_600_000)

    def move_position() -> bool:
        aborted = InMemoryTransaction()
        world.kafka.append_record(Partition("in", 1), b"k", b"x", 1, transaction=aborted)
        world.kafka.end_transaction(aborted, committed=False)
        return True

    def is_read_for_long() -> bool:
        moved = world.consumer.next_offsets([Partition("in", 1)]) == {Partition("in", 1): 2}
        if moved:
            world.clock.elapsed_s += 60
        return moved and answer_join(world, partition=0)

    run_steps(
        world,
        lambda: bool(world.consumer.assigned) and commit_positions(world),
        lambda: start_rebalance(world, assign_partitions(0)),
        lambda: world.member.is_joining and move_position(),
        is_read_for_long,
        lambda: not world.member.is_joining,
    )
    assert world.kafka.committed_offsets[Partition("in", 1)].offset == 0


def test_a_missed_generation_rolls_back_before_anything_is_committed(tmp_path: Path) -> None:
    world = two_tasks(tmp_path, commit_every_ms=3_600_000)

    def loaded() -> bool:
        world.load("a", partition=0)
        world.load("b", partition=1)
        return True

    run_steps(
        world,
        lambda: bool(world.consumer.assigned),
        lambda: start_rebalance(world, REVOKED, generations=2),
        lambda: world.member.is_joining and loaded(),
        lambda: len(world.consumer.taken) == 2 and answer_join(world),
        lambda: len(world.consumer.taken) == 3,
    )
    assert outputs(world) == ["A"], "what was revoked is closed without a commit"


def test_a_tasks_own_producer_is_made_anew_after_a_missed_generation(tmp_path: Path) -> None:
    """Test that whoever had the task in that generation, and fenced its producer, does no harm."""
    world = two_tasks(tmp_path, guarantee="exactly_once")
    world.load("a", partition=0)
    former: list[FakeProducer] = []

    def fence_both() -> bool:
        former.extend(world.producers)
        for producer in former:
            assert FakeProducer(world.kafka, world.script, name=producer.name).try_abort_and_close()
        return start_rebalance(world, BOTH, generations=2)

    run_steps(
        world,
        lambda: world.consumed(0) and commit_positions(world),
        fence_both,
        lambda: world.member.is_joining and answer_join(world, "b"),
        lambda: world.consumed(1),
    )
    assert outputs(world) == ["A", "B"]
    assert [producer.discarded for producer in former] == [True, True]
    assert (world.loop.counters.recoveries, len(world.member.subscriptions)) == (0, 2)


def test_a_member_that_runs_nothing_of_what_it_is_to_revoke_joins_again_with_another_subscription(
    tmp_path: Path,
) -> None:
    """Test a static member that came back, which gets its stored assignment (KIP-345).

    The coordinator would answer an equal subscription with the same assignment again.
    """
    world = two_tasks(tmp_path)
    world.member.assign(AssignmentInfo((), (), revoked=("0_1",)))

    def taken() -> bool:
        if is_taken := len(world.member.subscribed) == 1:
            world.member.assign(BOTH)
        return is_taken

    run_steps(world, taken, lambda: len(world.consumer.assigned) == 2)
    first, second = world.member.subscriptions
    assert (first.tasks, second.tasks) == ((), ())
    assert first != second


@pytest.mark.parametrize("told", ["former:1", "mine:1"])
def test_a_member_that_the_group_knows_by_a_former_endpoint_joins_once_more(
    tmp_path: Path, told: str
) -> None:
    world = two_tasks(tmp_path, endpoint="mine:1")
    world.member.assign(BOTH._replace(endpoints={told: EndpointTasks(BOTH.tasks)}))
    turns: list[int] = []

    def has_settled() -> bool:
        turns.append(1)
        return len(turns) > 10 and len(world.consumer.assigned) == 2

    run_steps(world, has_settled)
    subscriptions = world.member.subscriptions
    assert {each.endpoint for each in subscriptions} == {"mine:1"}
    assert len(subscriptions) == (2 if told == "former:1" else 1)


def test_a_refused_generation_while_the_member_joins_keeps_the_tasks(tmp_path: Path) -> None:
    world = two_tasks(tmp_path)
    waited_s = world.clock.elapsed_s

    def refuse_next_commit() -> bool:
        world.script.fail("producer.send_offsets_to_transaction", GenerationOver("2"))
        world.load("a")
        return True

    run_steps(
        world,
        lambda: bool(world.consumer.assigned),
        lambda: start_rebalance(world, BOTH),
        lambda: world.member.is_joining and refuse_next_commit(),
        lambda: world.loop.counters.recoveries == 1,
        lambda: set(world.loop.tasks) == {"0_0", "0_1"} and answer_join(world),
        lambda: world.consumed(0),
    )
    assert outputs(world) == ["A"]
    assert world.member.subscribed == [(), ("0_0", "0_1")]
    assert world.clock.elapsed_s - waited_s < 0.5, "there is no back-off"


def test_a_refused_generation_without_a_join_is_a_lost_membership(tmp_path: Path) -> None:
    world = two_tasks(tmp_path)
    world.script.fail("producer.send_offsets_to_transaction", GenerationOver("2"))
    world.load("a")
    world.run_until(lambda: world.consumed(0))
    assert world.member.subscribed == [(), ()]
    assert world.member.former == [(), ("0_0", "0_1")]
    assert outputs(world) == ["A"]


def test_tasks_that_a_recovery_has_closed_are_not_claimed(tmp_path: Path) -> None:
    world = two_tasks(tmp_path)
    world.script.fail("producer.commit_transaction", TaskMigrated("fenced"))
    world.load("a")
    world.run_until(lambda: world.consumed(0))
    claims = [(each.tasks, each.generation) for each in world.member.subscriptions]
    assert claims == [((), -1), ((), -1)]


def test_a_failed_join_is_repeated_with_the_claim_that_the_member_had(tmp_path: Path) -> None:
    world = two_tasks(tmp_path)

    def fail_join() -> bool:
        world.script.fail(
            "member.enter_assigned_generation", OutcomeUnknown("no broker answers"), after=True
        )
        return start_rebalance(world, BOTH) and answer_join(world)

    run_steps(
        world,
        lambda: bool(world.consumer.assigned),
        fail_join,
        lambda: len(world.member.subscribed) == 3 and not world.member.is_joining,
        lambda: bool(world.consumer.assigned),
    )
    claims = [(each.tasks, each.generation) for each in world.member.subscriptions]
    assert claims == [((), -1), (("0_0", "0_1"), 1), (("0_0", "0_1"), 1)]


def test_at_least_once_nothing_is_committed_while_the_member_joins(tmp_path: Path) -> None:
    world = two_tasks(tmp_path, guarantee="at_least_once")
    turns: list[int] = []

    def loaded() -> bool:
        world.load("b")
        return True

    def ten_turns_later() -> bool:
        turns.append(world.loop.counters.records)
        assert not world.consumed(0)
        return len(turns) == 10

    world.load("a")
    run_steps(
        world,
        lambda: world.consumed(0),
        lambda: start_rebalance(world, BOTH),
        lambda: world.member.is_joining and loaded(),
        ten_turns_later,
        lambda: answer_join(world),
        lambda: world.consumed(0),
    )
    assert turns[-1] == 2


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_all_is_committed_before_the_member_joins(tmp_path: Path, guarantee: str) -> None:
    world = two_tasks(tmp_path, guarantee=guarantee, commit_every_ms=3_600_000)

    def loaded() -> bool:
        world.load("a")
        return True

    def committed_before() -> bool:
        return world.member.is_joining and world.consumed(0)

    run_steps(
        world,
        lambda: bool(world.consumer.assigned),
        loaded,
        lambda: bool(world.consumer.taken) and start_rebalance(world, BOTH),
        committed_before,
    )


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_a_stop_commits_while_the_member_joins(tmp_path: Path, guarantee: str) -> None:
    world = two_tasks(tmp_path, guarantee=guarantee, commit_every_ms=3_600_000)

    def loaded() -> bool:
        world.load("a")
        return True

    run_steps(
        world,
        lambda: bool(world.consumer.assigned),
        lambda: start_rebalance(world, BOTH),
        lambda: world.member.is_joining and loaded(),
        lambda: bool(world.consumer.taken),
    )
    assert world.consumed(0)


def test_uncommitted_memory_that_is_full_stops_the_tasks_until_they_can_be_committed(
    tmp_path: Path,
) -> None:
    world = World(build_counting_topology(), tmp_path, uncommitted_bytes_max=0)
    turns: list[int] = []

    def over() -> bool:
        world.member.generation_is_over = True
        world.load("a")
        return True

    def loaded_more() -> bool:
        world.load("b")
        return True

    def ten_turns_later() -> bool:
        turns.append(world.loop.counters.records)
        return len(turns) == 10

    run_steps(
        world,
        lambda: bool(world.consumer.assigned),
        lambda: start_rebalance(world, assign_partitions(0)),
        lambda: world.member.is_joining and over(),
        lambda: bool(world.consumer.taken),
        loaded_more,
        ten_turns_later,
        lambda: answer_join(world, partition=0),
        world.consumed,
    )
    assert turns[-1] == 1


def test_no_transaction_is_committed_without_a_generation(tmp_path: Path) -> None:
    """Check what a group that has lost all of its members would accept."""
    world = two_tasks(tmp_path)
    world.run_until(lambda: bool(world.loop.tasks))
    world.member.lose_membership()
    with pytest.raises(TaskMigrated, match="no member"):
        world.loop._group_metadata()


def test_a_group_without_tasks_is_rebalancing_until_it_has_some(tmp_path: Path) -> None:
    world = two_tasks(tmp_path)

    def lose_topic() -> bool:
        world.member.unready = "a topic is missing"
        return start_rebalance(world, assign_partitions()) and answer_join(world)

    def is_reported() -> bool:
        return not world.loop.tasks and world.states[-1] is ThreadState.REBALANCING

    def find_topic() -> bool:
        world.member.unready = ""
        return True

    def is_running() -> bool:
        return world.states[-1] is ThreadState.RUNNING

    run_steps(world, lambda: commit_positions(world), lose_topic, is_reported)
    run_steps(world, find_topic, is_running)
