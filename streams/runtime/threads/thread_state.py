"""Name the states of a stream thread, and the transitions between them.

    state        what holds                                     Kafka Streams' StreamThread.State
    CREATED      it has not joined its group; global tables     CREATED
                 may still be copied
    REBALANCING  it joins the group, restores tasks, recovers,  STARTING, PARTITIONS_REVOKED,
                 or waits to be replaced after a failure        PARTITIONS_ASSIGNED
    RUNNING      all tasks that it was assigned run             RUNNING
    ENDED        it does nothing more                           DEAD

    from         to           when
    CREATED      REBALANCING  the loop joins the group for the first time, or fails before that
    REBALANCING  REBALANCING  the loop joins again, or recovers, before all of its tasks run
    REBALANCING  RUNNING      all assigned tasks run
    RUNNING      REBALANCING  the group rebalances, or the loop recovers or fails
    all others   ENDED        the worker stops, or an error ends the thread

Any other transition is a mistake in the runtime: RuntimeError.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from streams.common.state_machine import StateMachine


class ThreadState(StrEnum):
    """Names the states of a stream thread, with the transitions in the module's table."""

    CREATED = "CREATED"
    REBALANCING = "REBALANCING"
    RUNNING = "RUNNING"
    ENDED = "ENDED"


_TRANSITIONS: dict[ThreadState, set[ThreadState]] = {
    ThreadState.CREATED: {ThreadState.REBALANCING, ThreadState.ENDED},
    ThreadState.REBALANCING: {ThreadState.REBALANCING, ThreadState.RUNNING, ThreadState.ENDED},
    ThreadState.RUNNING: {ThreadState.REBALANCING, ThreadState.ENDED},
    ThreadState.ENDED: set(),
}


def create_thread_state_machine(
    thread_name: str, on_change: Callable[[ThreadState], None] = lambda state: None
) -> StateMachine[ThreadState]:
    """Return the state of a thread that was created; `on_change` is called with each new state."""
    return StateMachine(thread_name, ThreadState.CREATED, _TRANSITIONS, on_change)
