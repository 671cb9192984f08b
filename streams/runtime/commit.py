"""Commit tasks in the one order of steps in which a crash at any point loses and doubles nothing.

    step           what it makes true                                 a crash after it
    PRODUCED       outputs and changelogs are delivered, uncommitted  the transaction is aborted
    OFFSETS_SENT   the inputs' offsets are in the transaction         the transaction is aborted
    COMMITTED      all of it is visible at once                       stores catch up by replay
    STORING        some of a store's changes are on disk              the store catches up by replay
    STORED         the stores are on disk with their positions        nothing to do

At least once the same steps run without a transaction: a crash after PRODUCED doubles what was
produced, which is what exactly once is for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum, auto

from streams.errors import OutcomeUnknown, TaskMigrated
from streams.membership.connection import ConnectionLost
from streams.positions import Committed, Partition
from streams.runtime.interfaces import AdminClient, ConsumerClient
from streams.runtime.ledger import Ledger
from streams.runtime.producers import Producers
from streams.runtime.task import Task


class Step(Enum):
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


Offsets = list[tuple[Partition, Committed]]


class Committer:
    """Commits the tasks of one thread.

    `ledger`, if there is one, writes into each transaction what the transaction read and wrote.
    `get_group_metadata` returns the group's metadata with the current generation,
    `commit_as_member` commits offsets outside a transaction and returns whether the group accepts
    them. `on_commit` is called with the committed offsets, `on_step` with each `CommitStep`.

    Kafka Streams' counterpart is TaskExecutor.commitOffsetsOrTransaction.
    """

    def __init__(
        self,
        consumer: ConsumerClient,
        admin: AdminClient,
        producers: Producers,
        *,
        ledger: Ledger | None,
        group: Callable[[], bytes],
        commit_as_member: Callable[[Offsets], bool],
        committed: Callable[[Offsets], None],
        reached: Callable[[Step], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._consumer = consumer
        self._admin = admin
        self._producers = producers
        self._ledger = ledger
        self._group = group
        self._commit_as_member = commit_as_member
        self._committed = committed
        self._reached = reached
        self._now_ms = now_ms

    def commit(self, tasks: Collection[Task]) -> int:
        """Commit what `tasks` did since the last commit and return how many tasks had something.

        Tasks that share a producer are committed in one transaction, all or none of them; the
        others one after the other.

        Raises: TaskMigrated, OutcomeUnknown, ValueRefused or StreamsError; then nothing of it may
        be used any more: the tasks are to be rolled back.
        """
        dirty = [task for task in tasks if task.dirty]
        if not dirty:
            return 0
        # The checkpoints get the time before Kafka has agreed to the commit: afterwards the tasks
        # may be lost, and another member may write above their positions meanwhile.
        now_ms = self._now_ms()
        self._reached(Step.PROCESSED)
        for task in dirty:
            task.flush()
            # A refused value has to be found before anything is in a changelog: without a
            # transaction what is written there stays.
            task.serialize_changes()
        shared = self._producers.shared(dirty)
        if not all(producer.transactional for producer, _ in shared):
            # At least once nothing fences what a zombie writes into a changelog, so nothing is
            # written before the group has confirmed that the tasks are still ours.
            self._producers.check_membership("nothing was written")
        for producer, together in shared:
            for task in together:
                task.log_changes(producer)
        for producer, _ in shared:
            producer.flush()
        self._reached(Step.PRODUCED)
        positions = self._consumer.positions(p for task in dirty for p in task.positions)
        for task in dirty:
            task.advance(positions, now_ms)
        for producer, together in shared:
            if producer.transactional:
                offsets = _offsets(together)
                if self._ledger is not None:
                    self._ledger.write(producer, together)
                producer.commit(offsets, self._group())
                self._reached(Step.OFFSETS_SENT)
                producer.end()
            else:
                offsets = self._commit_at_least_once(together)
            self._reached(Step.COMMITTED)
            self._committed(offsets)
            for task in together:
                task.committed(now_ms)
            self._reached(Step.STORED)
        return len(dirty)

    def _commit_at_least_once(self, dirty: list[Task]) -> Offsets:
        """Commit the offsets of tasks outside a transaction and return them."""
        latest = self._admin.latest([p for task in dirty for p in task.changelogs()])
        for task in dirty:
            task.delivered(latest)
        offsets = _offsets(dirty)
        try:
            accepted = self._commit_as_member(offsets)
        except ConnectionLost as error:
            raise OutcomeUnknown(f"commit offsets: {error}") from error
        if not accepted:
            raise TaskMigrated("the group has moved on: offsets were refused")
        return offsets


def _offsets(tasks: Collection[Task]) -> Offsets:
    """Return the offsets that the tasks commit, at least one for each task.

    The group checks the generation of a commit by its offsets (decision 9), and librdkafka does not
    send an empty list; so a task in which only a punctuation wrote commits an offset too.

    Raises: RuntimeError for a task that has no offset, which is a mistake in the runtime.
    """
    offsets: Offsets = []
    for task in tasks:
        mine = task.offsets()
        if not mine:
            raise RuntimeError(f"task {task.name} would commit what it wrote without an offset")
        offsets += mine
    return offsets
