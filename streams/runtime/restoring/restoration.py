"""Track the stores that are restored or followed (see `changelog_reader`, `changelog_follower`)."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import methodcaller
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from state.errors import StoreCorrupted
from state.store import ChangelogEntry
from streams.common.host import Event, Host
from streams.common.topic_partitions import Partition
from streams.errors import PositionRefused
from streams.runtime.changelogs.changelog import ChangelogRange
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.restoring.progress import RestoreProgress, StandbyProgress
from streams.runtime.tasks.offset_proof import OffsetProof
from streams.runtime.tasks.task_stores import TaskStores

HasMore: TypeAlias = bool
"""True if there is more to do at once; without it, a caller waits for a while."""


class Restorable(Protocol):
    """Gives the restorer a task's stores and the changelog positions that they have to reach."""

    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> Sequence[Partition]:
        """Return the input partitions that it reads."""
        ...

    @property
    def stores(self) -> TaskStores: ...

    @property
    def required_changelog_positions(self) -> Mapping[Partition, int]:
        """Return the position of each changelog when the input offsets were committed."""
        ...

    @property
    def offset_proof(self) -> OffsetProof:
        """Return the proof of which stored records the committed input offsets account for."""
        ...


T = TypeVar("T", bound=Restorable)
log = logging.getLogger(__name__)


@dataclass(slots=True)
class TaskRestoration(Generic[T]):
    """Tracks a task that waits for some of its stores to be restored."""

    task: T
    waiting_stores: list[LoggedStore]
    changelogs_behind: set[Partition] = field(default_factory=set)
    corruption_count: int = 0
    """How often a store of the task was found to be corrupt."""


@dataclass(slots=True)
class StoreRestoration(Generic[T]):
    """Tracks the restore of a store that is behind its changelog."""

    task_restoration: TaskRestoration[T]
    logged_store: LoggedStore
    changelog: ChangelogRange
    begin_offset: int
    since_ms: int
    is_from_scratch: bool
    began_at_s: float
    progressed_at_s: float
    record_count: int = 0

    def snapshot_progress(self, now_s: float) -> RestoreProgress:
        """Return the progress of the restore as of `now_s`, in monotonic seconds."""
        return RestoreProgress(
            self.task_restoration.task.name,
            self.logged_store.store.name,
            self.logged_store.changelog,
            self.begin_offset,
            self.logged_store.changelog_position,
            self.changelog.end_offset,
            self.record_count,
            now_s - self.began_at_s,
        )


@dataclass(slots=True)
class FollowedStore(Generic[T]):
    """Tracks a store that follows its changelog."""

    task: T
    logged_store: LoggedStore
    changelog: ChangelogRange | None = None
    """The range as of the last fetch, up to the store's limit; None while the store waits."""
    since_ms: int = 0
    """What `StoreCheckpoint.written_ms` is until the store has reached the end of the range."""
    written_ms: int = 0
    """What it is in the checkpoint that was written last."""
    is_from_scratch: bool = False
    """Whether the store was empty and has not caught up since."""
    is_reading: bool = False
    is_durable: bool = True
    corruption_count: int = 0

    def set_position_by_checkpoint(self) -> None:
        """Set the store's position to that of its checkpoint, 0 if it has none or is damaged.

        Damage is met again, and mended, when the range of the changelog is known.
        """
        try:
            position = self.logged_store.read_checkpoint_position()
        except StoreCorrupted:
            position = 0
        self.logged_store.changelog_position = position

    def show_to_readers(self) -> None:
        """Let other threads read the store, unless it waits, or has never had all of its changelog.

        A changelog that is compacted has no moment of the past before its end.
        """
        if self.changelog is not None and not self.is_from_scratch:
            self.logged_store.show_to_readers(self.since_ms)

    def snapshot_progress(self) -> StandbyProgress:
        """Return how far the store is."""
        return StandbyProgress(
            self.task.name,
            self.logged_store.store.name,
            self.logged_store.changelog,
            self.logged_store.changelog_position,
            None if self.changelog is None else self.changelog.end_offset,
        )


class RestoredTasks(Generic[T]):
    """Hands restored tasks, or what went wrong, to the thread that waits for them."""

    def __init__(self, host: Host) -> None:
        self._tasks: deque[T] = deque()
        self._failure: Exception | None = None
        self._changed: Event = host.create_event()

    @property
    def has_failed(self) -> bool:
        """Return whether there is a failure that was not raised yet."""
        return self._failure is not None

    def add_task(self, task: T) -> None:
        """Add a restored task, and wake who waits."""
        self._tasks.append(task)
        self._changed.set()

    def add_failure(self, failure: Exception) -> None:
        """Add an error of a restore, and wake the thread that waits for tasks."""
        self._failure = failure
        self._changed.set()

    def wait_for_task(self, wait_s: float) -> None:
        """Wait at most `wait_s` seconds for a task or a failure."""
        if not (self._tasks or self._failure):
            self._changed.wait(wait_s)

    def raise_failure_if_any(self) -> None:
        """Raise the failure, once, if there is one."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def pop_tasks_or_raise_failure(self) -> list[T]:
        """Remove and return all tasks. Raises the failure if there is one and no task."""
        self._changed.clear()
        taken = [self._tasks.popleft() for _ in range(len(self._tasks))]
        if not taken:
            self.raise_failure_if_any()
        return taken

    def remove_tasks(self, task_names: Collection[str]) -> list[T]:
        """Remove and return those of the named tasks that were not taken.

        A refusal that was not raised is dropped, which may be about offsets of another generation.
        If it is true of a task that is left, it is found again.
        """
        if isinstance(self._failure, PositionRefused):
            self._failure = None
        removed = [task for task in self._tasks if task.name in task_names]
        for task in removed:
            self._tasks.remove(task)
        return removed


def try_make_withdrawn_store_durable(logged: LoggedStore) -> Exception | None:
    """Flush the records that a withdrawn store has restored; return the error if that fails.

    Damage is none: the next restore of the store finds it again.
    """
    try:
        logged.store.finish_restore()
    except StoreCorrupted as damage:
        log.warning("%s", damage)
    except Exception as error:
        return error
    return None


def log_restored_store(done: RestoreProgress) -> None:
    """Log that a store has been restored."""
    log.info(
        "store %r of task %s is restored: %d records in %.1f s",
        *(done.store, done.task, done.restored_records, done.elapsed_s),
    )


def to_changelog_entries(messages: Iterable[Any]) -> Iterator[ChangelogEntry]:
    """Yield the changelog entry of each message.

    A timestamp of 0 in a store is negative in its changelog
    (`LoggedStore.send_changes_to_changelog`).
    """
    return (
        (m.key(), m.value(), time_ms if (time_ms := m.timestamp()[1]) > 0 else 0) for m in messages
    )


def group_by_partition(
    messages: list[Any], possible_topics: Collection[str]
) -> dict[Partition, list[Any]]:
    """Group messages by partition, in order; all are of the `possible_topics`.

    Messages are fetched, and so returned, in long runs of one partition. If only one topic is
    possible, no more than the partition number of each message is read.
    """
    by_number: dict[int, list[Any]] = {}
    for number, run in groupby(messages, key=methodcaller("partition")):
        by_number.setdefault(number, []).extend(run)
    if len(possible_topics) == 1:
        (topic,) = possible_topics
        return {Partition(topic, number): found for number, found in by_number.items()}
    by_partition: dict[Partition, list[Any]] = {}
    for number, found in by_number.items():
        for topic, run in groupby(found, key=methodcaller("topic")):
            by_partition.setdefault(Partition(topic, number), []).extend(run)
    return by_partition
