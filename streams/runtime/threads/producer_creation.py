"""Create the producers of single tasks beside the stream thread, which goes on with other tasks.

Theory of operation. A transactional producer waits for the coordinator of its transactional id, and
each task's id may have another coordinator. So each producer is created on a thread of its own, by
attempts that the stream thread starts and looks after:

    the attempt         what the stream thread does at its next turn
    is under way        goes on with what runs
    has the producer    takes it: offsets that are read from now on are the predecessor's last
    met OutcomeUnknown  starts another one after a moment; once the task has failed for
                        `task_timeout_ms` while brokers answered, an error ends the thread
    met another error   raises it, as if the stream thread had met it

Before each attempt the group is asked whether it still has this member: a producer that a zombie
creates fences the task's next owner. For the same reason an attempt that is not wanted any more,
because the task is revoked or the worker stops, begins no further call, and its producer is
discarded unused. What its last request does to a producer that the next owner has got meanwhile
can't be taken back: that owner is fenced, recovers as from any TaskMigrated, and loses nothing.

A host that spawns no real threads, as a simulated one, makes an attempt within the call that starts
it. Kafka Streams' counterpart is AbstractTask.maybeInitTaskTimeoutOrThrow (KIP-572).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple, Protocol

from streams.common.host import Host, SpawnedThread
from streams.errors import BrokerUnavailable, OutcomeUnknown, StreamsError
from streams.membership.broker_outage import IsOverdue, create_overdue_check
from streams.runtime.clients.interfaces import ProducerClient

log = logging.getLogger(__name__)

_BACK_OFF_S = 0.2
_LOG_DELAY_S, _LOG_INTERVAL_S = 5.0, 30.0
_END_WAIT_S = 2.0
"""The end of a thread waits at most so many seconds for attempts that nobody wants any more."""


RequireWanted = Callable[[], None] | None
"""Is called again and again while a producer is created, and ends that by what it raises.

None: the producer is wanted in any case."""


class CreateProducer(Protocol):
    """Creates a producer of this name."""

    def __call__(self, name: str, require_wanted: RequireWanted = None) -> ProducerClient: ...


class _Attempt:
    """Represents one attempt to create a producer, on a thread of its own."""

    def __init__(
        self, create_producer: Callable[[Callable[[], None]], ProducerClient], host: Host
    ) -> None:
        self._create_producer = create_producer
        self._lock = host.create_lock()
        self._is_wanted = True
        self._producer: ProducerClient | None = None
        self.error: Exception | None = None
        self.is_over = False
        """Says whether there is a producer to take, or an error."""
        self.thread: SpawnedThread | None = None

    def run(self) -> None:
        """Create the producer, and discard it if nobody wants it any more."""
        producer = None
        try:
            self._require_wanted()
            producer = self._create_producer(self._require_wanted)
        except Exception as error:
            self.error = error
        finally:
            if producer is None and self.error is None:  # such as SystemExit
                self.error = StreamsError("the thread that creates a producer has ended")
            with self._lock:
                self._producer = producer
                self.is_over = True
                is_wanted = self._is_wanted
            if not is_wanted:
                self._discard_producer()

    def get_producer_or_raise(self) -> ProducerClient:
        """Return the producer of an attempt that is over, or raise the attempt's error."""
        if self.error is not None:
            raise self.error
        assert self._producer is not None, "the attempt is not over"
        return self._producer

    def cancel_creation(self) -> None:
        """Let the attempt end as soon as possible, and discard its producer."""
        with self._lock:
            self._is_wanted = False
            is_over = self.is_over
        if is_over:
            self._discard_producer()

    def _discard_producer(self) -> None:
        """Discard the producer, if there is one: its transactional id is another's."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.discard()

    def _require_wanted(self) -> None:
        """Raise OutcomeUnknown if nobody wants the producer any more."""
        if not self._is_wanted:
            raise OutcomeUnknown("its task is gone")


class ProducerWait(NamedTuple):
    """Describes a task that waits for its producer: since when, and why the last attempt failed."""

    task: str
    since_s: float
    failure: str


class _Creation:
    """Holds the attempts to create one task's producer, and since when they fail."""

    def __init__(self, now_s: float) -> None:
        self.began_at_s = now_s
        self.attempt: _Attempt | None = None
        self.next_attempt_at_s = now_s
        self.failing_since_s: float | None = None
        self.next_log_at_s = now_s + _LOG_DELAY_S
        self.failure = ""


