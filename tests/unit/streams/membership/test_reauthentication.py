"""A session that ends is renewed before the next request, and a refusal closes the connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kio.index import load_request_schema

from streams.connection.security import prepare_security
from streams.connection.settings import parse_connection
from streams.membership.connection import BrokerConnection, ConnectionLost
from tests.processes import HANG_LIMIT_S, wait_until
from tests.unit.streams.membership.fake_sasl_broker import (
    AUTHENTICATE,
    FAILED,
    HANDSHAKE,
    METADATA,
    NONE,
    FakeSaslBroker,
)

PASSWORD = "a-planted-password"
BEGIN = [HANDSHAKE, AUTHENTICATE]


@pytest.fixture
def fake() -> Iterator[FakeSaslBroker]:
    fake = FakeSaslBroker()
    yield fake
    fake.close()


def connect(fake: FakeSaslBroker) -> BrokerConnection:
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "user",
        "sasl.password": PASSWORD,
    }
    security = prepare_security(parse_connection(settings))
    return BrokerConnection(fake.address, "client", HANG_LIMIT_S, threading.Lock(), security)


def send(connection: BrokerConnection) -> bool:
    """Send a request and return True, as a condition of `wait_until`."""
    request: Any = load_request_schema(METADATA, 4)
    connection.send_request(request(topics=(), allow_auto_topic_creation=False))
    return True


def test_a_session_without_an_end_is_authenticated_once(fake: FakeSaslBroker) -> None:
    connection = connect(fake)
    send(connection)
    send(connection)
    connection.close()
    assert fake.requests == [*BEGIN, METADATA, METADATA]


def test_a_session_that_ends_is_renewed_on_the_same_connection(fake: FakeSaslBroker) -> None:
    fake.session_ms = 1
    connection = connect(fake)
    fake.session_ms = 0
    # The request after it is sent in a session that has no end.
    wait_until(lambda: send(connection) and len(fake.requests) > 3, what="no renewal")
    connection.close()
    assert fake.requests.count(AUTHENTICATE) == 2
    wait_until(lambda: fake.ended_count == 1, what="the end of the connection")


def test_a_refused_renewal_closes_the_connection(fake: FakeSaslBroker) -> None:
    fake.codes, fake.session_ms = [NONE, FAILED], 1
    connection = connect(fake)

    with pytest.raises(ConnectionLost, match=r"is over: .*SASL_AUTHENTICATION_FAILED") as refused:
        wait_until(lambda: not send(connection), what="no refusal")
    assert PASSWORD not in repr(refused.value)
    wait_until(lambda: fake.ended_count == 1, what="the end of the connection")
    with pytest.raises(ConnectionLost):
        send(connection)
