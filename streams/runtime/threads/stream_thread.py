"""Run a stream loop on one of a worker's threads, and handle the error that ends it.

If the uncaught exception handler says so, another loop replaces one that failed: on this thread,
after a wait, with the same place in the group and so the same tasks.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import asdict, replace

from state.rocksdb import UNFLUSHED_STORES
from streams.common.host import SpawnedThread
from streams.common.user_code import describe_error
from streams.errors import StreamsError, UserError
from streams.membership.instance_fencing import IdentityReplaced
from streams.runtime.tasks.task import Task
from streams.runtime.threads.assembly import (
    create_stream_loop,
    leave_group_for_ended_thread,
    request_group_shutdown,
)
from streams.runtime.threads.commit import CommitStep
from streams.runtime.threads.loop import StreamLoop
from streams.runtime.threads.thread_state import ThreadState, create_thread_state_machine
from streams.runtime.threads.watchdog import ThreadFailure
from streams.runtime.threads.worker_resources import WorkerResources
from streams.settings.uncaught_exceptions import (
    ReplacementBackOff,
    UncaughtExceptionHandler,
    UncaughtExceptionResponse,
    call_uncaught_handler,
)

log = logging.getLogger(__name__)


class StreamThread:
    """Runs stream loops on one thread of a worker, one after the other.

    `on_state_change` is called with each new state, `on_failure` with the error that ends the
    worker, `on_step` at each step of a commit.
    """

    def __init__(
        self,
        worker: WorkerResources,
        thread_number: int,
        *,
        handler: UncaughtExceptionHandler,
        on_state_change: Callable[[ThreadState], None],
        on_failure: Callable[[UserError], None],
        on_step: Callable[[CommitStep], None],
    ) -> None:
        self.name = f"thread {thread_number}"
        self.ident: int | None = None
        """The id of the operating system's thread while it runs its loops; None before, while
        global tables are copied, so that the watchdog does not take it for stuck."""
        self.replaced_count = 0
        """How many loops were replaced."""
        self.failure: ThreadFailure | None = None
        """The error of the last loop while the thread waits to be replaced, else None."""
        self._worker = worker
        self._number = thread_number
        self._handler = handler
        self._on_failure, self._on_step = on_failure, on_step
        self._state = create_thread_state_machine(self.name, on_state_change)
        self._handler_response = UncaughtExceptionResponse.SHUTDOWN_CLIENT
        self._counters_of_replaced: dict[str, int] = {}
        self._turns_of_replaced = 0
        self.loop = self._create_loop()
        self._spawned: SpawnedThread | None = None

    @property
    def state(self) -> ThreadState:
        """Return the state that the thread has now."""
        return self._state.state

    def start_thread(self) -> None:
        """Start the thread."""
        self._spawned = self._worker.host.spawn_thread(
            f"stream-{self._number}", self._run_loops_and_report_failure
        )

    def is_alive(self) -> bool:
        """Return whether the thread was started and has not ended."""
        return self._spawned is not None and self._spawned.is_alive()

    def join_thread(self, timeout_s: float) -> None:
        """Wait until the thread has ended, at most `timeout_s`."""
        if self._spawned is not None:
            self._spawned.join(timeout_s)

    def count_turns(self) -> int:
        """Return how many iterations its loops have done, those that were replaced included."""
        return self.loop.turn_count + self._turns_of_replaced

    def current_record_origin(self) -> str:
        """Return the origin of the record being processed; empty if there is none."""
        return self.loop.record_origin

    def current_tasks(self) -> list[Task]:
        """Return a copy of the list of the loop's active tasks."""
        return list(self.loop.tasks.values())

    def sum_counters(self) -> dict[str, int]:
        """Return the counters, which are those of `ThreadCounters`, summed over its loops."""
        counted = asdict(self.loop.counters) | {"replaced_threads": self.replaced_count}
        return {
            name: value + self._counters_of_replaced.get(name, 0) for name, value in counted.items()
        }

    def _create_loop(self) -> StreamLoop:
        """Create a loop that calls `_decide_loop_replacement` when it fails."""
        return create_stream_loop(
            self._worker,
            self._number,
            on_state_change=self._state.change_state,
            on_commit_step=self._on_step,
            decide_replacement=self._decide_loop_replacement,
        )

    def _run_loops_and_report_failure(self) -> None:
        """Run loops until the end, and report the error that ends the thread."""
        try:
            self._run_loops_until_stop()
        except UserError as error:
            self._on_failure(error)
        except BaseException as error:  # a user's function may call sys.exit: it ends this thread
            log.exception("a stream thread ended")
            self._on_failure(_to_user_error(error))
        finally:
            self.ident = None
            self._state.change_state(ThreadState.ENDED)

    def _run_loops_until_stop(self) -> None:
        """Run loops until a stop or an error; replace a failed loop if the handler says so."""
        worker, back_off = self._worker, ReplacementBackOff()
        if worker.global_tables is not None and not worker.global_tables.wait_until_caught_up(
            worker.stop
        ):
            return
        self.ident = threading.get_ident()
        while True:
            began_s = worker.host.monotonic_s()
            self._handler_response = UncaughtExceptionResponse.SHUTDOWN_CLIENT
            try:
                self.loop.run_until_stopped()
                # A replacing loop may have been stopped before it took the place in the group.
                if self.replaced_count:
                    leave_group_for_ended_thread(worker, self._number)
                return
            except IdentityReplaced:
                self._adopt_renewed_identity()
                self._create_next_loop()
                continue
            except Exception as error:
                if self._handler_response is UncaughtExceptionResponse.SHUTDOWN_APPLICATION:
                    self._announce_shutdown(error)
                if self._handler_response is not UncaughtExceptionResponse.REPLACE_THREAD:
                    raise
                wait_s = back_off.take_wait_s(worker.host.monotonic_s() - began_s)
                unexpected = None if isinstance(error, UserError) else error
                log.error(
                    "%s is replaced in %g s: %s", self.name, wait_s, error, exc_info=unexpected
                )
                self.failure = ThreadFailure(str(error) or repr(error), worker.host.monotonic_s())
            UNFLUSHED_STORES.log_warning()
            self._state.change_state(ThreadState.REBALANCING)
            stopped = worker.stop.wait(wait_s)
            self.failure = None
            if stopped:
                leave_group_for_ended_thread(worker, self._number)
                return
            self.replaced_count += 1
            self._create_next_loop()

    def _create_next_loop(self) -> None:
        """Create a stream loop in the place of the last one, with the counters of all before."""
        self._counters_of_replaced = {**self.sum_counters(), "replaced_threads": 0}
        self._turns_of_replaced = self.count_turns()
        self.loop = self._create_loop()

    def _adopt_renewed_identity(self) -> None:
        """Go on with the ids that the worker has taken since its members were fenced."""
        assert self._worker.fencing is not None
        ids = self._worker.fencing.ids
        log.warning("%s goes on as a member of process id %s", self.name, ids.process_id)
        self._worker = replace(
            self._worker, process_id=ids.process_id, directory_id=ids.directory_id
        )
        self._state.change_state(ThreadState.REBALANCING)

    def _decide_loop_replacement(self, error: Exception) -> bool:
        """Return whether another loop replaces one that failed, as the handler answers.

        Called while the failed loop still holds its place in the group.
        """
        self._handler_response = call_uncaught_handler(self._handler, _to_user_error(error))
        return self._handler_response is UncaughtExceptionResponse.REPLACE_THREAD

    def _announce_shutdown(self, error: Exception) -> None:
        """Tell the group's other workers to shut down because of `error`."""
        log.error("%s asks the whole application to shut down: %s", self.name, error)
        who = f"{self._worker.topology.application_id}-{self._worker.process_id}-{self._number}"
        try:
            request_group_shutdown(
                self._worker, self._number, f"shutdown asked for by {who}: {error}"
            )
        except Exception as failure:
            log.error("the other workers could not be told to shut down: %s", failure)


def _to_user_error(error: BaseException) -> UserError:
    """Return a UserError as it is, any other error as a StreamsError with its place in the code."""
    if isinstance(error, UserError):
        return error
    return StreamsError(f"a stream thread ended: {describe_error(error)}")
