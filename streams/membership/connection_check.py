"""Check the connection to a cluster, before any client is made.

librdkafka's clients retry refused credentials and certificates for ever, and only log them. So one
connection of ours goes first: its errors say which setting is wrong, within seconds.
"""

from __future__ import annotations

import logging
import time
from threading import Lock
from typing import Any

from kio.index import load_request_schema

from streams.connection.security import ConnectionSecurity
from streams.errors import AuthenticationError
from streams.membership.connection import (
    BrokerConnection,
    ConnectionClosed,
    ConnectionLost,
    connect_to_any_server,
)

log = logging.getLogger(__name__)

_METADATA_API_KEY, _METADATA_VERSION = 3, 4
_CLIENT_ID = "millrace"
_TIMEOUT_S = 10.0
_HINTED_RETRY_S = 2.0
"""How long connections are tried that end as with a wrong protocol: a broker that is just starting
or stopping ends them so, too."""
_PAUSE_S = 0.2


def check_connection(
    servers: str, security: ConnectionSecurity, timeout_s: float = _TIMEOUT_S
) -> None:
    """Connect to a bootstrap server and send it a request.

    Returns also if none answers: whoever needs them waits as long as it may. Raises
    AuthenticationError for refused credentials, a certificate that isn't trusted, and a port that
    speaks another protocol.
    """
    until_s = time.monotonic() + _HINTED_RETRY_S
    while True:
        try:
            try_connection(servers, security, timeout_s)
            return
        except ConnectionLost as lost:
            if not lost.hint:
                log.warning("the connection can't be checked now: %s", lost)
                return
            if time.monotonic() > until_s:
                raise AuthenticationError(f"connection: {lost.hint}") from None
        time.sleep(_PAUSE_S)


def try_connection(
    servers: str, security: ConnectionSecurity, timeout_s: float = _TIMEOUT_S
) -> None:
    """Connect to a bootstrap server once, and send it a request.

    Raises AuthenticationError if it refuses the credentials or isn't trusted, ConnectionLost if no
    server answers.
    """
    connect_to_any_server(servers, lambda at: _connect(at, security, timeout_s)).close()


def _connect(
    address: tuple[str, int], security: ConnectionSecurity, timeout_s: float
) -> BrokerConnection:
    """Connect, and ask for the brokers: before SASL a broker answers ApiVersions only."""
    connection = BrokerConnection(address, _CLIENT_ID, timeout_s, Lock(), security)
    request: Any = load_request_schema(_METADATA_API_KEY, _METADATA_VERSION)
    try:
        connection.send_request(request(topics=(), allow_auto_topic_creation=False))
    except ConnectionClosed as lost:
        if security.mechanism is not None:
            raise
        protocol = "SASL_PLAINTEXT" if security.tls is None else "SASL_SSL"
        raise ConnectionLost(
            str(lost),
            f"the broker at {address[0]}:{address[1]} answers ApiVersions and then closes the "
            f"connection, as a port that wants SASL does: set security.protocol to {protocol} and "
            "sasl.mechanism, or take the port of a listener without SASL",
        ) from lost
    return connection
