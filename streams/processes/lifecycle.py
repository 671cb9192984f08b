"""Derive the state of an application from those of its threads, and keep the error that ends it.

    state             what holds
    CREATED           no thread has joined the group yet
    REBALANCING       a thread joins the group, restores tasks or recovers
    RUNNING           all threads run all of their tasks
    PENDING_SHUTDOWN  the threads commit, leave the group and end, since `close` was called
    NOT_RUNNING       all is closed
    PENDING_ERROR     the same as PENDING_SHUTDOWN, since an error ends the application
    ERROR             all threads have ended after an error

    from              to
    CREATED           REBALANCING, PENDING_SHUTDOWN, PENDING_ERROR
    REBALANCING       RUNNING, PENDING_SHUTDOWN, PENDING_ERROR
    RUNNING           REBALANCING, PENDING_SHUTDOWN, PENDING_ERROR
    PENDING_SHUTDOWN  NOT_RUNNING, PENDING_ERROR (the last commit may fail)
    PENDING_ERROR     ERROR

Any other transition is a mistake in the runtime: RuntimeError. The states are those of Kafka
Streams' KafkaStreams.State, whose table has no way from CREATED or PENDING_SHUTDOWN to
PENDING_ERROR.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from enum import StrEnum

from streams.common.host import Event
from streams.common.state_machine import StateMachine
from streams.errors import StreamsError, UserError
from streams.runtime.threads.thread_state import ThreadState

log = logging.getLogger(__name__)


class LifecycleState(StrEnum):
    """Names the states of an application, with the transitions in the module's table."""

    CREATED = "CREATED"
    REBALANCING = "REBALANCING"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    NOT_RUNNING = "NOT_RUNNING"
    PENDING_ERROR = "PENDING_ERROR"
    ERROR = "ERROR"


StateListener = Callable[[LifecycleState, LifecycleState], None]
"""Is told the new state and the one before (Kafka Streams' StateListener). It must not wait for the
application: the thread whose state has changed calls it."""

_ACTIVE = {LifecycleState.CREATED, LifecycleState.REBALANCING, LifecycleState.RUNNING}
_ENDING = {LifecycleState.PENDING_SHUTDOWN, LifecycleState.PENDING_ERROR}
TRANSITIONS: dict[LifecycleState, set[LifecycleState]] = {
    LifecycleState.CREATED: {LifecycleState.REBALANCING, *_ENDING},
    LifecycleState.REBALANCING: {LifecycleState.RUNNING, *_ENDING},
    LifecycleState.RUNNING: {LifecycleState.REBALANCING, *_ENDING},
    LifecycleState.PENDING_SHUTDOWN: {
        LifecycleState.NOT_RUNNING,
        LifecycleState.PENDING_ERROR,
    },
    LifecycleState.NOT_RUNNING: set(),
    LifecycleState.PENDING_ERROR: {LifecycleState.ERROR},
    LifecycleState.ERROR: set(),
}


class ApplicationLifecycle:
    """Holds the state of an application with `thread_count` stream threads, and its error.

    `stop` is set when an error ends the application, `all_threads_ended` when no stream thread is
    left. `listener` is called with each new state. Kafka Streams' counterpart is KafkaStreams with
    its StreamStateListener.
    """

    def __init__(
        self,
        thread_count: int,
        *,
        stop: Event,
        all_threads_ended: Event,
        listener: StateListener | None = None,
    ) -> None:
        self._listener = listener
        self._stop = stop
        self._all_threads_ended = all_threads_ended
        self._changed = threading.Condition()
        self._thread_states = dict.fromkeys(range(thread_count), ThreadState.CREATED)
        self._machine = StateMachine("the application", LifecycleState.CREATED, TRANSITIONS)
        self.error: UserError | None = None
        """The first error that has failed the application."""

    @property
    def state(self) -> LifecycleState:
        """Return the state that the application has now."""
        return self._machine.state

    def wait_for(self, state: LifecycleState, timeout_s: float) -> None:
        """Wait until the application's state is `state`.

        Raises the error that ends the application before that, or StreamsError after `timeout_s`.
        """
        failing = state in (LifecycleState.PENDING_ERROR, LifecycleState.ERROR)
        with self._changed:
            self._changed.wait_for(
                lambda: self.state is state or (self.error is not None and not failing), timeout_s
            )
            if self.error is not None and not failing:
                raise self.error
            if self.state is not state:
                raise StreamsError(f"still {self.state} and not {state} after {timeout_s:g} s")

    def require_active(self) -> None:
        """Raise StreamsError if the application ends, or has ended."""
        if self.state not in _ACTIVE:
            raise StreamsError(f"the application is {self.state}: its threads can't be changed")

    def fail_application(self, error: UserError) -> None:
        """Keep the first error that fails the application, and stop its threads in order."""
        with self._changed:
            if self.error is None:
                self.error = error
                self._change_state(LifecycleState.PENDING_ERROR)
                self._end_in_error_if_threads_ended()
        self._stop.set()

    def try_begin_shutdown(self) -> bool:
        """Note that the application is to be closed, and return False if it was closed before."""
        with self._changed:
            if self.state in _ACTIVE:
                self._change_state(LifecycleState.PENDING_SHUTDOWN)
            return self.state is not LifecycleState.NOT_RUNNING

    def finish_shutdown(self) -> None:
        """Note that all is closed, or raise the error that has ended the application."""
        with self._changed:
            if self.error is not None:
                raise self.error
            if self.state is not LifecycleState.NOT_RUNNING:  # two threads may close at once
                self._change_state(LifecycleState.NOT_RUNNING)

    def add_thread(self, thread_number: int) -> None:
        """Note a stream thread that was created; the state changes when it joins the group."""
        with self._changed:
            self._thread_states[thread_number] = ThreadState.CREATED

    def remove_thread(self, thread_number: int) -> None:
        """Forget a stream thread that has ended while others go on."""
        with self._changed:
            self._thread_states.pop(thread_number, None)
            states = {*self._thread_states.values()} - {ThreadState.ENDED}
            if states == {ThreadState.RUNNING} and (self.state is LifecycleState.REBALANCING):
                self._change_state(LifecycleState.RUNNING)

    def note_thread_state_and_derive_own(self, thread_number: int, state: ThreadState) -> None:
        """Note the state of a stream thread, and derive that of the application."""
        with self._changed:
            self._thread_states[thread_number] = state
            states = set(self._thread_states.values())
            if states == {ThreadState.ENDED}:
                self._all_threads_ended.set()
                self._end_in_error_if_threads_ended()
            elif state is not ThreadState.ENDED and self.state in _ACTIVE:
                derived = LifecycleState.REBALANCING
                # A thread that has ended while others go on was told to leave.
                if states - {ThreadState.ENDED} == {ThreadState.RUNNING}:
                    derived = LifecycleState.RUNNING
                if derived is not self.state:
                    self._change_state(derived)

    def _end_in_error_if_threads_ended(self) -> None:
        """Change PENDING_ERROR to ERROR if no stream thread is left; the caller holds the lock."""
        if self.error is not None and set(self._thread_states.values()) == {ThreadState.ENDED}:
            self._change_state(LifecycleState.ERROR)

    def _change_state(self, state: LifecycleState) -> None:
        """Change the state and wake those who wait for it; the caller holds the lock."""
        before = self.state
        self._machine.change_state(state)
        log.info("state %s -> %s", before, state)
        self._changed.notify_all()
        if self._listener is not None:
            try:
                self._listener(state, before)
            except Exception:
                log.exception("the state listener failed on %s", state)
