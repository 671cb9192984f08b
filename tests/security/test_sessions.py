"""Test that an application outlives its sessions (KIP-368): on the same connection, and exactly."""

from __future__ import annotations

import socket
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from streams.membership.broker_socket import WaitLimit, connect_socket
from tests.kafka.secured.access import describe_access
from tests.kafka.secured.listeners import REAUTHENTICATION_MS
from tests.kafka.secured.server import SecuredKafka
from tests.security.counting import CountingApplication
from tests.security.tokens import fetch_token

SESSIONS = 4
TOKEN_LIFETIME_S = 10
"""A token is used for 80 % of it: with less, sessions would be shorter than those of the listener,
and a broker refuses who authenticates twice within a second (KIP-368)."""
LISTENER = "REAUTHENTICATED"
MECHANISMS = ("PLAIN", "SCRAM-SHA-512", "OAUTHBEARER", "function", "named function")


@pytest.fixture
def short_tokens(secured_kafka: SecuredKafka) -> Iterator[None]:
    oidc = secured_kafka.oidc
    before, oidc.token_lifetime_s = oidc.token_lifetime_s, TOKEN_LIFETIME_S
    yield
    oidc.token_lifetime_s = before


def describe_mechanism(kafka: SecuredKafka, mechanism: str) -> Mapping[str, Any]:
    """Return the connection for a mechanism, or for tokens from a function."""
    if "function" not in mechanism:
        return describe_access(kafka, f"{LISTENER}/{mechanism}").settings
    return {
        "bootstrap.servers": kafka.listener_servers(LISTENER),
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(kafka.authority.path),
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.config": kafka.oidc.token_url,
        "oauth_cb": fetch_token if mechanism == "function" else "tests.security.tokens:fetch_token",
    }


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("short_tokens")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_sessions_end_and_the_application_goes_on(
    secured_kafka: SecuredKafka,
    application: CountingApplication,
    monkeypatch: pytest.MonkeyPatch,
    mechanism: str,
) -> None:
    opened: list[str] = []

    def note_connection(address: tuple[str, int], limit: WaitLimit) -> socket.socket:
        # The watch over the credentials asks with connections of its own why a client of
        # librdkafka had an error, and the one over leaders opens its own some seconds after the
        # start; these are none of the membership.
        thread = threading.current_thread().name
        if thread not in ("security", "connection-check", "leaders"):
            stack = traceback.format_stack(limit=12)
            opened.append(f"{thread} at {time.monotonic():.3f} s:\n{''.join(stack)}")
        return connect_socket(address, limit)

    monkeypatch.setattr("streams.membership.connection.connect_socket", note_connection)
    before = secured_kafka.read_reauthentications(LISTENER)
    with application.start(describe_mechanism(secured_kafka, mechanism)) as running:
        application.load(50)
        application.wait_until_counted()
        at_start = running.metrics()
        opened_count = len(opened)
        assert opened_count > 0
        over_at_s = time.monotonic() + SESSIONS * REAUTHENTICATION_MS / 1_000
        while time.monotonic() < over_at_s:
            application.load(10)
            application.wait_until_counted()
        metrics = running.metrics()
        again = opened[opened_count:]
        assert not again, f"the membership reconnected: {''.join(again)}"
        assert metrics["rebalances"] == at_start["rebalances"]
        assert metrics["recoveries"] == 0
    application.check_exact()
    # The membership, the consumer and the producer each authenticate once in a session.
    assert secured_kafka.read_reauthentications(LISTENER) - before >= 3 * (SESSIONS - 1)
