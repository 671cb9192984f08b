"""Make the heartbeats and the commits of a member take turns.

A commit names the member's epoch, which an answer to a heartbeat may change. While a commit waits
for its turn its transaction is open; a heartbeat whose answer does not come gives way to it soon.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from streams.common.host import Host

COMMIT_WAIT_MAX_S = 2.0
"""For how long a commit waits for the answer to a heartbeat: brokers answer within milliseconds."""


class EpochLock:
    """Lets a heartbeat, or a commit of the stream thread, be on its way, and never both."""

    def __init__(self, host: Host) -> None:
        self._host = host
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
    def hold_for_commit(self) -> Iterator[None]:
        """Let no heartbeat be sent during the block; it begins once the one on its way is over."""
        self._commit_waits_since_s = self._host.monotonic_s()
        with self._lock:
            self._commit_waits_since_s = None
            yield
