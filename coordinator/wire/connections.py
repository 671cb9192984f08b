"""Keep the number of open connections within limits, in all and from one address.

A connection above a limit is closed at once. (Kafka does so for max.connections.per.ip; with
max.connections it leaves the client waiting until another connection is closed.)
Source: KIP-402, KIP-612; kafka.network.ConnectionQuotas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Protocol


class OpenConnection(Protocol):
    """Represents an open connection: its host, when it was last active, and how to close it."""

    host: str
    last_active_ms: int

    @property
    def is_waiting(self) -> bool: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class ConnectionRegistry:
    """Holds the open connections and refuses those above the limits.

    Kafka's counterpart is ConnectionQuotas.
    """

    def __init__(self, connections_max: int, per_host_max: int) -> None:
        self._open: set[OpenConnection] = set()
        self._by_host: Counter[str] = Counter()
        self.created_count = 0
        # Those that the broker ended.
        self.ended_counts = {"limit": 0, "idle": 0, "stalled": 0, "error": 0}
        self._connections_max = connections_max
        self._per_host_max = per_host_max

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenConnection]:
        """Iterate over a copy of the open connections, so that any may be closed meanwhile."""
        return iter(tuple(self._open))

    def try_add(self, connection: OpenConnection) -> bool:
        """Add a connection if the limits allow it and return whether they do."""
        self.created_count += 1
        if (
            len(self._open) >= self._connections_max
            or self._by_host[connection.host] >= self._per_host_max
        ):
            self.ended_counts["limit"] += 1
            return False
        self._open.add(connection)
        self._by_host[connection.host] += 1
        return True

    def remove_connection(self, connection: OpenConnection) -> None:
        if connection in self._open:
            self._open.remove(connection)
            self._by_host[connection.host] -= 1
            if not self._by_host[connection.host]:
                del self._by_host[connection.host]

    def close_idle(self, inactive_since_ms: int) -> None:
        """Abort connections without activity since `inactive_since_ms` that await no answer.

        They are aborted, not closed: what a client hasn't read in all that time would keep its
        connection open for ever.
        """
        for connection in self:
            if connection.last_active_ms < inactive_since_ms and not connection.is_waiting:
                self.ended_counts["idle"] += 1
                connection.abort()
