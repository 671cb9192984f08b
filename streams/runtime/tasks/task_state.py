"""Name the states of a task, and the transitions between them.

    state      what holds                                                   who touches the stores
    CREATED    the directory is ours, the databases are open                nobody: see below
    STANDBY    the stores follow their changelogs, for ever                 the restorer
    RESTORING  the committed offsets are known; stores are being restored   the restorer
    RUNNING    steps are bound to a producer; records go through them       the stream thread
    CLOSED     nothing is ours any more                                     nobody

    from       to         by                  when
    CREATED    STANDBY    start_following     a standby or warm-up task: another one processes
    STANDBY    CREATED    stop_following      it is to become active, or to be closed
    CREATED    RESTORING  start_restoring     the committed offsets were read back, stable
    RESTORING  RUNNING    start_processing    the stores have reached what was committed
    RESTORING,
    RUNNING    CREATED    roll_back           nothing since the last commit counts: starts again
    all        CLOSED     close               the task is revoked, or the thread ends

The stores of a standby task that is promoted belong to the restorer until its batch is over; what
it is asked to do with the task afterwards waits for that (`Restorer.promote_tasks`). Any other
transition is a mistake in the runtime: RuntimeError.
"""

from __future__ import annotations

from enum import Enum, auto


class TaskState(Enum):
    """Names the states of a task, with the transitions in the module's table."""

    CREATED = auto()
    STANDBY = auto()
    RESTORING = auto()
    RUNNING = auto()
    CLOSED = auto()


_ACTIVE = {TaskState.RESTORING, TaskState.RUNNING}
_TRANSITIONS: dict[str, tuple[set[TaskState], TaskState]] = {
    "follow": ({TaskState.CREATED}, TaskState.STANDBY),
    "unfollow": ({TaskState.STANDBY}, TaskState.CREATED),
    "restore": ({TaskState.CREATED}, TaskState.RESTORING),
    "start": ({TaskState.RESTORING}, TaskState.RUNNING),
    "rollback": (_ACTIVE, TaskState.CREATED),
    "close": ({TaskState.CREATED, TaskState.STANDBY, *_ACTIVE}, TaskState.CLOSED),
}


def require_next_state(task_name: str, state: TaskState, transition: str) -> TaskState:
    """Return the state after a transition. Raises RuntimeError where `state` has no such one."""
    allowed, next_state = _TRANSITIONS[transition]
    if state not in allowed:
        raise RuntimeError(f"task {task_name} is {state.name}: {transition} is not possible")
    return next_state
