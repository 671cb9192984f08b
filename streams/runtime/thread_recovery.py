"""Recover one thread from an error: discard what it did since its last commit, and go on.

    raised           discarded                     what happens to the tasks
    OutcomeUnknown   producers                     rolled back (the new producer fences the old)
    TaskCorrupted    producers                     rolled back; the stores that it names are rebuilt
    ValueRefused     producers                     rolled back; the one named serialises early
    TaskMigrated     producers, membership         closed without a commit: another may have them
    AuthorizationError and any other
    StreamsError     everything                    closed; the thread ends, the error is reported

A task that is rolled back stays open: the committed offsets are read back, stable; its stores are
restored from where they are; the consumer goes on from the offsets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from state.errors import StateError
from streams.errors import (
    OutcomeUnknown,
    StreamsError,
    TaskCorrupted,
    TaskMigrated,
    ValueRefused,
)
from streams.runtime.clients.errors import TopicRefused
from streams.runtime.thread_dependencies import ThreadDependencies
from streams.runtime.thread_state import ThreadState
from streams.runtime.thread_tasks import ThreadTasks

log = logging.getLogger(__name__)

_BACK_OFF_S = 0.2
_IDLE_RECOVERY_S = 5.0
"""How long tasks have to run with nothing to commit before the last failure is cleared."""


class ThreadRecovery:
    """Recovers one thread from errors that allow it, and ends it if it never commits again.

    Kafka Streams' counterparts are StreamThread.runLoop, which catches the errors, and TaskManager
    (`handleCorruption`, `handleLostAll`).
    """

    def __init__(self, dependencies: ThreadDependencies, tasks: ThreadTasks) -> None:
        self._dependencies = dependencies
        self._tasks = tasks
        self.failing_since_s: float | None = None
        """The monotonic time of the first failure since the last commit; None if there was none."""
        self.last_failure = ""
        """The reason of the last recovery since the last commit; empty if there was none."""

    def run_with_recovery(self, action: Callable[[], None]) -> None:
        """Run `action` and recover from errors that allow it; raise StreamsError for others."""
        try:
            try:
                action()
            except TopicRefused:
                self._check_rights()
                raise
            except (TaskMigrated, TaskCorrupted, OutcomeUnknown, ValueRefused) as error:
                self._recover_from(error)
        except (StateError, OSError) as error:
            raise StreamsError(f"state: {error}") from error

    def clear_failure(self) -> None:
        """Clear the last failure: the thread has committed, or has been idle for a while."""
        self.failing_since_s = None
        self.last_failure = ""

    def clear_failure_if_idle(self) -> None:
        """Clear the last failure if all tasks have run for some seconds with nothing to commit."""
        now_s = self._dependencies.host.monotonic_s()
        if self._tasks.is_settled() and now_s - self._tasks.settled_at_s >= _IDLE_RECOVERY_S:
            self.clear_failure()

    def _check_rights(self) -> None:
        """Raise AuthorizationError if a right to a topic is missing, as far as can be known now."""
        try:
            self._dependencies.check_rights()
        except OutcomeUnknown as error:
            log.info("%s: rights are not known: %s", self._dependencies.name, error)

    def _recover_from(self, error: Exception) -> None:
        """Discard producers and uncommitted work, so that the loop goes on from the last commit.

        Raises: StreamsError if nothing has been committed for `task_timeout_ms`; AuthorizationError
        if it is not the first failure, and a right is missing.
        """
        parts, tasks = self._dependencies, self._tasks
        log.warning("%s starts over from what is committed: %s", parts.name, error)
        parts.counters.count_recovery(error)
        self.last_failure = str(error)
        now_s = parts.host.monotonic_s()
        if self.failing_since_s is None:
            self.failing_since_s = now_s
        # librdkafka often tells only that a record was not delivered, and not why. That other
        # tasks commit in between says nothing of the one that may not write. A first failure is
        # recovered from without a further request.
        if parts.counters.recoveries > 1 and isinstance(error, OutcomeUnknown):
            self._check_rights()
        if now_s - self.failing_since_s > parts.task_timeout_ms / 1000:
            raise StreamsError(
                f"no commit for {parts.task_timeout_ms} ms (task_timeout_ms): {error}"
            ) from error
        # Producers are discarded first: one that is closed in order would end its transaction.
        parts.producers.discard_producers()
        if isinstance(error, TaskMigrated):
            tasks.close_all_tasks()
            tasks.assignment = None
        else:
            tasks.roll_back_tasks()
        if isinstance(error, TaskCorrupted) and error.task in tasks.by_name:
            tasks.by_name[error.task].clear_stores(error.stores)
        if isinstance(error, ValueRefused) and error.task in tasks.by_name:
            tasks.by_name[error.task].early_serialization.start_serializing_early()
        parts.on_state_change(ThreadState.REBALANCING)
        parts.stop.wait(_BACK_OFF_S)
        # Without tasks nothing is left to start that would report RUNNING again.
        tasks.report_if_settled()
