"""Choose which bootstrap server is asked next, so that none has the only word.

A server that is cut off from the others still answers its clients, by what it knew before: that it
is the coordinator of their group. Whoever asked the same server again and again would wait for as
long as it is cut off. So servers are asked in turn, as Kafka's clients ask any node.
"""

from __future__ import annotations

from collections.abc import Callable

from streams.common.addresses import Address, parse_addresses
from streams.errors import AuthenticationError
from streams.membership.connection import (
    BrokerConnection,
    ConnectionLost,
    connect_to_any_address,
)


class ServerRotation:
    """Holds the addresses of bootstrap servers, in the order in which to ask them next.

    Threads may share it: each change replaces what was there.
    """

    def __init__(self, servers: str) -> None:
        self._addresses = tuple(parse_addresses(servers))
        self._silent: frozenset[Address] = frozenset()

    def connect_to_next(
        self, open_connection: Callable[[Address], BrokerConnection]
    ) -> BrokerConnection:
        """Connect to any server, to another one each time where several answer.

        One that was silent is tried if no other one answers: it would hold up each look-up for as
        long as a connection is waited for. Raises as `connect_to_any_address` does.
        """

        def open_and_note(address: Address) -> BrokerConnection:
            try:
                opened = open_connection(address)
            except (ConnectionLost, AuthenticationError):
                self._silent |= {address}
                raise
            self._silent -= {address}
            self._addresses = (*(each for each in self._addresses if each != address), address)
            return opened

        order = sorted(self._addresses, key=lambda each: each in self._silent)
        return connect_to_any_address(order, open_and_note)
