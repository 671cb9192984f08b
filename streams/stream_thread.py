"""StreamThread: run a stream loop on one of a worker's threads, and handle the error that ends it.

If the uncaught exception handler says so, another loop replaces one that failed: on this thread,
after a wait, with the same place in the group and so the same tasks.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict

from streams.errors import StreamsError, UserError
from streams.runtime.assembly import Worker, announce_shutdown, give_up_place, stream_loop
from streams.runtime.commit import Step
from streams.runtime.host import Spawned
from streams.runtime.loop import StreamLoop
from streams.runtime.task import Task
from streams.runtime.watchdog import Failed
from streams.uncaught import BackOff, Handler, Uncaught, answer

log = logging.getLogger(__name__)


class StreamThread:
    """Runs stream loops on thread `number` of a worker, one after the other.

    `on_state_change` is called with REBALANCING and RUNNING, `on_failure` with the error that ends
    the worker, `on_end` when the thread does nothing more, `on_step` at each step of a commit.
    """

    def __init__(
        self,
        worker: Worker,
        number: int,
        *,
        handler: Handler,
        changed: Callable[[str], None],
        failed: Callable[[UserError], None],
        ended: Callable[[], None],
        reached: Callable[[Step], None],
    ) -> None:
        self.name = f"thread {number}"
        self.ident: int | None = None
        """The id of the operating system's thread while it runs its loops; None before, while
        global tables are copied, so that the watchdog does not take it for stuck."""
        self.replaced = 0
        """How many loops were replaced."""
        self.failed: Failed | None = None
        """The error of the last loop while the thread waits to be replaced, else None."""
        self._worker = worker
        self._number = number
        self._handler = handler
        self._changed, self._failed, self._ended = changed, failed, ended
        self._reached = reached
        self._answer = Uncaught.SHUTDOWN_CLIENT
        self._before: dict[str, int] = {}
        self._turns_before = 0
        self.loop = self._new_loop()
        self._spawned: Spawned | None = None

    def start(self) -> None:
        """Start the thread."""
        self._spawned = self._worker.host.spawn(f"stream-{self._number}", self._run)

    def is_alive(self) -> bool:
        """Whether the thread was started and has not ended."""
        return self._spawned is not None and self._spawned.is_alive()

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended, at most `timeout_s`."""
        if self._spawned is not None:
            self._spawned.join(timeout_s)

    def turns(self) -> int:
        """Return how many iterations its loops have done, those that were replaced included."""
        return self.loop.turns + self._turns_before

    def record(self) -> str:
        """Return the origin of the record being processed; empty if there is none."""
        return self.loop.record

    def tasks(self) -> list[Task]:
        """Return a copy of the list of the loop's tasks."""
        return list(self.loop.tasks.values())

    def counters(self) -> dict[str, int]:
        """Return the counters summed over its loops; see `streams.runtime.loop.Counters`."""
        counted = asdict(self.loop.counters) | {"replaced_threads": self.replaced}
        return {name: value + self._before.get(name, 0) for name, value in counted.items()}

    def _new_loop(self) -> StreamLoop:
        """Create a loop that calls `_decide_on_error` when it fails."""
        return stream_loop(
            self._worker,
            self._number,
            changed=self._changed,
            reached=self._reached,
            replaced=self._decide,
        )

    def _run(self) -> None:
        """Run loops until the end, and report the error that ends the thread."""
        try:
            self._run_loops()
        except UserError as error:
            self._failed(error)
        except BaseException as error:  # a user's function may call sys.exit: it ends this thread
            log.exception("a stream thread ended")
            self._failed(_as_user_error(error))
        finally:
            self.ident = None
            self._ended()

    def _run_loops(self) -> None:
        """Run loops until a stop or an error; replace a failed loop if the handler says so."""
        worker, back_off = self._worker, BackOff()
        if worker.globals is not None and not worker.globals.wait(worker.stop):
            return
        self.ident = threading.get_ident()
        while True:
            began_s = worker.host.monotonic_s()
            self._answer = Uncaught.SHUTDOWN_CLIENT
            try:
                self.loop.run()
                # A replacing loop may have been stopped before it took the place in the group.
                if self.replaced:
                    give_up_place(worker, self._number)
                return
            except Exception as error:
                if self._answer is Uncaught.SHUTDOWN_APPLICATION:
                    self._announce(error)
                if self._answer is not Uncaught.REPLACE_THREAD:
                    raise
                wait_s = back_off.after(worker.host.monotonic_s() - began_s)
                unexpected = None if isinstance(error, UserError) else error
                log.error(
                    "%s is replaced in %g s: %s", self.name, wait_s, error, exc_info=unexpected
                )
                self.failed = Failed(str(error) or repr(error), worker.host.monotonic_s())
            self._changed("REBALANCING")
            stopped = worker.stop.wait(wait_s)
            self.failed = None
            if stopped:
                give_up_place(worker, self._number)
                return
            self._before = {**self.counters(), "replaced_threads": 0}
            self._turns_before = self.turns()
            self.replaced += 1
            self.loop = self._new_loop()

    def _decide(self, error: Exception) -> bool:
        """Whether another loop replaces one that failed, as the handler answers.

        Called while the failed loop still holds its place in the group.
        """
        self._answer = answer(self._handler, _as_user_error(error))
        return self._answer is Uncaught.REPLACE_THREAD

    def _announce(self, error: Exception) -> None:
        """Tell the group's other workers to shut down because of `error`."""
        log.error("%s asks the whole application to shut down: %s", self.name, error)
        who = f"{self._worker.topology.application_id}-{self._worker.id}-{self._number}"
        try:
            announce_shutdown(self._worker, self._number, f"shutdown asked for by {who}: {error}")
        except Exception as failure:
            log.error("the other workers could not be told to shut down: %s", failure)


def _as_user_error(error: BaseException) -> UserError:
    """Return a UserError as it is, any other error as a StreamsError with its place in the code."""
    if isinstance(error, UserError):
        return error
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"in {frame.name}, {frame.filename}:{frame.lineno}"
    return StreamsError(f"a stream thread ended: {error!r} {where}")
