"""Follow the statuses of a streams group: when to warn of them, and when to give up.

status                            warned of                           the thread ends
MISSING_SOURCE_TOPICS             when two answers in a row say so    after task_timeout_ms
MISSING_INTERNAL_TOPICS           when it has lasted for 5 s: the     after task_timeout_ms
                                  broker creates them meanwhile
INCORRECTLY_PARTITIONED_TOPICS    never                               at once
any that ends no thread           when two answers in a row say so    never
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from streams.errors import StreamsError
from streams.membership.broker_outage import IsOverdue
from streams.membership.streams.statuses import (
    GroupStatus,
    GroupStatusCode,
    explain_fatal_status,
    explain_lasting_status,
    explain_passing_statuses,
)

log = logging.getLogger(__name__)

_CREATION_S = 5.0
"""The time that a broker may take to create internal topics before somebody is told of it."""


class GroupReadiness:
    """Holds what one member was told of its group's topics, and since when.

    `give_up_ms` is `task_timeout_ms`. Kafka Streams' counterpart is
    `StreamThread.handleStreamsRebalanceData`.
    """

    def __init__(
        self,
        group_id: str,
        monotonic_s: Callable[[], float],
        is_overdue: IsOverdue,
        give_up_ms: int,
    ) -> None:
        self._group_id = group_id
        self._monotonic_s = monotonic_s
        self._is_overdue = is_overdue
        self._give_up_ms = give_up_ms
        self._had_tasks = False
        self._partition_counts: Mapping[str, int] = {}
        self._statuses: tuple[GroupStatus, ...] = ()
        self._since_s: float | None = None
        self._passing_told = self._passing_warned = ""
        self.reason = ""
        """Why the group has no tasks, once that was warned of; empty while it has some."""

    def note_partition_counts(self, partition_counts: Mapping[str, int]) -> None:
        """Remember how many partitions topics have, for when one of them is missing."""
        self._partition_counts = partition_counts

    def update_statuses_and_log(self, statuses: Sequence[GroupStatus], *, has_tasks: bool) -> None:
        """Note the group statuses of a heartbeat answer, and log once those that need a person."""
        self._had_tasks = self._had_tasks or has_tasks
        self._warn_of_passing_statuses(explain_passing_statuses(self._group_id, statuses))
        is_repeated = tuple(statuses) == self._statuses
        if {each.code for each in statuses} != {each.code for each in self._statuses}:
            self._since_s, self.reason = None, ""  # of topics that are no longer what is missing
        self._statuses = tuple(statuses)
        lasting = self._explain_missing_topics()
        if not lasting:
            self._since_s, self.reason = None, ""
            return
        now_s = self._monotonic_s()
        if self._since_s is None:
            self._since_s = now_s
        awaits_broker = all(
            each.code != GroupStatusCode.MISSING_SOURCE_TOPICS for each in self._statuses
        )
        is_due = now_s - self._since_s >= _CREATION_S if awaits_broker else is_repeated
        if (is_due or self.reason) and lasting != self.reason:
            self.reason = lasting
            log.warning("%s", lasting)

    def require_topics(self) -> None:
        """Raise StreamsError for a status that no heartbeat changes, or that has lasted too long.

        Topics that are missing may be created any time: `task_timeout_ms` is waited for them.
        """
        if fatal := explain_fatal_status(self._group_id, self._statuses):
            raise StreamsError(fatal)
        if self._since_s is not None and self._is_overdue(self._since_s, self._give_up_ms / 1000):
            raise StreamsError(
                f"{self._explain_missing_topics()} (it has been so for {self._give_up_ms} ms, "
                "task_timeout_ms)"
            )

    def _explain_missing_topics(self) -> str:
        """Return the message for topics that are missing; empty if none is."""
        return explain_lasting_status(
            self._group_id,
            self._statuses,
            had_tasks=self._had_tasks,
            partition_counts=self._partition_counts,
        )

    def _warn_of_passing_statuses(self, told: str) -> None:
        """Log statuses that end no thread when two answers in a row have them."""
        if told != self._passing_told:
            self._passing_told, self._passing_warned = told, ""
        elif told and told != self._passing_warned:
            self._passing_warned = told
            log.warning("%s", told)
