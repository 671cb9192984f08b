"""The connections that are open: how many there may be, in all and from one address.

A connection too many is closed at once. (Kafka does so for max.connections.per.ip; with
max.connections it leaves the client waiting until another one has gone.)
Source: KIP-402, KIP-612; kafka.network.ConnectionQuotas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Protocol


class Open(Protocol):
    """What is open: by whom, when something was last sent or taken, and how it is closed."""

    host: str
    active_ms: int

    @property
    def is_waiting(self) -> bool: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class Connections:
    """A set of connections with limits."""

    def __init__(self, connections_max: int, per_host_max: int) -> None:
        self._open: set[Open] = set()
        self._by_host: Counter[str] = Counter()
        self._connections_max = connections_max
        self._per_host_max = per_host_max

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Open]:
        """Those that are open now; any of them may be closed meanwhile."""
        return iter(tuple(self._open))

    def add(self, connection: Open) -> bool:
        """Whether there is a place for it; if not, it isn't in."""
        if (
            len(self._open) >= self._connections_max
            or self._by_host[connection.host] >= self._per_host_max
        ):
            return False
        self._open.add(connection)
        self._by_host[connection.host] += 1
        return True

    def remove(self, connection: Open) -> None:
        if connection in self._open:
            self._open.remove(connection)
            self._by_host[connection.host] -= 1
            if not self._by_host[connection.host]:
                del self._by_host[connection.host]

    def close_idle(self, before_ms: int) -> None:
        """Those that neither sent nor took anything since then, and don't wait for an answer. At
        once: what one of them didn't take in all that time would keep it open for ever."""
        for connection in self:
            if connection.active_ms < before_ms and not connection.is_waiting:
                connection.abort()
