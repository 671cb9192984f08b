"""Read the stores of a task as of one commit, while the stream thread goes on to commit.

A commit changes several stores of a task, and each in several steps. The task counts these steps
(`Task.commit_sequence`): odd while a commit is written, another even number after it. A reader that
finds the same even number before and after has read nothing in between. It waits for no lock and
keeps no stream thread waiting; where commits come faster than it reads, it gives up by an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import TypeVar

from state.errors import StateError
from streams.common.topic_partitions import Partition
from streams.errors import StoreUnavailable
from streams.runtime.tasks.task import Task

R = TypeVar("R")

READ_ATTEMPTS_S = 1.0
"""The seconds after which a reader that commits overtake again and again gives up."""
_WRITING_WAIT_S = 0.000_5

Position = Mapping[Partition, int]
"""The offset after the last input record of each partition that a store has taken in."""


def read_at_one_commit(
    task: Task, read: Callable[[], R], attempts_s: float = READ_ATTEMPTS_S
) -> tuple[R, Position]:
    """Return what `read` returns of a task's stores, all of it from one commit, and its position.

    `read` may be called several times. Raises StoreUnavailable if commits overtake it for
    `attempts_s`; what `read` raises of a state that stands still.
    """

    def read_with_position() -> tuple[R, Position]:
        position = task.committed_positions
        return read(), position

    return read_between_writes(
        lambda: task.commit_sequence,
        read_with_position,
        attempts_s,
        f"task {task.name} commits more often than this can be read: ask for less at once",
    )


def read_between_writes(
    get_sequence: Callable[[], int], read: Callable[[], R], attempts_s: float, refusal: str
) -> R:
    """Return what `read` returns while a sequence has the same even number before and after.

    Raises StoreUnavailable with `refusal` after `attempts_s`; what `read` raises meanwhile.
    """
    give_up_at_s = time.monotonic() + attempts_s
    while True:
        sequence = get_sequence()
        if sequence % 2 == 0:
            try:
                result = read()
            except StateError:
                if get_sequence() == sequence:
                    raise
            else:
                if get_sequence() == sequence:
                    return result
        if time.monotonic() >= give_up_at_s:
            raise StoreUnavailable(refusal)
        time.sleep(_WRITING_WAIT_S)


def begin_iterator(items: Iterator[R]) -> Iterator[R]:
    """Return an iterator that has made its first step, from which on a disk shows one moment."""
    return chain(list(islice(items, 1)), items)
