"""Commit the positions of tasks that have processed nothing since their last commit.

Not every offset of an input is a record: markers of transactions, aborted records, and records that
compaction removed have offsets, too. A consumer's position moves over them and no record comes. If
such a position was not committed, the input's retention could delete what lies behind the committed
offset, and the next start would take that for lost records; and the group's lag would never be 0.

    a position that differs from what is committed   is committed
    of a task that commits anyway                    in that commit
    of any other, while the thread runs              after five seconds at most
    of any, before a join, a revocation, a stop      at once
    chosen by a reset policy                         at once, before a record is polled

Kafka Streams looks at all positions at each commit (StreamTask.commitNeeded).
"""

from __future__ import annotations

from collections.abc import Collection

from streams.common.host import Host
from streams.runtime.clients.interfaces import ConsumerClient
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_state import TaskState
from streams.runtime.threads.producers import TaskProducers

_CHECK_INTERVAL_S = 5.0


class MovedPositions:
    """Finds the running tasks of one thread whose positions are to be committed alone."""

    def __init__(self, consumer: ConsumerClient, producers: TaskProducers, host: Host) -> None:
        self._consumer = consumer
        self._producers = producers
        self._host = host
        self._check_at_s = host.monotonic_s() + _CHECK_INTERVAL_S

    def request_commits(
        self, tasks: Collection[Task], *, at_once: bool, is_joining: bool = False
    ) -> None:
        """Let each task whose positions differ from the committed offsets take part in a commit.

        They are compared every five seconds unless the member joins, or `at_once`; no broker is
        asked. An idle task costs that comparison and no more. Raises what beginning a transaction
        raises.
        """
        running = [t for t in tasks if t.state is TaskState.RUNNING and not t.commit_needed]
        moved = [task for task in running if task.must_commit_positions]
        now_s = self._host.monotonic_s()
        if at_once or (now_s >= self._check_at_s and not is_joining):
            self._check_at_s = now_s + _CHECK_INTERVAL_S
            positions = self._consumer.next_offsets(p for t in running for p in t.positions)
            moved = [
                t for t in running if t.must_commit_positions or t.has_changed_offsets(positions)
            ]
        for task in moved:
            self._producers.begin_transaction(task.name)
            task.commit_needed = True
