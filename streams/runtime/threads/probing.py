"""Keep the time at which a member joins again, so that tasks that warmed up can move (KIP-441).

The leader gives it to one member (`AssignmentInfo.rejoin_ms`) as long as tasks are not where they
are to be in the end. That member joins when the time has come, whether or not they have caught up:
only the leader knows, when it has seen how far all members are. An assignment without it ends that.
"""

from __future__ import annotations

from math import inf

from streams.common.host import Host


class ProbingRebalance:
    """Says once when it is time to join again.

    Kafka Streams' counterpart is StreamThread's `nextProbingRebalanceMs`.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._due_at_s = inf

    def schedule_rejoin(self, rejoin_ms: int) -> None:
        """Take over `rejoin_ms` of an assignment, counted from now; 0 means not to join again."""
        self._due_at_s = self._host.monotonic_s() + rejoin_ms / 1000 if rejoin_ms else inf

    def try_take_due_rejoin(self) -> bool:
        """Return whether it is time to join again; the next call returns False."""
        if self._host.monotonic_s() < self._due_at_s:
            return False
        self._due_at_s = inf
        return True
