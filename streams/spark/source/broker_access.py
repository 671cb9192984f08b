"""Hold the address and settings with which the driver and each executor reach the brokers.

Executors get it as plain text in the options of a read or a write, and make their own clients.
Files that the settings name are read by whoever makes a client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event, Lock
from typing import Any

from streams.common.addresses import Address, parse_addresses
from streams.connection.security import PLAINTEXT, ConnectionSecurity, prepare_security
from streams.connection.settings import (
    TOKEN_CALLBACK,
    ConnectionSettings,
    is_security_setting,
    override_connection,
)
from streams.connection.tokens import name_token_callback
from streams.errors import ConfigError, OutcomeUnknown, StreamsError
from streams.membership.connection import BrokerConnection, connect_to_any_server
from streams.membership.connection_check import check_connection
from streams.runtime.clients import Admin, RangeReader, refuse_gssapi

CLIENT_ID = "millrace-spark"
REQUEST_TIMEOUT_S = 30.0
"""The longest that a request may go unanswered, and a read return nothing."""
START_TIMEOUT_S = 10.0


@contextmanager
def translate_unanswered_requests(subject: str) -> Iterator[None]:
    """Raise StreamsError, which begins with `subject`, if no broker answers in the with block."""
    try:
        yield
    except OutcomeUnknown as unknown:
        raise StreamsError(f"{subject}: {unknown}") from unknown


@dataclass(frozen=True)
class BrokerAccess:
    """Creates clients for one cluster from its address, its connection and librdkafka's settings.

    `librdkafka_settings`: those that are not the connection's, by librdkafka's own names.
    """

    bootstrap_servers: str
    connection: ConnectionSettings = field(default_factory=ConnectionSettings)
    librdkafka_settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    _was_checked: Event = field(default_factory=Event, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[BrokerAccess], tuple[Any, ...]]:
        """Pickle the settings alone: each process reads certificates and secrets itself."""
        return BrokerAccess, (self.bootstrap_servers, self.connection, self.librdkafka_settings)

    @cached_property
    def security(self) -> ConnectionSecurity:
        """Read certificates and keys, and return what secures connections. Raises ConfigError."""
        refuse_gssapi(self.connection)
        return prepare_security(self.connection)

    def to_options(self) -> dict[str, str]:
        """Return the options by which the data source reaches the brokers.

        Raises ConfigError for a function of `oauth_cb` that executors couldn't import.
        """
        settings = {**self.librdkafka_settings, **self.connection}
        if callable(callback := settings.get(TOKEN_CALLBACK)):
            settings[TOKEN_CALLBACK] = name_token_callback(callback)
        options = {f"kafka.{name}": str(value) for name, value in settings.items()}
        return {"bootstrap_servers": self.bootstrap_servers, **options}

    def client_settings(self) -> dict[str, Any]:
        """Return the librdkafka settings that every client of this access starts from."""
        return {
            "client.id": CLIENT_ID,
            **self.librdkafka_settings,
            **self.security.build_librdkafka_settings(),
            "bootstrap.servers": self.bootstrap_servers,
        }

    def create_admin(
        self, timeout_s: float = REQUEST_TIMEOUT_S, retry_s: float = START_TIMEOUT_S
    ) -> Admin:
        """Create an admin client, which looks up topics, their settings and offsets.

        Raises: ConfigError for settings that can't be used, AuthenticationError if a broker refuses
        the credentials or isn't trusted.
        """
        self._check_connection_once(min(timeout_s, START_TIMEOUT_S), asks_each_broker=True)
        return Admin(self.client_settings(), self.bootstrap_servers, timeout_s, retry_s)

    def create_range_reader(self, isolation: str) -> RangeReader:
        """Create a client that reads ranges of offsets with the isolation level `isolation`.

        Its consumer group commits nothing. Raises what `create_admin` raises.
        """
        # One of many executors, whose driver has asked each broker.
        self._check_connection_once(START_TIMEOUT_S, asks_each_broker=False)
        return RangeReader(
            {"group.id": CLIENT_ID, **self.client_settings()}, isolation, REQUEST_TIMEOUT_S
        )

    def open_connection(
        self, address: Address | None, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> BrokerConnection:
        """Open a connection to an address, or to the first bootstrap server that answers.

        `address` None: the bootstrap servers. The connection is Millrace's own, for requests that
        confluent-kafka has no call for. Raises ConnectionLost, AuthenticationError.
        """

        def connect(to: Address) -> BrokerConnection:
            return BrokerConnection(to, CLIENT_ID, timeout_s, Lock(), self.security)

        if address is not None:
            return connect(address)
        return connect_to_any_server(self.bootstrap_servers, connect)

    def check_connection(self) -> None:
        """Raise AuthenticationError if a broker refuses the credentials or isn't trusted.

        Nothing is raised if none answers. Raises ConfigError for settings that can't be used.
        """
        check_connection(self.bootstrap_servers, self.security)

    def _check_connection_once(self, timeout_s: float, *, asks_each_broker: bool) -> None:
        """Check the connection within a time limit, unless that was done in this process.

        Without security there is nothing that a broker could refuse, so nothing waits for one.
        Raises what `check_connection` raises.
        """
        if self.connection and not self._was_checked.is_set():
            check_connection(
                self.bootstrap_servers,
                self.security,
                timeout_s,
                asks_each_broker=asks_each_broker,
            )
            self._was_checked.set()


def create_access(
    bootstrap_servers: str,
    kafka: Mapping[str, str],
    connection: ConnectionSettings = PLAINTEXT.settings,
) -> BrokerAccess:
    """Create the access to brokers from librdkafka's settings, which override `connection`.

    Raises ConfigError for addresses, or settings of the connection, that can't be used.
    """
    try:
        parse_addresses(bootstrap_servers)
    except ValueError as error:
        raise ConfigError(f"bootstrap_servers: {error}") from None
    security = {name: value for name, value in kafka.items() if is_security_setting(name)}
    others = {name: value for name, value in kafka.items() if name not in security}
    return BrokerAccess(bootstrap_servers, override_connection(connection, security), others)
