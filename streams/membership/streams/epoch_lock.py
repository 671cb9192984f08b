"""Make the heartbeats and the commits of a member take turns.

A commit names the member's epoch, which an answer to a heartbeat may change. While a commit waits
for its turn its transaction is open; a heartbeat whose answer does not come gives way to it soon.
And a commit has the turn for a part of the session only: offsets go to a transaction by way of its
own coordinator, and while that one is silent the group's would miss the heartbeats of a member that
is well. Heartbeats of Kafka's clients do not wait (decision 110).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from streams.common.host import Host
from streams.membership.group_member import CommitLimitS

COMMIT_WAIT_MAX_S = 2.0
"""For how long a commit waits for the answer to a heartbeat: brokers answer within milliseconds."""
_SILENCE_MAX, _COMMIT_MIN = 2 / 3, 1 / 6
"""How much of the session a commit may let the group hear nothing, and how much of it a commit has
in any case, once the heartbeat before it was not answered for long."""


class EpochLock:
    """Lets a heartbeat, or a commit of the stream thread, be on its way, and never both.

    `session_ms` is the group's own, as far as the brokers tell it (`group_session`).
    """

    def __init__(self, host: Host, session_ms: int) -> None:
        self._host = host
        self._session_s = session_ms / 1000
        self._lock = host.create_lock()
        self._commit_waits_since_s: float | None = None

    @property
    def is_commit_overdue(self) -> bool:
        """Return whether a commit has waited so long that a heartbeat is to be given up."""
        since_s = self._commit_waits_since_s
        return since_s is not None and self._host.monotonic_s() - since_s >= COMMIT_WAIT_MAX_S

    def hold_for_heartbeat(self) -> AbstractContextManager[object]:
        """Return a context manager in whose block no commit is sent."""
        return self._lock

    @contextmanager
    def hold_for_commit(
        self, get_confirmed_at_s: Callable[[], float | None]
    ) -> Iterator[CommitLimitS]:
        """Let no heartbeat be sent during the block; it begins once the one on its way is over.

        Yields the seconds after which the commit has to be given up, which depend on when a
        heartbeat was sent last that the group has accepted, on the monotonic clock.
        """
        self._commit_waits_since_s = self._host.monotonic_s()
        with self._lock:
            self._commit_waits_since_s = None
            yield self._find_commit_limit_s(get_confirmed_at_s())

    def _find_commit_limit_s(self, confirmed_at_s: float | None) -> float:
        """Return for how many seconds a commit may keep heartbeats back."""
        now_s = self._host.monotonic_s()
        silent_s = 0.0 if confirmed_at_s is None else now_s - confirmed_at_s
        return max(_SILENCE_MAX * self._session_s - silent_s, _COMMIT_MIN * self._session_s)
