"""Keep the connection to a group's coordinator, which a member's two threads share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from streams.common.addresses import Address, format_address
from streams.common.host import Host
from streams.membership.connection import (
    BrokerConnection,
    BrokerNotReady,
    ConnectionLost,
    OpenConnection,
    find_coordinator,
)


class CoordinatorConnection:
    """Holds at most one connection, to the coordinator of one group, and opens it when needed."""

    def __init__(self, group_id: str, open_connection: OpenConnection, host: Host) -> None:
        self._group_id = group_id
        self._open_connection = open_connection
        self._connection: BrokerConnection | None = None
        self.address: Address | None = None
        """The coordinator's host and port while there is a connection to it, else None."""
        self._lock = host.create_lock()

    @contextmanager
    def use_connection(self) -> Iterator[BrokerConnection]:
        """Yield the connection to the coordinator; find it and connect if there is none.

        If the block raises ConnectionLost, the connection is closed, and the next use finds the
        coordinator anew.
        """
        connection = self._ensure_connection()
        try:
            yield connection
        except ConnectionLost:
            self._discard_connection(connection)
            raise

    def _ensure_connection(self) -> BrokerConnection:
        """Return the connection to the coordinator; find it and connect if there is none."""
        with self._lock:  # the stream thread and the heartbeats share one connection
            if self._connection is None:
                address = self._find_coordinator()
                self._connection = self._open_connection(address)
                self.address = address
            return self._connection

    def _discard_connection(self, lost: BrokerConnection) -> None:
        """Close a connection, and forget it unless another one has taken its place.

        The other thread may have a request on that one.
        """
        lost.close()
        with self._lock:
            if self._connection is lost:
                self._connection = self.address = None

    def confirm_coordinator(self, connection: BrokerConnection) -> None:
        """Raise BrokerNotReady unless another server names the broker of this connection.

        A broker that is cut off from the others goes on answering as the coordinator that it was,
        with offsets from before that. Its own word is taken only where no other server is known.
        """
        with self._lock:
            address = self.address if self._connection is connection else None
        for _ in range(2):
            with closing(self._open_connection(None)) as bootstrap:
                named = find_coordinator(bootstrap, self._group_id, operation="Read")
            if named != address:
                raise BrokerNotReady(
                    f"the coordinator of group {self._group_id!r} is {format_address(named)}, "
                    f"and another broker has answered in its place"
                )
            if bootstrap.address != address:
                return

    def _find_coordinator(self) -> Address:
        """Return the address of the group's coordinator, asked of a bootstrap server."""
        with closing(self._open_connection(None)) as bootstrap:
            return find_coordinator(bootstrap, self._group_id, operation="Read")

    def renew_connection(self) -> None:
        """Let the next request open another connection; close this one once it is unused."""
        with self._lock:
            connection, self._connection, self.address = self._connection, None, None
        if connection is not None:
            connection.close_when_unused()

    def close_connection(self) -> None:
        """Close the connection if there is one."""
        with self._lock:
            connection, self._connection, self.address = self._connection, None, None
        if connection is not None:
            connection.close()
