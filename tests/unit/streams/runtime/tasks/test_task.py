"""Test a task's states: which transition leads where, and what a rollback discards and keeps."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from state.directory import StateDirectory
from state.errors import DirectoryLocked, StateError, StoreCorrupted
from state.memory import MemoryDisk
from state.store import ChangelogEntry
from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown, StreamsError, TaskCorrupted
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.tasks.partition_group import RecordOrderSettings
from streams.runtime.tasks.store_opening import open_store
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_state import TaskState
from streams.runtime.tasks.task_stores import TaskStores
from streams.testing.clients import InMemoryProducer
from streams.testing.simulated_host import SimulatedHost
from tests.unit.streams.runtime.fakes import Clock, FakeConsumer, FakeProducer, Script
from tests.unit.streams.runtime.kafka import Kafka
from tests.unit.streams.runtime.world import CHANGELOG, build_counting_topology

INPUT = Partition("in", 0)


class Made:
    """Holds a task that counts, and the Kafka that it writes to."""

    def __init__(self, state: Path) -> None:
        self.kafka = Kafka({"in": 1, "out": 1, CHANGELOG: 1})
        self.directory = StateDirectory(state, "a")
        (subtopology,) = build_counting_topology().subtopologies
        store = open_store(subtopology.stores[0], MemoryDisk())
        self.task = Task(
            "0_0",
            subtopology,
            partitions=[INPUT],
            stores=TaskStores(
                "0_0",
                {"c": LoggedStore(store, Partition(CHANGELOG, 0), "id", changelog_position=0)},
            ),
            lock=self.directory.lock_task("0_0"),
        )
        self.producer: Any = self.new_producer()
        self.consumer = FakeConsumer(self.kafka, Script(), Clock())
        self.steps: dict[str, Callable[[], None]] = {
            "follow": self.task.start_following,
            "unfollow": self.task.stop_following,
            "restore": lambda: self.task.start_restoring(
                {INPUT: 0}, required_changelog_positions={}, partition_times_ms={}
            ),
            "start": self._start,
            "rollback": self.task.roll_back,
            "close": self.task.close,
        }

    def new_producer(self) -> FakeProducer:
        return FakeProducer(self.kafka, Script())

    def reach(self, state: TaskState) -> None:
        for step in PATHS[state]:
            self.steps[step]()

    def process(self, *values: str) -> None:
        self.producer.begin_transaction()
        self.kafka.load(INPUT, *(("k", value) for value in values))
        task = self.task
        task.commit_needed = True
        task.buffered_records.add_records(
            INPUT, list(self.kafka.logs[INPUT].read_committed(task.positions[INPUT]))
        )
        task.steps.process_runs(task.buffered_records.pop_next_runs(100, 0))

    def _start(self) -> None:
        self.task.start_processing(
            self.producer, self.consumer, RecordOrderSettings(), SimulatedHost(0)
        )


PATHS = {
    TaskState.CREATED: [],
    TaskState.STANDBY: ["follow"],
    TaskState.RESTORING: ["restore"],
    TaskState.RUNNING: ["restore", "start"],
    TaskState.CLOSED: ["close"],
}
LEGAL = {
    (TaskState.CREATED, "follow"): TaskState.STANDBY,
    (TaskState.STANDBY, "unfollow"): TaskState.CREATED,
    (TaskState.STANDBY, "close"): TaskState.CLOSED,
    (TaskState.CREATED, "restore"): TaskState.RESTORING,
    (TaskState.RESTORING, "start"): TaskState.RUNNING,
    (TaskState.RESTORING, "rollback"): TaskState.CREATED,
    (TaskState.RUNNING, "rollback"): TaskState.CREATED,
    (TaskState.CREATED, "close"): TaskState.CLOSED,
    (TaskState.RESTORING, "close"): TaskState.CLOSED,
    (TaskState.RUNNING, "close"): TaskState.CLOSED,
}


STEPS = ["follow", "unfollow", "restore", "start", "rollback", "close"]


@pytest.mark.parametrize(("state", "step"), list(product(TaskState, STEPS)))
def test_a_step_leads_where_the_table_says_and_any_other_is_refused(
    tmp_path: Path, state: TaskState, step: str
) -> None:
    made = Made(tmp_path)
    made.reach(state)
    if (state, step) in LEGAL:
        made.steps[step]()
        assert made.task.state is LEGAL[state, step]
    else:
        with pytest.raises(RuntimeError, match=f"0_0 is {state.name}: {step} is not possible"):
            made.steps[step]()
        assert made.task.state is state


def test_a_rollback_forgets_what_was_processed_and_holds_the_directory(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.reach(TaskState.RUNNING)
    made.process("1", "2")
    made.task.roll_back()
    assert not made.task.commit_needed
    made.reach(TaskState.RUNNING)
    made.task.steps.emit_pending_results()
    # Neither pending results nor counts remain of the two records that were counted before.
    assert made.producer.produced == []
    assert made.task.steps.context.get_store("c").get("k") is None
    with pytest.raises(DirectoryLocked):
        made.directory.lock_task("0_0")


def test_reports_of_a_producer_from_before_a_rollback_are_not_listened_to(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.reach(TaskState.RUNNING)
    made.process("1")
    made.producer.lost_topics = {CHANGELOG}
    made.task.stores.send_changes_to_changelog(made.producer)
    made.task.roll_back()
    made.producer.flush()
    made.producer = made.new_producer()
    made.reach(TaskState.RUNNING)
    assert [committed.offset for _, committed in made.task.committable_offsets()] == [0]


def test_a_changelog_that_was_not_delivered_has_no_offsets(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.reach(TaskState.RUNNING)
    made.process("1")
    made.producer.lost_topics = {CHANGELOG}
    made.task.stores.send_changes_to_changelog(made.producer)
    made.producer.flush()
    with pytest.raises(OutcomeUnknown, match="not delivered"):
        made.task.committable_offsets()


def test_a_task_lets_its_directory_go_though_a_store_fails_to_close(tmp_path: Path) -> None:
    made = Made(tmp_path)

    class Full(MemoryDisk):
        def close(self) -> None:
            raise StateError("no space left")

    (spec,) = build_counting_topology().subtopologies[0].stores
    store = open_store(spec, Full())
    made.task.stores.logged["another"] = LoggedStore(
        store, Partition("another", 0), "id", changelog_position=0
    )
    made.task.stores.logged = dict(reversed(made.task.stores.logged.items()))
    with pytest.raises(StateError, match="no space left"):
        made.task.close()
    assert made.task.state is TaskState.CLOSED
    made.directory.lock_task("0_0").release()


def test_damage_that_is_found_when_changes_are_collected_names_its_store(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.reach(TaskState.RUNNING)
    damage = StoreCorrupted("c", tmp_path, "Corruption: block checksum mismatch")

    def drain() -> list[ChangelogEntry]:
        raise damage

    made.task.stores.logged["c"].store.drain_writes = drain  # type: ignore[method-assign]
    with pytest.raises(TaskCorrupted) as raised:
        made.task.steps.serialize_changes()
    assert raised.value.task == "0_0"
    assert set(raised.value.stores) == {"c"}


def test_messages_kept_for_results_that_wait_count_as_uncommitted(tmp_path: Path) -> None:
    """Test that a message kept for a pending result counts as uncommitted: it may be large."""
    made = Made(tmp_path)
    made.reach(TaskState.RUNNING)
    assert made.task.steps.uncommitted_bytes == 0
    made.process("v" * 1_000_000)
    assert 1_000_000 < made.task.steps.uncommitted_bytes < 1_100_000
    made.task.steps.emit_pending_results()
    assert made.task.steps.uncommitted_bytes < 10_000


def test_damage_of_a_global_tables_copy_ends_the_application(tmp_path: Path) -> None:
    """Test that a damaged copy of a global table is fatal: no task could rebuild it."""
    made = Made(tmp_path)
    made.reach(TaskState.RUNNING)

    def look_up(message: object) -> None:
        raise StoreCorrupted("rates", tmp_path, "Corruption: block checksum mismatch")

    with pytest.raises(StreamsError, match=r"'rates' .* is damaged: .*start again"):
        made.task.steps.process_runs([(look_up, [None])])


@pytest.mark.parametrize("step", ["rollback", "close"])
def test_a_producer_goes_with_the_last_task_that_lets_it_go(tmp_path: Path, step: str) -> None:
    """Test that a producer is freed with its last task and not at a garbage collection.

    Until then it would hold its threads.
    """
    made = Made(tmp_path)
    # Unlike a producer of the script, a real one is in no reference cycle.
    made.producer = InMemoryProducer(
        "id",
        made.kafka,
        transactional=True,
        reports_deliveries=False,
        now_ms=lambda: 0,
        random=Random(0),
    )
    gone = weakref.ref(made.producer)
    made.reach(TaskState.RUNNING)
    del made.producer
    gc.disable()
    try:
        made.steps[step]()
        assert gone() is None
    finally:
        gc.enable()
