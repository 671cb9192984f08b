"""Stand in for tasks and for what the runtime does with them: a restore takes time, no records.

The runtime's `ThreadTasks`, `StandbyTasks` and `TaskOffsets` are the product's own, and these are
what it lets them use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from streams.common.topic_partitions import Partition
from streams.membership.connection import ConnectionLost
from streams.runtime.clients.refused_writes import RefusedWrites
from streams.runtime.restoring.restorer_timings import RestorerTimings
from streams.runtime.tasks.task_lifetimes import TaskLifetimes
from streams.runtime.tasks.task_state import TaskState
from tests.simulation.rebalances.topologies import STORES, list_tasks

if TYPE_CHECKING:
    from tests.simulation.rebalances.member import LightMember

_HAS_STATE = list_tasks()


class LightStore:
    """Represents a store of a task, whose position is kept in the state directory."""

    disk = None

    def __init__(self, positions: dict[str, int], name: str) -> None:
        self._positions = positions
        self._name = name

    @property
    def changelog_position(self) -> int:
        return self._positions.setdefault(self._name, 0)

    @changelog_position.setter
    def changelog_position(self, position: int) -> None:
        self._positions[self._name] = position

    def read_checkpoint_position(self) -> int:
        return self.changelog_position


class LightTask:
    """Represents a task whose directory is locked."""

    def __init__(self, member: LightMember, name: str, partitions: list[Partition]) -> None:
        self._member = member
        self.name = self.directory = name
        self.partitions = partitions
        self.state = TaskState.CREATED
        self.commit_needed = False
        stores = {}
        if _HAS_STATE[name]:
            positions = member.slot.directory.positions.setdefault(name, {})
            stores = {store: LightStore(positions, store) for store in STORES[member.version]}
        self.stores = SimpleNamespace(logged=stores)

    def is_caught_up(self) -> bool:
        """Return whether all stores are where their changelogs end."""
        ends = self._member.world.ends
        return all(
            each.changelog_position >= ends[self.name, store]
            for store, each in self.stores.logged.items()
        )

    def advance(self, records: int) -> None:
        """Read so many records of each changelog, as far as there are."""
        ends = self._member.world.ends
        for store, each in self.stores.logged.items():
            left = ends[self.name, store] - each.changelog_position
            each.changelog_position += min(records, max(left, 0))

    def commit(self) -> None:
        """Append what was done since the last commit to the changelogs."""
        ends = self._member.world.ends
        for store, each in self.stores.logged.items():
            ends[self.name, store] += self._member.world.records_a_commit
            each.changelog_position = ends[self.name, store]
        self.commit_needed = False

    def start_restoring(self) -> None:
        assert self.state is TaskState.CREATED, self.state
        self.state = TaskState.RESTORING

    def start_processing(self, *_: object) -> None:
        assert self.state is TaskState.RESTORING, self.state
        self.state = TaskState.RUNNING
        self._member.report_start(self.name)

    def start_following(self) -> None:
        assert self.state is TaskState.CREATED, self.state
        self.state = TaskState.STANDBY

    def stop_following(self) -> None:
        assert self.state is TaskState.STANDBY, self.state
        self.state = TaskState.CREATED

    def roll_back(self) -> None:
        assert self.state in (TaskState.RESTORING, TaskState.RUNNING), self.state
        self.state = TaskState.CREATED
        self.commit_needed = False

    def close(self) -> None:
        assert self.state is not TaskState.CLOSED
        self.state = TaskState.CLOSED
        self._member.slot.directory.release(self.name)


class LightTaskCreator:
    """Creates light tasks, and starts them at the offsets that the group has committed."""

    measures_details = False

    def __init__(self, member: LightMember) -> None:
        self._member = member
        self.lifetimes = TaskLifetimes(lambda: 0.0)
        self._numbers = {
            topic: sub.number for sub in member.topology.subtopologies for topic in sub.sources
        }

    def create_task(self, name: str, partitions: list[Partition]) -> LightTask | None:
        """Create a task; return None while another process has locked its directory."""
        member = self._member
        if not member.slot.directory.try_lock(name, member.process):
            return None
        return LightTask(member, name, partitions)

    def start_restoring_from_committed(self, tasks: Iterable[LightTask]) -> list[LightTask]:
        """Read the committed offsets and let the tasks restore; none of them if no one answers."""
        waiting = list(tasks)
        if not waiting:
            return []
        try:
            self._member.membership.fetch_committed_offsets(
                partition for task in waiting for partition in task.partitions
            )
        except ConnectionLost:
            return []
        for task in waiting:
            task.start_restoring()
        return waiting

    def has_logged_stores(self, name: str) -> bool:
        return _HAS_STATE[name]

    def task_name_of_partition(self, topic: str, number: int) -> str | None:
        return f"{self._numbers[topic]}_{number}"


class LightRestorer:
    """Lets stores follow their changelogs, at the pace of the member's directory."""

    def __init__(self, member: LightMember) -> None:
        self._member = member
        self._restoring: dict[str, LightTask] = {}
        self._followed: dict[str, LightTask] = {}
        self._advanced_at_ms = member.world.loop.elapsed_ms
        self.reader = SimpleNamespace(restored_records=0)
        self.follower = SimpleNamespace(followed_records=0)
        self.timings = RestorerTimings(lambda: 0.0)

    def add_tasks(self, tasks: Iterable[LightTask]) -> None:
        self._restoring |= {task.name: task for task in tasks}

    def withdraw_tasks(self, names: Iterable[str]) -> None:
        for name in names:
            self._restoring.pop(name, None)

    def follow_tasks(self, tasks: Iterable[LightTask]) -> None:
        self._followed |= {task.name: task for task in tasks}

    def stop_following(self, names: Iterable[str]) -> None:
        for name in names:
            del self._followed[name]

    def promote_tasks(self, names: Iterable[str]) -> None:
        self.stop_following(names)

    def continue_following(self) -> None:
        """Do nothing: stores advance whenever their thread takes a turn."""

    def wait_and_pop_restored_tasks(self, wait_s: float) -> list[LightTask]:
        """Return the tasks whose restore is over."""
        ready = [task for task in self._restoring.values() if task.is_caught_up()]
        for task in ready:
            del self._restoring[task.name]
        return ready

    def advance(self) -> None:
        """Advance all stores by what could be read since the last call."""
        now_ms = self._member.world.loop.elapsed_ms
        records = int((now_ms - self._advanced_at_ms) * self._member.slot.records_a_ms)
        if records:
            self._advanced_at_ms = now_ms
            for task in (*self._restoring.values(), *self._followed.values()):
                task.advance(records)


class LightProducers:
    """Stands in for producers, which these tasks don't have."""

    creations = SimpleNamespace(is_waiting=False)

    def __init__(self, *, is_transactional: bool) -> None:
        self.is_transactional = is_transactional
        self.refused_writes = RefusedWrites()

    def try_prepare_producer(self, task: str) -> bool:
        return True

    def get_producer(self, task: str) -> Any:
        return None

    def release_producer(self, task: str) -> None:
        """Do nothing."""

    def abort_transactions(self, *, has_missed_generation: bool = False) -> None:
        """Do nothing: an offset that was not committed is not remembered."""

    discard_producers = abort_transactions


class LightExecutor:
    """Stands in for the executor of records: each turn every running task has done something."""

    def __init__(self) -> None:
        self.tasks: dict[str, LightTask] = {}

    def __bool__(self) -> bool:
        return bool(self.tasks)

    def add_tasks(self, tasks: Collection[LightTask]) -> None:
        self.tasks |= {task.name: task for task in tasks}

    def remove_tasks(self, tasks: Collection[LightTask]) -> None:
        for task in tasks:
            self.tasks.pop(task.name, None)

    def process(self) -> None:
        for task in self.tasks.values():
            task.commit_needed = True
