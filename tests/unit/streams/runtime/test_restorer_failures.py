"""Test that what fails in the restorer is told, and that no store misses a record because of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from state.errors import StateError
from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from streams import StreamsError
from streams.errors import AuthorizationError
from tests.processes import wait_until
from tests.unit.streams.runtime.restored import CHANGELOG, OTHER, Restoring, Waiting, held

FULL = "no space left on device"


class FailingDisk(MemoryDisk):
    """Fails once, in the next call of the method that `failing` names."""

    def __init__(self, method: str, error: BaseException | None = None) -> None:
        super().__init__()
        self._error: BaseException | None = error or StateError(FULL)
        self.failing = method

    def load_changes(self, changes: Any, checkpoint: StoreCheckpoint) -> None:
        self._fail_once("load_changes")
        super().load_changes(changes, checkpoint)

    def finish_load(self) -> None:
        self._fail_once("finish_load")

    def _fail_once(self, method: str) -> None:
        if method == self.failing and self._error is not None:
            error, self._error = self._error, None
            raise error


def create_two_tasks(world: Restoring, method: str) -> list[Waiting]:
    """Load two changelogs, and return the tasks of their stores; the disk of the first fails."""
    world.kafka.load(CHANGELOG, ("a", "1"))
    world.kafka.load(OTHER, ("x", "9"))
    return [
        world.task(world.store(disk=FailingDisk(method))),
        world.task(world.store(changelog=OTHER), name="0_1"),
    ]


def read_stores(tasks: list[Waiting]) -> list[dict[str, str]]:
    return [held(store) for task in tasks for store in task.stores.logged.values()]


def test_records_of_a_batch_whose_load_failed_are_restored_again() -> None:
    """The consumer was past them, for the task whose disk is well, too."""
    world = Restoring()
    tasks = create_two_tasks(world, "load_changes")
    world.restorer.add_tasks(tasks)
    with pytest.raises(StateError, match=FULL):
        world.until_ready()
    ready: list[Waiting] = []
    while len(ready) < len(tasks):
        ready += world.until_ready()
    assert read_stores(tasks) == [{"a": "1"}, {"x": "9"}]


def test_a_store_whose_restore_could_not_be_finished_is_restored_again() -> None:
    world = Restoring()
    tasks = create_two_tasks(world, "finish_load")
    world.restorer.add_tasks(tasks)
    with pytest.raises(StateError, match=FULL):
        world.until_ready(lambda: world.restorer.reader.restored.pop_tasks_or_raise_failure())
    ready: list[Waiting] = []
    while not ready:
        ready += world.restorer.wait_and_pop_restored_tasks()
    assert read_stores(tasks) == [{"a": "1"}, {"x": "9"}]


@pytest.mark.parametrize("call", ["restore.poll_records", "admin.fetch_latest_offsets"])
def test_a_restore_goes_on_after_a_call_that_failed(call: str) -> None:
    world = Restoring()
    tasks = create_two_tasks(world, "nothing")
    world.script.fail(call, StreamsError("no"), after=True)
    world.restorer.add_tasks(tasks)
    with pytest.raises(StreamsError, match="no"):
        world.until_ready()
    ready: list[Waiting] = []
    while len(ready) < len(tasks):
        ready += world.until_ready()
    assert read_stores(tasks) == [{"a": "1"}, {"x": "9"}]


def test_a_refused_task_is_told_although_another_one_was_about_to_be_restored() -> None:
    """The consumer knows the changelogs of those before it, which are read again."""
    world = Restoring()
    tasks = create_two_tasks(world, "nothing")
    tasks[1].required_changelog_positions[OTHER] = 99
    world.restorer.add_tasks(tasks)
    with pytest.raises(StreamsError, match="offsets were committed when it stood at 99"):
        world.until_ready()


@pytest.mark.parametrize("withdrawn", ["0_0", "0_1"])
def test_a_refusal_goes_with_its_task_and_with_no_other(withdrawn: str) -> None:
    """It may come of offsets that were old when the task was given up."""
    world = Restoring(beside=True)
    tasks = create_two_tasks(world, "nothing")
    tasks[1].required_changelog_positions[OTHER] = 99
    world.restorer.add_tasks(tasks)
    restored = world.restorer.reader.restored
    wait_until(lambda: restored.has_failed, what="no refusal")
    assert [task.name for task in world.restorer.withdraw_tasks([withdrawn])] == [withdrawn]
    ready: list[Waiting] = []

    def is_told() -> bool:
        ready.extend(world.restorer.wait_and_pop_restored_tasks())
        return bool(ready)

    if withdrawn == "0_1":
        wait_until(is_told, what="no task")
    else:
        with pytest.raises(StreamsError, match="offsets were committed when it stood at 99"):
            wait_until(is_told, what="no refusal")
    world.restorer.close()


def test_records_of_a_batch_whose_load_failed_are_followed_again() -> None:
    world = Restoring()
    tasks = create_two_tasks(world, "load_changes")
    world.restorer.follow_tasks(tasks)
    with pytest.raises(StateError, match=FULL):
        world.follow_to_end()
    world.follow_to_end(after_s=1)
    assert read_stores(tasks) == [{"a": "1"}, {"x": "9"}]


def test_records_that_a_failed_poll_has_taken_are_followed_again() -> None:
    world = Restoring()
    tasks = create_two_tasks(world, "nothing")
    world.script.fail("standby.poll_records", AuthorizationError("Read", "topic", "t"), after=True)
    world.restorer.follow_tasks(tasks)
    with pytest.raises(AuthorizationError):
        world.follow_to_end()
    world.follow_to_end(after_s=1)
    assert read_stores(tasks) == [{"a": "1"}, {"x": "9"}]


def follow_beside(world: Restoring, tasks: list[Waiting]) -> None:
    """Follow the tasks on the restorer's own thread until their stores have all there is."""
    world.restorer.follow_tasks(tasks)
    wait_until(
        lambda: world.follower.followed_records == len(tasks), what="the standbys to be followed"
    )


