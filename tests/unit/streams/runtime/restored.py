"""Provide changelogs in memory with stores that lag behind them, and their restorer."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from state.key_value import KeyValueStore
from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from streams import serdes
from streams.common.topic_partitions import Partition
from streams.graph.nodes import StoreSpec
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.restoring.changelog_reader import StoreChangelogReader
from streams.runtime.restoring.progress import RestoreListener, SuspendReason
from streams.runtime.restoring.restorer import Restorer
from streams.runtime.tasks.offset_proof import UNCHECKED, OffsetProof
from streams.runtime.tasks.store_opening import open_store
from streams.runtime.tasks.task_stores import TaskStores
from tests.unit.streams.runtime.fakes import (
    Clock,
    FakeAdmin,
    FakeConsumer,
    Script,
    ThreadsOnClock,
    create_follower,
)
from tests.unit.streams.runtime.kafka import Kafka

CHANGELOG = Partition("a-c-changelog", 0)
OTHER = Partition("a-d-changelog", 0)
INPUT = Partition("in", 0)


@dataclass
class Waiting:
    """Represents a task as the restorer sees it."""

    name: str
    stores: TaskStores
    required_changelog_positions: dict[Partition, int] = field(default_factory=dict)
    offset_proof: OffsetProof = UNCHECKED
    partitions: list[Partition] = field(default_factory=lambda: [INPUT])


class Told(RestoreListener):
    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def on_restore_start(self, changelog: Partition, store: str, begin: int, end: int) -> None:
        self.events.append(("start", store, begin, end))

    def on_batch_restored(
        self, changelog: Partition, store: str, position: int, records: int
    ) -> None:
        self.events.append(("batch", store, position, records))

    def on_restore_end(self, changelog: Partition, store: str, records: int) -> None:
        self.events.append(("end", store, records))

    def on_restore_suspended(self, changelog: Partition, store: str, records: int) -> None:
        self.events.append(("suspended", store, records))

    def on_update_start(self, changelog: Partition, store: str, begin: int) -> None:
        self.events.append(("follow", store, begin))

    def on_batch_loaded(
        self, changelog: Partition, store: str, task: str, position: int, records: int, end: int
    ) -> None:
        self.events.append(("loaded", store, task, position, records, end))

    def on_update_suspended(
        self, changelog: Partition, store: str, position: int, end: int, reason: SuspendReason
    ) -> None:
        self.events.append((reason.value, store, position, end))


class Restoring:
    """Holds changelogs in memory, stores that lag behind them, and their restorer.

    `batch` is how many records come at a time.
    """

    def __init__(
        self,
        *,
        batch: int = 10_000,
        beside: bool = False,
        check_topics: Callable[[], None] = lambda: None,
    ) -> None:
        self.script = Script()
        self.clock = Clock()
        self.kafka = Kafka({"a-c-changelog": 1, "a-d-changelog": 1, "in": 1})
        self.consumer = Slowly(self.kafka, self.script, self.clock, batch)
        self.listener = Told()
        host = ThreadsOnClock(self.clock)
        reader = StoreChangelogReader[Waiting](
            "restore-0",
            self.consumer,
            FakeAdmin(self.kafka, self.script),
            host,
            is_transactional=True,
            timeout_ms=60_000,
            listener=self.listener,
            check_topics=check_topics,
        )
        self.standby_consumer = Slowly(self.kafka, self.script, self.clock, batch, "standby")
        self.follower = create_follower(
            self.kafka,
            self.script,
            self.clock,
            consumer=self.standby_consumer,
            host=host,
            listener=self.listener,
        )
        self.restorer = Restorer(reader, self.follower, host, use_own_thread=beside)

    def store(
        self,
        held: dict[str, str] | None = None,
        position: int = 0,
        changelog: Partition = CHANGELOG,
        written_ms: int = 1_000_000,
        disk: MemoryDisk | None = None,
        topic_id: str | None = None,
        **fields: Any,
    ) -> LoggedStore:
        """Return a store with these contents as of `position`; with None it was never written.

        `fields` are further ones of its checkpoint.
        """
        disk = disk or MemoryDisk()
        topic_id = self.kafka.topic_ids[changelog.topic] if topic_id is None else topic_id
        if held is not None:
            changes = {k.encode(): struct.pack(">q", 0) + v.encode() for k, v in held.items()}
            disk.write_changes(changes, StoreCheckpoint(position, topic_id, written_ms, **fields))
        spec = StoreSpec(name=changelog.topic, key=serdes.string, value=serdes.string)
        store = open_store(spec, disk)
        return LoggedStore(store, changelog, "", changelog_position=0)

    def task(self, *stores: LoggedStore, name: str = "0_0", **required: int) -> Waiting:
        held = TaskStores(name, {logged.store.name: logged for logged in stores})
        return Waiting(name, held, {Partition("a-c-changelog", 0): n for n in required.values()})

    def restore(self, *stores: LoggedStore) -> int:
        """Restore these stores as one task, and return the number of records that this took."""
        before = self.restorer.reader.restored_records
        task = self.task(*stores)
        self.restorer.add_tasks([task])
        assert self.until_ready() == [task]
        return self.restorer.reader.restored_records - before

    def until_ready(self, each_turn: Callable[[], object] = lambda: None) -> list[Waiting]:
        for _ in range(1_000):
            if ready := self.restorer.wait_and_pop_restored_tasks():
                return ready
            each_turn()
        raise AssertionError("the restore hangs")

    def follow(self, *stores: LoggedStore, name: str = "0_0") -> Waiting:
        """Hand these stores over as one standby task, and follow until nothing more comes."""
        task = self.task(*stores, name=name)
        self.restorer.follow_tasks([task])
        self.follow_to_end()
        return task

    def follow_to_end(self, after_s: float = 0.0) -> int:
        """Follow until nothing more comes, after so many seconds; return the number of records."""
        self.clock.advance_monotonic_clock(after_s)
        before, still = self.follower.followed_records, 0
        for _ in range(1_000):
            followed = self.follower.followed_records
            self.restorer.continue_following()
            still = still + 1 if followed == self.follower.followed_records else 0
            if still == 3:
                return self.follower.followed_records - before
        raise AssertionError("the standby follows without end")

    def promote(self, task: Waiting) -> int:
        """Restore a standby task to become active; return how many records that replays."""
        before = self.restorer.reader.restored_records
        self.restorer.promote_tasks([task.name])
        self.restorer.add_tasks([task])
        assert self.until_ready() == [task]
        return self.restorer.reader.restored_records - before

    def lags(self) -> dict[str, int | None]:
        """Return the lag of each followed store by its name."""
        return {each.store: each.lag for each in self.follower.progress}

    def turns(self, count: int) -> None:
        """Restore this many batches, after none of which a task is ready."""
        for _ in range(count):
            assert self.restorer.wait_and_pop_restored_tasks() == []


class Slowly(FakeConsumer):
    """Stands in for a consumer that returns at most `batch` records at a time."""

    def __init__(
        self, kafka: Kafka, script: Script, clock: Clock, batch: int, name: str = "restore"
    ) -> None:
        super().__init__(kafka, script, clock, name)
        self.batch = batch

    def poll_records(self, records_max: int, timeout_s: float) -> list[Any]:
        return super().poll_records(min(records_max, self.batch), timeout_s)


def held(logged: LoggedStore) -> dict[str, str]:
    assert isinstance(logged.store, KeyValueStore)
    return dict(logged.store.all())


def checkpoint(logged: LoggedStore) -> tuple[int, str]:
    found = logged.store.read_checkpoint()
    assert found is not None
    return found.position, found.topic_id


class BulkDisk(MemoryDisk):
    """Stands in for a disk on which loaded data is durable only after `finish_load`."""

    durable: StoreCheckpoint | None = None

    def finish_load(self) -> None:
        self.durable = super().read_checkpoint()
