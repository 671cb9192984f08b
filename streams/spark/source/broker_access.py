"""Hold the address and settings with which the driver and each executor reach the brokers.

Executors get it as plain text in the options of a read or a write, and make their own clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from streams.errors import OutcomeUnknown, StreamsError
from streams.membership.connection import BrokerConnection, ConnectionLost
from streams.runtime.clients import Admin, RangeReader

CLIENT_ID = "millrace-spark"
REQUEST_TIMEOUT_S = 30.0
"""The longest that a request may go unanswered, and a read return nothing."""
START_TIMEOUT_S = 10.0


@contextmanager
def explain_no_answer(subject: str) -> Iterator[None]:
    """Raise StreamsError, which begins with `subject`, if no broker answers in the with block."""
    try:
        yield
    except OutcomeUnknown as unknown:
        raise StreamsError(f"{subject}: {unknown}") from unknown


@dataclass(frozen=True, slots=True)
class BrokerAccess:
    """Creates clients for one cluster from its address and librdkafka's settings.

    `librdkafka_settings`: by librdkafka's own names. They may hold secrets.
    """

    bootstrap_servers: str
    librdkafka_settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def client_settings(self) -> dict[str, Any]:
        """Return the librdkafka settings that every client of this access starts from."""
        return {
            "client.id": CLIENT_ID,
            # No rebootstrap, as in streams.runtime.clients.factory (docs/decisions/0001).
            "metadata.recovery.strategy": "none",
            **self.librdkafka_settings,
            "bootstrap.servers": self.bootstrap_servers,
        }

    def create_admin(self) -> Admin:
        """Create an admin client, which looks up topics, their settings and offsets."""
        return Admin(
            self.client_settings(), self.bootstrap_servers, REQUEST_TIMEOUT_S, START_TIMEOUT_S
        )

    def create_range_reader(self, isolation: str) -> RangeReader:
        """Create a client that reads ranges of offsets with the isolation level `isolation`.

        Its consumer group commits nothing.
        """
        return RangeReader(
            {"group.id": CLIENT_ID, **self.client_settings()}, isolation, REQUEST_TIMEOUT_S
        )

    def open_connection(
        self, address: tuple[str, int] | None, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> BrokerConnection:
        """Open a plaintext connection to an address, or to the first bootstrap server that answers.

        `address` None: the bootstrap servers. The connection is Millrace's own, for requests that
        confluent-kafka has no call for. Raises ConnectionLost.
        """
        if address is not None:
            return BrokerConnection(address, CLIENT_ID, timeout_s, Lock())
        failure: ConnectionLost | None = None
        for server in self.bootstrap_servers.split(","):
            host, _, port = server.strip().rpartition(":")
            try:
                return BrokerConnection((host, int(port)), CLIENT_ID, timeout_s, Lock())
            except ConnectionLost as error:
                failure = error
        raise failure or ConnectionLost(f"no address in {self.bootstrap_servers!r}")
