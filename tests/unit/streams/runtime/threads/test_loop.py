"""Test the loop without failures: joins, tasks that come and go, commits, states, and the stop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from state.rocksdb import RocksDisk
from state.write_behind import WAITING_S_MAX, WriteBehindDisk
from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown
from streams.membership.group_member import MembershipSignal
from streams.membership.protocol import AssignmentInfo
from streams.runtime.threads.commit import CommitStep
from tests.unit.streams.runtime.world import (
    World,
    assign_partitions,
    block_restore,
    build_counting_topology,
    build_mapping_topology,
    build_one_task_topology,
)


def rebalance_once(
    world: World, when: Callable[[], bool], assigned: AssignmentInfo, *, generations: int = 1
) -> Callable[[], bool]:
    """Return a condition that starts a rebalance when `when` holds, and is true once it is over."""

    def rebalanced() -> bool:
        if len(world.member.subscribed) == 1 and when():
            world.member.signalled = MembershipSignal.REBALANCE
            world.member.assign(assigned, generations=generations)
        return len(world.member.subscribed) == 2

    return rebalanced


def test_every_record_is_processed_once_and_committed(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, partitions=2)
    world.load("1", "2", "3", partition=0)
    world.load("1", key="other", partition=1)
    world.run_until(lambda: world.consumed(0) and world.consumed(1))
    assert world.read_counts() == {"k": [3], "other": [1]}
    assert world.loop.counters.records == 4


def test_a_task_has_its_producer_before_its_offsets_are_read(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.load("1")
    world.run_until(world.consumed)
    names = [
        "member.enter_assigned_generation",
        "producer.init",
        "member.fetch_committed_offsets",
        "member.fetch_committed_offsets",  # all of the group's, as there is none of the task's
        "consumer.add_partitions",
    ]
    assert world.script.filter_calls(*names) == names


def test_a_thread_without_tasks_waits_for_some(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.member.assign(AssignmentInfo((), ()))
    began_s = world.clock.elapsed_s
    world.run_until(lambda: world.clock.elapsed_s > began_s + 1)
    assert world.states[-1] == "RUNNING"
    assert "consumer.poll_records" not in world.script.calls


def test_a_commit_waits_for_its_interval(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, commit_every_ms=1_000)
    world.run_until(lambda: loaded_and_taken(world) and bool(world.steps))
    # The interval began with the previous commit, which was due when the thread started.
    assert 1_001 <= world.clock.elapsed_s <= 1_002


def loaded_and_taken(world: World) -> bool:
    """Load a record as soon as a task runs, and return whether it has been polled."""
    if world.consumer.assigned and not world.kafka.logs[Partition("in", 0)].entries:
        world.load("1")
    return bool(world.consumer.taken)


def test_tasks_are_kept_across_consecutive_generations(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.load("1")
    world.run_until(rebalance_once(world, world.consumed, assign_partitions(0)))
    assert world.member.subscribed == [(), ("0_0",)]
    assert world.script.calls.count("consumer.add_partitions") == 1
    # The only removal is at the end.
    assert world.script.calls.count("consumer.remove_partitions") == 1


def test_tasks_are_read_back_when_a_generation_was_missed(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.load("1")
    rebalanced = rebalance_once(world, world.consumed, assign_partitions(0), generations=2)
    world.run_until(
        lambda: rebalanced() and world.script.calls.count("consumer.add_partitions") == 2
    )
    calls = world.script.calls
    rejoin = [i for i, call in enumerate(calls) if call == "member.enter_assigned_generation"][1]
    assert calls[rejoin + 1 :][:2] == ["producer.abort_transaction", "consumer.remove_partitions"]
    assert "member.fetch_committed_offsets" in calls[rejoin:]


def test_what_another_member_did_in_a_missed_generation_is_read_back(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path)
    world.load("1", "2")

    def other_member_went_on() -> bool:
        if not world.consumed():
            return False
        if world.kafka.logs[Partition("in", 0)].high_watermark == 2:
            world.load("3")
            held = world.kafka.committed_offsets[Partition("in", 0)]
            world.kafka.committed_offsets[Partition("in", 0)] = held._replace(offset=3)
        return True

    world.run_until(
        rebalance_once(world, other_member_went_on, assign_partitions(0), generations=2)
    )
    assert [value for _, value in world.kafka.committed("out")] == [b"1", b"2"]


def test_tasks_that_go_elsewhere_are_closed_and_the_others_stay(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, partitions=2)
    world.load("1", partition=0)
    world.load("1", partition=1)

    done = rebalance_once(
        world, lambda: world.consumed(0) and world.consumed(1), assign_partitions(1)
    )
    free: list[bool] = []

    def moved() -> bool:
        if done() and not free:
            assert world.consumer.assigned == {Partition("in", 1)}
            world.directory.lock_task("0_0").release()  # The next owner can lock it.
            free.append(True)
        return bool(free)

    world.run_until(moved)
    assert world.script.calls.count("consumer.add_partitions") == 1


def test_a_task_whose_directory_is_locked_is_tried_until_it_is_free(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, partitions=2)
    world.load("1", partition=0)
    world.load("1", key="other", partition=1)
    lock = world.directory.lock_task("0_1")

    freed: list[bool] = []

    def done() -> bool:
        if world.consumed(0) and not freed:
            assert "RUNNING" not in world.states
            assert not world.consumed(1)
            lock.release()
            freed.append(True)
        return world.consumed(1)

    world.run_until(done)
    assert world.read_counts() == {"k": [1], "other": [1]}
    assert world.states[-1] == "RUNNING"


def test_a_directory_that_stays_locked_is_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(build_counting_topology(), tmp_path, partitions=1)
    world.load("1")
    lock = world.directory.lock_task("0_0")
    waited: list[float] = []

    def done() -> bool:
        if not world.consumed():
            waited.append(world.clock.monotonic_s())
            if waited[-1] - waited[0] < 0.9:
                assert "waits" not in caplog.text
            if waited[-1] - waited[0] > 3.0:
                lock.release()
        return world.consumed()

    world.run_until(done)
    assert [each.getMessage()[:14] for each in caplog.records].count("task 0_0 waits") == 1


def test_a_rebalance_while_stores_are_restored_is_answered_first(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path)
    block_restore(world, 0)
    world.run_until(
        rebalance_once(
            world, lambda: "restore.poll_records" in world.script.calls, assign_partitions(0)
        )
    )
    assert "consumer.add_partitions" not in world.script.calls
    # The member keeps and reports what it has restored so far, so the leader doesn't move the task.
    assert world.member.subscribed[1] == ("0_0",)


def test_tasks_that_are_ready_run_while_another_is_restored(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, partitions=2)
    transaction = block_restore(world, 0)
    world.load("1", partition=0)
    world.load("1", "2", key="other", partition=1)
    ended: list[bool] = []

    def both() -> bool:
        if world.consumed(1) and not ended:
            assert "RUNNING" not in world.states
            world.kafka.end_transaction(transaction, committed=False)
            ended.append(True)
        return bool(ended) and world.consumed(0)

    world.run_until(both)
    assert world.read_counts()["other"] == [2]
    assert world.states[-1] == "RUNNING"


def test_a_task_that_goes_elsewhere_in_the_middle_of_a_restore_keeps_what_it_has(
    tmp_path: Path,
) -> None:
    world = World(build_counting_topology(), tmp_path, partitions=2)
    block_restore(world, 0)
    moved = rebalance_once(
        world, lambda: world.loop.counters.restored_records == 1, assign_partitions(1)
    )
    free: list[bool] = []

    def freed() -> bool:
        if moved() and not free:
            world.directory.lock_task("0_0").release()  # The next owner can lock it.
            free.append(True)
        return bool(free)

    world.run_until(freed)
    disk = RocksDisk(world.directory.build_store_path("0_0", "c"))
    found = disk.read_checkpoint()
    disk.close()
    assert found is not None
    assert found.position == 1


def test_the_state_goes_from_rebalancing_to_running_and_back(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.load("1")
    world.run_until(rebalance_once(world, world.consumed, assign_partitions(0)))
    assert world.states == ["REBALANCING", "RUNNING", "REBALANCING", "RUNNING"]


def test_a_stop_commits_a_last_time_and_leaves_the_group(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, commit_every_ms=3_600_000)
    world.run_until(lambda: loaded_and_taken(world))
    assert world.read_counts() == {"k": [1]}
    ends = (
        "producer.commit_transaction",
        "member.leave_group",
        "producer.try_abort_and_close",
        "consumer.close",
        "restore.close",
    )
    assert world.script.filter_calls(*ends) == list(ends)


def test_a_stop_while_joining_leaves_the_group_and_commits_nothing(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.member.assign(None)
    world.run_until(lambda: bool(world.member.subscribed))
    assert "producer.send_offsets_to_transaction" not in world.script.calls
    assert "member.leave_group" in world.script.calls


def test_the_steps_of_every_commit_are_told(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.load("1")
    world.run_until(world.consumed)
    assert world.steps == [
        step for step in CommitStep if step not in (CommitStep.STORING, CommitStep.RESTORING)
    ]


def test_inputs_with_new_partitions_are_assigned_anew_by_the_leader(tmp_path: Path) -> None:
    changed: list[bool] = []
    world = World(build_mapping_topology(str.upper), tmp_path, inputs_changed=lambda: bool(changed))
    world.load("a")

    def grown() -> bool:
        if world.consumed() and not changed:
            world.kafka.grow("in", 2)
            world.load("b", partition=1)
            changed.append(True)
            world.member.assign(assign_partitions(0, 1))
        return changed != [] and world.consumed(0) and world.consumed(1)

    world.run_until(grown)
    assert world.member.subscribed == [(), ("0_0",)]
    assert world.script.calls.count("consumer.add_partitions") == 2, "what it has had goes on"


def test_only_the_leader_looks_at_the_inputs(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path, inputs_changed=lambda: True)
    world.member.is_leader = False
    began_s = world.clock.elapsed_s
    world.run_until(lambda: world.clock.elapsed_s > began_s + 5)
    assert len(world.member.subscribed) == 1


def test_every_slice_says_that_the_thread_is_not_stuck(tmp_path: Path) -> None:
    worlds: list[World] = []

    def take_time(value: str) -> str:
        worlds[0].clock.advance_monotonic_clock(0.1)
        return value

    worlds.append(World(build_mapping_topology(take_time), tmp_path))
    worlds[0].load(*map(str, range(20)))
    worlds[0].run_until(worlds[0].consumed)
    assert worlds[0].member.turns > 10


def test_inputs_that_can_not_be_looked_at_are_looked_at_another_time(tmp_path: Path) -> None:
    looks: list[bool] = []

    def away() -> bool:
        looks.append(True)
        raise OutcomeUnknown("no broker answers")

    world = World(build_mapping_topology(str.upper), tmp_path, inputs_changed=away)
    world.run_until(lambda: len(looks) == 3)
    assert world.loop.counters.recoveries == 0


def test_a_task_that_reads_other_partitions_than_before_begins_anew(tmp_path: Path) -> None:
    topics = {"left": 1, "right": 1, "out-right": 1}
    world = World(build_one_task_topology("left", "right"), tmp_path, topics=topics)
    world.member.assign(AssignmentInfo(("0_0",), (("left", 0),)))
    both = AssignmentInfo(("0_0",), (("left", 0), ("right", 0)))
    begun = rebalance_once(world, lambda: bool(world.consumer.assigned), both)
    world.run_until(lambda: begun() and len(world.consumer.assigned) == 2)
    assert world.script.calls.count("consumer.add_partitions") == 2


def test_the_changes_of_the_last_commit_reach_the_disk_though_no_record_follows(
    tmp_path: Path,
) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.load("1", "2")
    found: list[tuple[int, ...]] = []

    def is_on_disk() -> bool:
        """Note up to where the store is, and its disk; return whether that is the same."""
        if (task := world.loop.tasks.get("0_0")) is None:
            return False
        disk = task.stores.logged["c"].disk
        assert isinstance(disk, WriteBehindDisk)
        both = [each.read_checkpoint() for each in (disk, disk._disk)]
        found.append(tuple(-1 if at is None else at.position for at in both))
        return both[0] is not None and both[0] == both[1]

    world.run_until(is_on_disk)
    assert list(dict.fromkeys(found)) == [(1, -1), (1, 1)]
    assert world.clock.elapsed_s >= WAITING_S_MAX