class ProducerCreations:
    """Creates the producers of one thread's tasks, each with a deadline and an error of its own.

    `check_membership` is called with the name of a task before each attempt, and raises
    TaskMigrated if the group does not have this member any more. `timeout_ms` is for how long
    attempts may fail.
    """

    def __init__(
        self,
        create_producer: CreateProducer,
        check_membership: Callable[[str], None],
        host: Host,
        *,
        timeout_ms: int,
        is_overdue: IsOverdue | None = None,
    ) -> None:
        self._create_producer = create_producer
        self._check_membership = check_membership
        self._host = host
        self._timeout_ms = timeout_ms
        self._is_overdue = is_overdue or create_overdue_check(host)
        self._by_task: dict[str, _Creation] = {}
        self._unwanted: dict[str, _Attempt] = {}
        """Attempts that were cancelled and are not over, by the name of the task."""
        self._ended = host.create_event()

    @property
    def is_waiting(self) -> bool:
        """Return whether the producer of any task is being created."""
        return bool(self._by_task)

    @property
    def waits(self) -> tuple[ProducerWait, ...]:
        """Return the tasks that wait for their producers; another thread may ask."""
        return tuple(
            ProducerWait(task, each.began_at_s, each.failure)
            for task, each in tuple(self._by_task.items())
        )

    def take_created_or_begin_creation(self, task_name: str, name: str) -> ProducerClient | None:
        """Return the producer `name` of a task if it was created, and begin to create it if not.

        Raises: TaskMigrated, StreamsError or another error that no further attempt would cure;
        StreamsError for the last of those that may pass.
        """
        now_s = self._host.monotonic_s()
        creation = self._by_task.setdefault(task_name, _Creation(now_s))
        try:
            producer = self._attempt_creation(task_name, name, creation, now_s)
        except BaseException:
            del self._by_task[task_name]
            raise
        if producer is not None:
            del self._by_task[task_name]
        elif now_s >= creation.next_log_at_s:
            creation.next_log_at_s = now_s + _LOG_INTERVAL_S
            log.warning(
                "task %s has waited %.0f s for its producer, and other tasks go on: %s",
                task_name,
                now_s - creation.began_at_s,
                creation.failure or f"the coordinator of {name!r} has not let it begin yet",
            )
        return producer

    def wait_for_creation_attempt(self, wait_s: float) -> None:
        """Wait at most `wait_s` seconds until an attempt is over, of any task."""
        self._ended.wait(wait_s)
        self._ended.clear()

    def postpone_creation(self, task_name: str, delay_s: float, reason: str) -> None:
        """Create the producer of a task after a delay of seconds, for a reason that is told."""
        now_s = self._host.monotonic_s()
        creation = self._by_task[task_name] = _Creation(now_s)
        creation.next_attempt_at_s = now_s + delay_s
        creation.failure = reason

    def cancel_creation(self, task_name: str) -> None:
        """Cancel the creation of a task's producer, without waiting for a request under way."""
        creation = self._by_task.pop(task_name, None)
        if creation is not None and creation.attempt is not None:
            creation.attempt.cancel_creation()
            if not creation.attempt.is_over:
                self._unwanted[task_name] = creation.attempt

    def cancel_all_creations(self) -> None:
        """Cancel the creation of every producer."""
        for task_name in tuple(self._by_task):
            self.cancel_creation(task_name)

    def wait_until_cancelled(self) -> None:
        """Wait for the attempts that were cancelled, at most two seconds for all of them.

        One that does not end by then creates nothing any more.
        """
        deadline_s = self._host.monotonic_s() + _END_WAIT_S
        for attempt in self._unwanted.values():
            if attempt.thread is not None:
                attempt.thread.join(max(deadline_s - self._host.monotonic_s(), 0.0))
        self._unwanted.clear()

    def _attempt_creation(
        self, task_name: str, name: str, creation: _Creation, now_s: float
    ) -> ProducerClient | None:
        """Return the producer of an attempt that is over, or start one if it is time."""
        try:
            if creation.attempt is None:
                if now_s < creation.next_attempt_at_s or not self._try_forget_former_attempt(
                    task_name
                ):
                    return None
                self._check_membership(task_name)
                creation.attempt = self._start_attempt(task_name, name)
            return creation.attempt.get_producer_or_raise() if creation.attempt.is_over else None
        except OutcomeUnknown as error:
            self._schedule_next_attempt(task_name, creation, error)
            return None

    def _try_forget_former_attempt(self, task_name: str) -> bool:
        """Return whether no cancelled attempt for a task is still under way.

        Its request might come last, and fence the next attempt's producer.
        """
        former = self._unwanted.get(task_name)
        if former is not None and not former.is_over:
            return False
        self._unwanted.pop(task_name, None)
        return True

    def _start_attempt(self, task_name: str, name: str) -> _Attempt:
        """Start an attempt to create the producer `name`."""

        def run() -> None:
            try:
                attempt.run()
            finally:
                self._ended.set()

        attempt = _Attempt(
            lambda require_wanted: self._create_producer(name, require_wanted), self._host
        )
        attempt.thread = self._host.spawn_thread(f"producer-{task_name}", run)
        return attempt

    def _schedule_next_attempt(
        self, task_name: str, creation: _Creation, error: OutcomeUnknown
    ) -> None:
        """Schedule the next attempt. Raises StreamsError once attempts have failed for too long."""
        now_s = self._host.monotonic_s()
        creation.attempt, creation.failure = None, str(error)
        if creation.failing_since_s is None:
            creation.failing_since_s = now_s
        if self._is_overdue(creation.failing_since_s, self._timeout_ms / 1_000):
            raise BrokerUnavailable(
                f"task {task_name} has got no producer for {self._timeout_ms} ms "
                f"(task_timeout_ms): {error}"
            ) from error
        creation.next_attempt_at_s = now_s + _BACK_OFF_S