def test_all_tasks_of_a_promotion_that_failed_are_let_go_and_nothing_waits_for_ever() -> None:
    world = Restoring(beside=True)
    disk = FailingDisk("nothing yet")
    tasks = [
        world.task(world.store(disk=disk)),
        world.task(world.store(changelog=OTHER), name="0_1"),
    ]
    world.kafka.load(CHANGELOG, ("a", "1"))
    world.kafka.load(OTHER, ("x", "9"))
    follow_beside(world, tasks)
    disk.failing = "finish_load"
    world.restorer.promote_tasks(["0_0", "0_1"])
    finish_in_time(lambda: world.restorer.withdraw_tasks(["0_0", "0_1"]))
    assert not world.follower.is_following
    with pytest.raises(StateError, match=FULL):
        world.restorer.wait_and_pop_restored_tasks(wait_s=10)
    world.restorer.close()


def test_a_standby_that_fails_when_it_is_let_go_leaves_no_task_in_the_reader() -> None:
    """Test a withdrawal of a task whose promotion has failed, and of one that is restored."""
    world = Restoring()
    disk = FailingDisk("")
    standby = world.task(world.store(disk=disk))
    world.follow(*standby.stores.logged.values())
    world.kafka.load(OTHER, ("x", "9"))
    behind = world.task(world.store(changelog=OTHER), name="0_1")
    world.restorer.add_tasks([behind])
    disk.failing = "finish_load"
    with pytest.raises(StateError, match=FULL):
        world.restorer.withdraw_tasks(["0_0", "0_1"])
    assert (world.follower.is_following, world.restorer.reader.is_restoring) == (False, False)


def test_a_reader_that_cannot_be_closed_leaves_no_consumer_of_standbys_open() -> None:
    world = Restoring()
    world.follow(world.store())
    world.script.fail("restore.close", StreamsError("no answer"))
    with pytest.raises(StreamsError, match="no answer"):
        world.restorer.close()
    assert world.script.filter_calls("restore.close", "standby.close") == [
        "restore.close",
        "standby.close",
    ]


class Panic(BaseException):
    """Stands for what a panic in rocksdict raises."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_restorer_whose_thread_has_ended_says_so() -> None:
    world = Restoring(beside=True)
    world.kafka.load(CHANGELOG, ("a", "1"))
    task = world.task(world.store(disk=FailingDisk("load_changes", Panic("slice index"))))
    world.restorer.add_tasks([task])
    with pytest.raises(StreamsError, match="has ended"):
        world.restorer.wait_and_pop_restored_tasks(wait_s=10)
    with pytest.raises(StreamsError, match="has ended"):
        finish_in_time(lambda: world.restorer.withdraw_tasks(["0_0"]))
    world.restorer.close()


def finish_in_time(action: Callable[[], object]) -> None:
    """Run an action on a thread of its own, and raise what it raised, or that it hangs."""
    raised: list[Exception] = []

    def run() -> None:
        try:
            action()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), "it waits for ever"
    if raised:
        raise raised[0]
