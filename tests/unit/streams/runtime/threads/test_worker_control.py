"""Test threads that are paused, and threads that end without leaving their group."""

from __future__ import annotations

from pathlib import Path

from streams.common.topic_partitions import Partition
from streams.runtime.tasks.task_state import TaskState
from tests.unit.streams.runtime.world import (
    World,
    block_restore,
    build_counting_topology,
    build_mapping_topology,
)

INPUT = Partition("in", 0)
LEAVING = ("member.leave_group", "member.end_without_leaving_group")


def committed_offset(world: World) -> int | None:
    held = world.kafka.committed_offsets.get(INPUT)
    return None if held is None else held.offset


def test_a_paused_thread_commits_and_processes_nothing_more(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path, commit_every_ms=1_000_000)
    world.load("a", "b")
    world.turn()
    assert (world.loop.counters.records, committed_offset(world)) == (2, None)
    world.control.is_paused = True
    world.load("c")
    world.turn()
    assert (world.loop.counters.records, committed_offset(world)) == (2, 2)
    world.control.is_paused = False
    world.turn()
    assert world.loop.counters.records == 3
    world.control.is_paused = True
    world.turn()
    assert committed_offset(world) == 3


def test_a_paused_thread_stops_between_two_slices(tmp_path: Path) -> None:
    resumed: list[bool] = []

    def pause_at_first(value: str) -> str:
        world.control.is_paused = not resumed
        return value

    world = World(build_mapping_topology(pause_at_first), tmp_path, commit_every_ms=1_000_000)
    world.load(*(["v"] * 500))
    world.turn()
    first_slice = world.loop.counters.records
    assert 0 < first_slice < 500
    resumed.append(True)
    world.control.is_paused = False
    world.turn(count=500)
    assert world.loop.counters.records == 500


def test_a_paused_thread_waits_in_each_turn_while_another_task_is_restored(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, partitions=2)
    block_restore(world, 0)
    world.load("1", partition=1)
    world.turn()
    states = {name: task.state for name, task in world.loop.tasks.items()}
    assert states == {"0_0": TaskState.RESTORING, "0_1": TaskState.RUNNING}
    world.control.is_paused = True
    world.turn()
    began_s = world.clock.monotonic_s()
    world.turn(count=10)
    assert world.clock.monotonic_s() - began_s >= 10 * 0.05


def test_a_thread_remains_in_its_group_where_it_was_told_to(tmp_path: Path) -> None:
    ends = []
    for remains in (False, True):
        world = World(build_mapping_topology(str.upper), tmp_path / str(remains))
        world.control.remains_in_group = remains
        world.load("a")
        world.run_until(world.consumed)
        ends.append([each for each in world.script.calls if each in LEAVING])
    assert ends == [["member.leave_group"], ["member.end_without_leaving_group"]]
