"""How brokers are reached: from the driver and, as plain text in an option, from each executor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from streams.membership.connection import Connection, ConnectionLost
from streams.runtime.clients import Admin, RangeReader

CLIENT_ID = "millrace-spark"
TIMEOUT_S = 30.0
"""How long a question may go unanswered, and a read stand still."""
START_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Access:
    """`kafka`: settings of librdkafka, by their own names. They may hold secrets."""

    bootstrap_servers: str
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)

    def settings(self) -> dict[str, Any]:
        """Of any client."""
        return {
            "client.id": CLIENT_ID,
            # As in streams.runtime.clients.factory; what is read here is not asked for again.
            "metadata.recovery.strategy": "none",
            **self.kafka,
            "bootstrap.servers": self.bootstrap_servers,
        }

    def admin(self) -> Admin:
        """Asks about topics and offsets."""
        return Admin(self.settings(), self.bootstrap_servers, TIMEOUT_S, START_TIMEOUT_S)

    def reader(self, isolation: str) -> RangeReader:
        """Reads ranges of offsets; a group of this name commits nothing."""
        return RangeReader({"group.id": CLIENT_ID, **self.settings()}, isolation, TIMEOUT_S)

    def dial(self, address: tuple[str, int] | None, timeout_s: float = TIMEOUT_S) -> Connection:
        """A connection of ours, which is plaintext only, to an address or (None) to any of the
        bootstrap servers. Raises ConnectionLost."""
        if address is not None:
            return Connection(address, CLIENT_ID, timeout_s, Lock())
        failure: ConnectionLost | None = None
        for server in self.bootstrap_servers.split(","):
            host, _, port = server.strip().rpartition(":")
            try:
                return Connection((host, int(port)), CLIENT_ID, timeout_s, Lock())
            except ConnectionLost as error:
                failure = error
        raise failure or ConnectionLost(f"no address in {self.bootstrap_servers!r}")
