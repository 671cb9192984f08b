"""Test which offsets a member reports of the tasks whose state is in its directory."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from state.directory import StateDirectory
from state.errors import DirectoryLocked
from state.rocksdb import RocksDisk
from state.store_checkpoint import StoreCheckpoint
from streams.common.topic_partitions import Partition
from streams.errors import StreamsError
from streams.membership.protocol import RUNNING_OFFSET, AssignmentInfo
from streams.runtime.tasks.task_offsets import DormantTask, TaskOffsets, find_dormant_tasks
from tests.unit.streams.runtime.fakes import Clock
from tests.unit.streams.runtime.world import (
    CHANGELOG,
    World,
    assign_roles,
    build_counting_topology,
    build_mapping_topology,
)


def write_store(directory: StateDirectory, task: str, position: int, store: str = "c") -> Path:
    """Write the store of a task as an earlier process has left it, and return its path."""
    directory.lock_task(task).release()
    path = directory.build_store_path(task, store)
    path.mkdir(parents=True)
    disk = RocksDisk(path)
    disk.write_changes({b"k": b"v"}, StoreCheckpoint(position, "id"))
    disk.close()
    return path


def find(path: Path) -> dict[str, DormantTask]:
    return find_dormant_tasks(build_counting_topology(), StateDirectory(path, "a"), Clock())


def test_what_an_earlier_process_has_left_is_dormant(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "a")
    write_store(directory, "0_0", 7)
    write_store(directory, "0_12", 9)
    write_store(directory, "5_0", 1)
    (directory.path / "0_3").mkdir()
    assert find(tmp_path) == {"0_0": DormantTask("0_0", 7), "0_12": DormantTask("0_12", 9)}


def test_a_store_that_a_killed_process_had_open_is_read(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path / "live", "a")
    directory.lock_task("0_0").release()
    (directory.path / "0_0").mkdir(exist_ok=True)
    disk = RocksDisk(directory.build_store_path("0_0", "c"))
    disk.write_changes({b"k": b"v"}, StoreCheckpoint(5, "id"))  # in the log alone
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    disk.close()
    assert find(tmp_path / "killed") == {"0_0": DormantTask("0_0", 5)}


def test_what_is_locked_or_damaged_is_left_out(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "a")
    for task in ("0_0", "0_1", "0_2"):
        path = write_store(directory, task, 7)
        if task == "0_1":
            (path / "CURRENT").write_text("nonsense")
    lock = directory.lock_task("0_0")
    assert find(tmp_path) == {"0_2": DormantTask("0_2", 7)}
    lock.release()


def test_the_search_ends_in_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    directory = StateDirectory(tmp_path, "a")
    write_store(directory, "0_0", 7)
    write_store(directory, "0_1", 8)

    class Slow(Clock):
        def monotonic_s(self) -> float:
            self.elapsed_s += 1.5
            return self.elapsed_s

    found = find_dormant_tasks(build_counting_topology(), directory, Slow())
    assert list(found) == ["0_0"]
    assert "tasks from 0_1 on is not looked at" in caplog.text


def test_a_dormant_task_without_a_directory_is_none(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "a")
    write_store(directory, "0_0", 7)
    offsets = TaskOffsets(directory, find(tmp_path))
    assert offsets.sum_offsets([], "thread 0") == {"0_0": 7}
    shutil.rmtree(directory.path / "0_0")
    assert offsets.sum_offsets([], "thread 0") == {}


def test_one_thread_at_a_time_reports_what_no_thread_has_open(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "a")
    write_store(directory, "0_0", 7)
    offsets = TaskOffsets(directory, find(tmp_path))
    assert offsets.sum_offsets([], "thread 1") == {"0_0": 7}
    assert offsets.sum_offsets([], "thread 0") == {}
    assert offsets.sum_offsets([], "thread 1") == {"0_0": 7}
    offsets.release_reporting_role("thread 0")
    assert offsets.sum_offsets([], "thread 0") == {}
    offsets.release_reporting_role("thread 1")
    assert offsets.sum_offsets([], "thread 0") == {"0_0": 7}
    assert offsets.sum_offsets([], "thread 1") == {}


def test_a_thread_that_does_not_report_for_all_tells_what_it_has_closed(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "a")
    write_store(directory, "0_0", 7)
    offsets = TaskOffsets(directory)
    assert offsets.sum_offsets([], "thread 0") == {}
    on_disk = SimpleNamespace(disk=None, read_checkpoint_position=lambda: 7)
    closed: Any = SimpleNamespace(
        name="0_0", directory="0_0", stores=SimpleNamespace(logged={"counts": on_disk})
    )
    offsets.remember_as_dormant_before_closing(closed, "thread 1")
    for thread in ("thread 0", "thread 1"):
        assert offsets.sum_offsets([], thread) == {"0_0": 7}
    assert offsets.sum_offsets([], "thread 2") == {}


def test_a_member_reports_active_standby_and_dormant_tasks(tmp_path: Path) -> None:
    write_store(StateDirectory(tmp_path, "a"), "0_2", 7)
    world = World(build_counting_topology(), tmp_path, partitions=4)
    world.member.assign(assign_roles([0], standby=[1]))
    world.kafka.load(Partition(CHANGELOG, 1), ("x", "12345678"), ("y", "12345678"))
    world.load("1")
    world.turn()
    world.rebalance(assign_roles([0]))
    world.turn()
    world.rebalance(assign_roles([0]))
    world.turn()
    running = {"0_0": RUNNING_OFFSET}
    assert world.member.offsets == [
        {"0_2": 7},
        {**running, "0_1": 2, "0_2": 7},
        {**running, "0_1": 2, "0_2": 7},  # closed by now, and its directory is there
    ]


def test_a_task_that_is_closed_is_dormant_as_of_its_last_commit(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.load("1")
    world.turn()
    world.rebalance(assign_roles())
    world.turn()
    world.rebalance(assign_roles([0]))
    world.turn()
    # One count and the marker of its transaction, which the store has not seen.
    assert world.member.offsets == [{}, {"0_0": RUNNING_OFFSET}, {"0_0": 1}]


@pytest.mark.parametrize(
    "assigned", [assign_roles([0, 1]), assign_roles(standby=[0, 1])], ids=["active", "standby"]
)
def test_tasks_whose_offset_cannot_be_read_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, assigned: AssignmentInfo
) -> None:
    world = World(build_counting_topology(), tmp_path, partitions=2)
    world.member.assign(assigned)
    world.turn()
    for task in ("0_0", "0_1"):
        with pytest.raises(DirectoryLocked):
            world.directory.lock_task(task)

    def lose_disk(disk: RocksDisk) -> StoreCheckpoint:
        raise OSError("input/output error")

    monkeypatch.setattr(RocksDisk, "read_checkpoint", lose_disk)
    world.rebalance(assign_roles())
    with pytest.raises(StreamsError, match="input/output error"):
        world.turn()
    for task in ("0_0", "0_1"):
        world.directory.lock_task(task).release()


def test_a_task_without_state_has_no_offset(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path)
    world.turn()
    world.rebalance(assign_roles([0]))
    world.turn()
    assert world.member.offsets == [{}, {}]
