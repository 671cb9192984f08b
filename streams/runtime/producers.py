"""Which producer a task writes with: the one place where the guarantees differ for the loop.

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
    """The producers of one thread, made when a task needs them. `new` is given the name that tells
    a producer from others: the transactional id, where there is one. `is_member` asks the group
    whether it still knows us. `name_task` names a task as every version of the topology does."""

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
        """The producer of a task. A new transactional one has fenced its predecessor: offsets that
        are read from now on are not changed by it any more. Raises what making a producer raises.
        """
        name = self._name(task)
        producer = self._made.get(name)
        if producer is None:
            if self._one_each:
                # It takes the task's transactional id from whoever has it: a zombie whose own was
                # fenced would take it back from its successor.
                self.check_membership(f"task {task} moved")
            producer = self._made[name] = self._new(name)
            self._in_order = True
        return producer

    def check_membership(self, otherwise: str) -> None:
        """Ask the group whether it still knows us. Raises TaskMigrated, which ends with what it
        means `otherwise`, and OutcomeUnknown where nobody answers."""
        try:
            ours = self._is_member()
        except ConnectionLost as error:
            raise OutcomeUnknown(f"ask the group for our membership: {error}") from error
        if not ours:
            raise TaskMigrated(f"the group does not know this member any more: {otherwise}")

    def begin(self, task: str) -> None:
        """A task is about to write: make sure that its transaction is open."""
        self.of(task).begin()

    def poll(self) -> None:
        """Serve what has been delivered, without waiting."""
        for producer in self._made.values():
            producer.poll()

    def shared(self, tasks: Iterable[Task]) -> list[tuple[ProducerClient, list[Task]]]:
        """The tasks by producer: those of one are committed in one transaction."""
        groups: dict[ProducerClient, list[Task]] = {}
        for task in tasks:
            groups.setdefault(self.of(task.name), []).append(task)
        return list(groups.items())

    def release(self, task: str) -> None:
        """A task was closed: a producer of its own goes with it."""
        if self._one_each:
            producer = self._made.pop(self._name(task), None)
            if producer is not None:
                self._end(producer)

    def _name(self, task: str) -> str:
        # Neither an application id nor a topic can have the colon: without it application `a` that
        # reads `b-c` and application `a-b` that reads `c` would have one id, and fence each other.
        if self._one_each:
            return f"{self._application}-task:{self._name_task(task)}"
        return self._thread

    def discard(self) -> None:
        """Give all up, with all that they hold. Their successors fence them."""
        made, self._made = self._made, {}
        for producer in made.values():
            producer.discard()

    def close(self) -> None:
        """End in order: open transactions are aborted, so that nobody waits for them."""
        made, self._made = self._made, {}
        for producer in made.values():
            self._end(producer)

    def _end(self, producer: ProducerClient) -> None:
        """In order; but not after one could not be: while no broker answers each would take the
        whole time-out, and a transaction that is left open ends by its own."""
        if self._in_order:
            self._in_order = producer.close()
        else:
            producer.discard()
