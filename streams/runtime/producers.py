"""Choose the producer of each task: the one place where the guarantees differ for the loop.

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

from collections.abc import Callable, Iterable

from streams.errors import OutcomeUnknown, TaskMigrated
from streams.membership.connection import ConnectionLost
from streams.runtime.interfaces import ProducerClient
from streams.runtime.task import Task

ONE_EACH = "exactly_once"
"""The guarantee that gives each task a producer of its own."""


class Producers:
    """Creates and holds the producers of one thread's tasks.

    `create_producer` is given the name that tells a producer from others: the transactional id,
    where there is one. `is_member` asks the group whether it still has this member. `name_task`
    names a task as every version of the topology does.
    """

    def __init__(
        self,
        new: Callable[[str], ProducerClient],
        *,
        guarantee: str,
        application: str,
        thread: str,
        is_member: Callable[[], bool],
        name_task: Callable[[str], str] = str,
    ) -> None:
        self._new = new
        self._is_member = is_member
        self._name_task = name_task
        self._one_each = guarantee == ONE_EACH
        self._application = application
        self._thread = thread
        self._made: dict[str, ProducerClient] = {}
        self._in_order = True

    def of(self, task: str) -> ProducerClient:
        """Return the producer of a task, which is created at the first call.

        A new transactional one has fenced its predecessor when this returns: offsets that are read
        from now on are not changed by the predecessor any more. Raises what creating a producer
        raises.
        """
        name = self._name(task)
        producer = self._made.get(name)
        if producer is None:
            if self._one_each:
                # A new producer fences whoever has the task's transactional id. A zombie, whose own
                # producer was fenced, would fence its successor.
                self.check_membership(f"task {task} moved")
            producer = self._made[name] = self._new(name)
            self._in_order = True
        return producer

    def check_membership(self, otherwise: str) -> None:
        """Ask the group whether it still has this member, and raise TaskMigrated if not.

        The error ends with the `consequence`. Raises OutcomeUnknown where no coordinator answers.
        """
        try:
            is_member = self._is_member()
        except ConnectionLost as error:
            raise OutcomeUnknown(f"ask the group for our membership: {error}") from error
        if not is_member:
            raise TaskMigrated(f"the group does not know this member any more: {otherwise}")

    def begin(self, task: str) -> None:
        """Begin a transaction of a task's producer, unless one is open."""
        self.of(task).begin()

    def poll(self) -> None:
        """Serve the delivery reports that have arrived, without waiting."""
        for producer in self._made.values():
            producer.poll()

    def shared(self, tasks: Iterable[Task]) -> list[tuple[ProducerClient, list[Task]]]:
        """Group tasks by their producer: those of one producer are committed in one transaction."""
        groups: dict[ProducerClient, list[Task]] = {}
        for task in tasks:
            groups.setdefault(self.of(task.name), []).append(task)
        return list(groups.items())

    def release(self, task: str) -> None:
        """Close the producer of a task that was closed, if the task has one of its own."""
        if self._one_each:
            producer = self._made.pop(self._name(task), None)
            if producer is not None:
                self._end(producer)

    def _name(self, task: str) -> str:
        """Return the name of a task's producer, which is its transactional id if it has one."""
        # Neither an application id nor a topic can have the colon: without it application `a` that
        # reads `b-c` and application `a-b` that reads `c` would have one id, and fence each other.
        if self._one_each:
            return f"{self._application}-task:{self._name_task(task)}"
        return self._thread

    def discard(self) -> None:
        """Discard all producers with what they hold; their successors fence them."""
        producers, self._made = self._made, {}
        for producer in producers.values():
            producer.discard()

    def close(self) -> None:
        """Close all producers, and abort open transactions so that nobody waits for them."""
        producers, self._made = self._made, {}
        for producer in producers.values():
            self._end(producer)

    def _end(self, producer: ProducerClient) -> None:
        """Close one producer, or only discard it once closing another one has failed.

        While no broker answers each would take the whole time-out; a transaction that is left open
        ends by its own.
        """
        if self._in_order:
            self._in_order = producer.close()
        else:
            producer.discard()
