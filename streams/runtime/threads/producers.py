"""Choose the producer of each task, by the processing guarantee.

    guarantee          producers       transactional.id                       a transaction holds
    exactly_once_v2    one a thread    <application.id>-<slot id>-<thread>    the thread's tasks
    exactly_once       one a task      <application.id>-<topic>_<partition>   one task
    at_least_once      one a thread    none                                   -

Whatever the guarantee: a transactional producer has fenced its predecessor of the same id before
the task's committed offsets are read, and every transaction carries offsets with the generation of
the group. So the two ways of being exactly once may run in one group at the same time.

A task's own producer is named after the first of its topics: its number may be another task's in
another version of the topology, and the two would fence each other for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from streams.common.host import Host
from streams.errors import OutcomeUnknown, StreamsError, TaskMigrated
from streams.membership.broker_outage import IsOverdue
from streams.membership.connection import ConnectionLost
from streams.runtime.access.resource_names import (
    transactional_id_prefix,
)
from streams.runtime.clients.interfaces import ProducerClient
from streams.runtime.clients.refused_writes import RefusedWrites
from streams.runtime.clients.topic_limits import (
    MESSAGE_BYTES_MAX_DEFAULT,
    FetchTopicLimits,
    find_no_limits,
)
from streams.runtime.tasks.task import Task
from streams.runtime.threads.producer_creation import CreateProducer, ProducerCreations
from streams.settings.guarantees import PRODUCER_PER_TASK, WITHOUT_TRANSACTIONS

log = logging.getLogger(__name__)


class TaskProducers:
    """Creates and holds the producers of one thread's tasks.

    `create_producer` is given the name that tells a producer from others: the transactional id,
    where there is one. `is_member` asks the group whether it still has this member. `name_task`
    names a task as every version of the topology does. For `creation_timeout_ms` the creation of a
    task's own producer may fail. `fetch_limits` looks up what a topic excludes by its settings,
    `producer_bytes_max` is the producers' `message.max.bytes`.
    """

    def __init__(
        self,
        create_producer: CreateProducer,
        *,
        guarantee: str,
        application_id: str,
        thread_id: str,
        is_member: Callable[[], bool],
        host: Host,
        creation_timeout_ms: int,
        is_overdue: IsOverdue | None = None,
        name_task: Callable[[str], str] = str,
        fetch_limits: FetchTopicLimits = find_no_limits,
        producer_bytes_max: int = MESSAGE_BYTES_MAX_DEFAULT,
    ) -> None:
        self._create_producer = create_producer
        self._is_member = is_member
        self._name_task = name_task
        self.is_transactional = guarantee != WITHOUT_TRANSACTIONS
        """Whether the producers write in transactions."""
        self.is_one_per_task = guarantee == PRODUCER_PER_TASK
        """Says whether each task has a producer of its own."""
        self._application_id = application_id
        self._thread_id = thread_id
        self._producers: dict[str, ProducerClient] = {}
        self.refused_writes = RefusedWrites(fetch_limits, producer_bytes_max)
        """The writes of the thread's tasks that brokers have refused."""
        self._is_closing_in_order = True
        self.creations = ProducerCreations(
            create_producer,
            self._check_task_membership,
            host,
            timeout_ms=creation_timeout_ms,
            is_overdue=is_overdue,
        )
        """The producers of single tasks that are being created."""

    def try_prepare_producer(self, task_name: str) -> bool:
        """Return whether a task has a producer, which is created if it has not.

        A new transactional one has fenced its predecessor when this returns True: offsets that are
        read from then on are not changed by the predecessor any more. The producer of a single task
        is created beside the thread: see `streams.runtime.threads.producer_creation`. Raises what
        creating a producer raises.
        """
        name = self._producer_name(task_name)
        if name in self._producers:
            return True
        if self.is_one_per_task:
            producer = self.creations.take_created_or_begin_creation(task_name, name)
        else:
            producer = self._create_producer(name)
        if producer is None:
            return False
        self._producers[name] = producer
        self._is_closing_in_order = True
        return True

    def get_producer(self, task_name: str) -> ProducerClient:
        """Return the producer of a task, for which `try_prepare_producer` has returned True."""
        return self._producers[self._producer_name(task_name)]

    def _check_task_membership(self, task_name: str) -> None:
        """Raise TaskMigrated if a task may be another member's, and OutcomeUnknown.

        A new producer fences whoever has the task's transactional id. A zombie, whose own producer
        was fenced, would fence its successor.
        """
        self.check_membership(f"task {task_name} moved")

    def check_membership(self, consequence: str) -> None:
        """Ask the group whether it still has this member, and raise TaskMigrated if not.

        The error ends with the `consequence`. Raises OutcomeUnknown where no coordinator answers.
        """
        try:
            is_member = self._is_member()
        except ConnectionLost as error:
            raise OutcomeUnknown(f"ask the group for our membership: {error}") from error
        if not is_member:
            raise TaskMigrated(f"the group does not know this member any more: {consequence}")

    def begin_transaction(self, task_name: str) -> None:
        """Begin a transaction of a task's producer, unless one is open."""
        self.get_producer(task_name).begin_transaction()

    def poll_delivery_reports(self) -> None:
        """Serve the delivery reports that have arrived, without waiting."""
        for producer in self._producers.values():
            producer.poll_delivery_reports()

    def group_by_producer(self, tasks: Iterable[Task]) -> list[tuple[ProducerClient, list[Task]]]:
        """Group tasks by their producer: those of one producer are committed in one transaction."""
        groups: dict[ProducerClient, list[Task]] = {}
        for task in tasks:
            groups.setdefault(self.get_producer(task.name), []).append(task)
        return list(groups.items())

    def release_producer(self, task_name: str) -> None:
        """Close the producer of a task that was closed, if the task has one of its own.

        One that is being created is not wanted any more, and nobody waits for it.
        """
        if self.is_one_per_task:
            name = self._producer_name(task_name)
            self.creations.cancel_creation(task_name)
            producer = self._producers.pop(name, None)
            if producer is not None:
                self._close_producer(producer)

    def replace_producer(self, task_name: str, delay_s: float, reason: str) -> None:
        """Discard the producer of a task, and create the next one after a delay of seconds.

        For a task with one of its own, for a `reason` that is told until then.
        """
        producer = self._producers.pop(self._producer_name(task_name), None)
        if producer is not None:
            producer.discard()
        self.creations.postpone_creation(task_name, delay_s, reason)

    def _producer_name(self, task_name: str) -> str:
        """Return the name of a task's producer, which is its transactional id if it has one."""
        if self.is_one_per_task:
            prefix = transactional_id_prefix(self._application_id, PRODUCER_PER_TASK)
            return f"{prefix}{self._name_task(task_name)}"
        return self._thread_id

    def abort_transactions(self, *, has_missed_generation: bool = False) -> None:
        """Abort all open transactions, and go on with the producers: nobody has fenced them.

        Where that is not possible the producers are discarded. So are those of single tasks if the
        member has missed a generation: another may have had the task then, and fenced its producer.
        """
        if has_missed_generation and self.is_one_per_task:
            self.creations.cancel_all_creations()
            self.discard_producers()
            return
        try:
            for producer in self._producers.values():
                if producer.delivered_offsets is not None:
                    # Reports of aborted records would be taken for those of the next transaction.
                    raise OutcomeUnknown(f"{producer.name} tracks what it delivers")
                producer.abort_transaction()
        except (TaskMigrated, OutcomeUnknown, StreamsError) as error:
            log.info("producers are made anew: %s", error)
            self.discard_producers()

    def discard_producers(self) -> None:
        """Discard all producers without a commit; their successors fence them.

        Those that are being created have nothing to commit, and go on.
        """
        producers, self._producers = self._producers, {}
        for producer in producers.values():
            producer.discard()

    def cancel_all_creations(self) -> None:
        """End the creation of producers, before other members get the tasks.

        Waits for what is under way, at most two seconds.
        """
        self.creations.cancel_all_creations()
        self.creations.wait_until_cancelled()

    def close_producers(self) -> None:
        """Close all producers, and abort open transactions so that nobody waits for them."""
        self.cancel_all_creations()
        producers, self._producers = self._producers, {}
        for producer in producers.values():
            self._close_producer(producer)

    def _close_producer(self, producer: ProducerClient) -> None:
        """Close one producer; only discard it if closing an earlier one has failed.

        While no broker answers each would take the whole time-out; a transaction that is left open
        ends by its own.
        """
        if self._is_closing_in_order:
            self._is_closing_in_order = producer.try_abort_and_close()
        else:
            producer.discard()
