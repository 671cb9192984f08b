"""Commit tasks in the one order of steps in which a crash at any point loses and doubles nothing.

    step           what it makes true                                 a crash after it
    PRODUCED       outputs and changelogs are delivered, uncommitted  the transaction is aborted
    OFFSETS_SENT   the inputs' offsets are in the transaction         the transaction is aborted
    COMMITTED      all of it is visible at once                       stores catch up by replay
    STORING        some of a store's changes are on disk              the store catches up by replay
    STORED         stores have it: on disk, or about to be there      the store catches up by replay

At least once the same steps run without a transaction: a crash after PRODUCED doubles what was
produced, which is what exactly once is for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import Enum, auto

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import (
    OutcomeUnknown,
    StreamsError,
    TaskMigrated,
    TaskOutcomeUnknown,
    ValueRefused,
)
from streams.membership.connection import ConnectionLost
from streams.runtime.changelogs.window_expiry import ExpiredRecords
from streams.runtime.clients.errors import ChangeTooLarge
from streams.runtime.clients.interfaces import AdminClient, ConsumerClient, ProducerClient
from streams.runtime.clients.refused_writes import RefusedWrites
from streams.runtime.tasks.task import Task
from streams.runtime.threads.ledger_writer import LedgerWriter
from streams.runtime.threads.producers import TaskProducers


class CommitStep(Enum):
    """Names the points of a commit, in their order, at which a test may end the process.

    STORING is between two batches of one store's write: a small write never reaches it, a large one
    many times. RESTORING is in no commit: it is reached before each batch that a store is restored
    with.
    """

    PROCESSED = auto()
    PRODUCED = auto()
    OFFSETS_SENT = auto()
    COMMITTED = auto()
    STORING = auto()
    STORED = auto()
    RESTORING = auto()


PartitionOffsets = list[tuple[Partition, OffsetAndMetadata]]


class TaskCommitter:
    """Commits the tasks of one thread.

    `ledger`, if there is one, writes into each transaction what the transaction read and wrote.
    `get_group_metadata` returns the group's metadata with the current generation, which stays while
    the context of `hold_membership` lasts, for as many seconds as it yields at most.
    `commit_as_member` commits offsets outside a transaction and returns whether the group accepts
    them. `on_commit` is called with the committed offsets, `on_step` with each `CommitStep`.

    Kafka Streams' counterpart is TaskExecutor.commitOffsetsOrTransaction.
    """

    def __init__(
        self,
        consumer: ConsumerClient,
        admin: AdminClient,
        producers: TaskProducers,
        *,
        ledger: LedgerWriter | None,
        get_group_metadata: Callable[[], bytes],
        hold_membership: Callable[[], AbstractContextManager[float]],
        commit_as_member: Callable[[PartitionOffsets], bool],
        on_commit: Callable[[PartitionOffsets], None],
        on_step: Callable[[CommitStep], None],
        now_ms: Callable[[], int],
        on_expired: Callable[[list[ExpiredRecords]], None] = lambda expired: None,
    ) -> None:
        self._consumer = consumer
        self._admin = admin
        self._producers = producers
        self._ledger = ledger
        self._get_group_metadata = get_group_metadata
        self._hold_membership = hold_membership
        self._commit_as_member = commit_as_member
        self._on_commit = on_commit
        self._on_step = on_step
        self._now_ms = now_ms
        self._on_expired = on_expired

    def commit_tasks(self, tasks: Collection[Task]) -> int:
        """Commit the work of `tasks` since the last commit, and return how many were committed.

        Tasks that share a producer are committed in one transaction, all or none of them; the
        others one after the other.

        Raises: TaskMigrated, OutcomeUnknown, ValueRefused or StreamsError; then nothing of it may
        be used any more: the tasks are to be rolled back. For the transaction of a single task
        OutcomeUnknown is TaskOutcomeUnknown.
        """
        dirty = [task for task in tasks if task.commit_needed]
        if not dirty:
            return 0
        # The checkpoints get the time before Kafka has agreed to the commit: afterwards the tasks
        # may be lost, and another member may write above their positions meanwhile.
        now_ms = self._now_ms()
        self._on_step(CommitStep.PROCESSED)
        for task in dirty:
            task.steps.emit_pending_results()
            # A refused value has to be found before anything is in a changelog: without a
            # transaction what is written there stays.
            task.steps.serialize_changes()
        shared, refused_writes = (
            self._producers.group_by_producer(dirty),
            self._producers.refused_writes,
        )
        if not all(producer.transactional for producer, _ in shared):
            # At least once nothing fences what a zombie writes into a changelog, so nothing is
            # written before the group has confirmed that the tasks are still ours.
            self._producers.check_membership("nothing was written")
            self._commit_first_offsets(dirty)
        for producer, together in shared:
            for task in together:
                try:
                    task.stores.send_changes_to_changelog(
                        refused_writes.wrap_changelog_producer_if_searching(producer)
                    )
                except ChangeTooLarge as error:
                    raise _create_large_value_refusal(task, error, refused_writes) from error
        for producer, together in shared:
            with self._translate_to_task_outcome(together, dirty):
                producer.flush()
        self._on_step(CommitStep.PRODUCED)
        positions = self._consumer.next_offsets(p for task in dirty for p in task.positions)
        for task in dirty:
            task.prepare_next_commit(positions, now_ms)
        for producer, together in shared:
            with self._translate_to_task_outcome(together, dirty):
                self._commit_tasks_of_producer(producer, together, now_ms)
        refused_writes.end_search_if_quiet(now_ms)
        return len(dirty)

    @contextmanager
    def _translate_to_task_outcome(self, together: list[Task], dirty: list[Task]) -> Iterator[None]:
        """Add the task's name to an OutcomeUnknown of the block if its producer is one task's.

        `together` are the transaction's tasks, `dirty` those of the commit.
        """
        try:
            yield
        except OutcomeUnknown as error:
            if not self._producers.is_one_per_task:
                raise
            (task,) = together
            raise TaskOutcomeUnknown(task.name, str(error), is_alone=len(dirty) == 1) from error

    def _commit_tasks_of_producer(
        self, producer: ProducerClient, together: list[Task], now_ms: int
    ) -> None:
        """Commit the tasks of one producer, whose records are delivered."""
        for task in together:
            task.commit_pending_since_ms = now_ms
        if producer.transactional:
            try:
                offsets = collect_committable_offsets(together)
            except OutcomeUnknown as undelivered:  # which says only that something was not
                raise producer.find_transaction_error() or undelivered from undelivered
            if self._ledger is not None:
                self._ledger.write_transaction(producer, together)
            with self._hold_membership() as limit_s:
                metadata = self._get_group_metadata()
                producer.send_offsets_to_transaction(offsets, metadata, limit_s)
            self._on_step(CommitStep.OFFSETS_SENT)
            producer.commit_transaction()
        else:
            offsets = self._commit_at_least_once(together)
        self._on_step(CommitStep.COMMITTED)
        self._on_commit(offsets)
        self._on_expired([each for task in together for each in task.pop_expired_records()])
        _commit_stores(together, now_ms)
        self._on_step(CommitStep.STORED)

    def _commit_at_least_once(self, dirty: list[Task]) -> PartitionOffsets:
        """Commit the offsets of tasks outside a transaction and return them."""
        latest = self._admin.fetch_latest_offsets(
            [p for task in dirty for p in task.stores.list_written_changelogs()]
        )
        for task in dirty:
            task.stores.set_changelog_positions(latest)
        offsets = collect_committable_offsets(dirty)
        self._commit_offsets_as_member(offsets)
        return offsets

    def _commit_first_offsets(self, dirty: list[Task]) -> None:
        """Commit where inputs began that have no committed offset, before changelogs are written.

        After a crash in between a task would else look like one whose offsets were lost.
        """
        if first := [each for task in dirty for each in task.pop_first_offsets()]:
            self._commit_offsets_as_member(first)

    def _commit_offsets_as_member(self, offsets: PartitionOffsets) -> None:
        """Commit offsets as a member. Raises TaskMigrated if the group refuses, OutcomeUnknown."""
        try:
            accepted = self._commit_as_member(offsets)
        except ConnectionLost as error:
            raise OutcomeUnknown(f"commit offsets: {error}") from error
        if not accepted:
            raise TaskMigrated("the group has moved on: offsets were refused")


def _create_large_value_refusal(
    task: Task, error: ChangeTooLarge, refused_writes: RefusedWrites
) -> Exception:
    """Return ValueRefused with the limit of a changelog, to find the record that goes beyond it.

    The repetition asks the processing handler before the store has the value. It returns an
    error that ends the thread if the limit is not known, or the search has not helped.
    """
    store = task.stores.find_store_of_changelog(error.topic)
    limit = refused_writes.find_change_limit(error.topic, error.size)
    if limit is None or store is None or not task.early_serialization.is_lower_limit(store, limit):
        return StreamsError(
            f"{error}. The store has it already, so no handler can skip it: keep less in one "
            "value, or raise message.max.bytes of the producer and max.message.bytes of the topic"
        )
    return ValueRefused(task.name, str(error), {store: limit})


def _commit_stores(tasks: Collection[Task], now_ms: int) -> None:
    """Hand the committed changes of all tasks to their disks, and then raise the first error.

    Kafka has committed the transaction of all: damage in one task takes nothing from another.
    """
    failure: Exception | None = None
    for task in tasks:
        try:
            task.commit_stores(now_ms)
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure


def collect_committable_offsets(tasks: Collection[Task]) -> PartitionOffsets:
    """Return the offsets that the tasks commit, at least one for each task.

    The group checks the generation of a commit by its offsets (decision 9), and librdkafka does not
    send an empty list; so a task in which only a punctuation wrote commits an offset too.

    Raises: RuntimeError for a task that has no offset, which is a mistake in the runtime.
    """
    offsets: PartitionOffsets = []
    for task in tasks:
        mine = task.committable_offsets()
        if not mine:
            raise RuntimeError(f"task {task.name} would commit what it wrote without an offset")
        offsets += mine
    return offsets
