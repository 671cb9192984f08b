"""Test that opening a connection ends at one deadline, or when it is given up, at each step."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest

from streams.connection.security import PLAINTEXT, ConnectionSecurity, prepare_security
from streams.connection.settings import parse_connection
from streams.membership.connection import BrokerConnection, ConnectionLost, ConnectionUnanswered
from tests.processes import HOST, UNREACHED_MS
from tests.unit.streams.membership.fake_sasl_broker import HANDSHAKE, FakeSaslBroker

TLS = prepare_security(parse_connection({"security.protocol": "SSL"}))
SASL = prepare_security(
    parse_connection(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "user",
            "sasl.password": "password",
        }
    )
)
TIMEOUT_S = 0.3


def open_connection(
    address: tuple[str, int],
    security: ConnectionSecurity,
    timeout_s: float,
    is_given_up: Callable[[], bool] = lambda: False,
) -> None:
    BrokerConnection(address, "client", timeout_s, threading.Lock(), security, is_given_up).close()


@contextmanager
def run_silent_port() -> Iterator[tuple[str, int]]:
    """Provide a port that takes connections, and answers nothing."""
    with socket.create_server((HOST, 0)) as listener:
        yield listener.getsockname()[:2]


@contextmanager
def run_full_port() -> Iterator[tuple[str, int]]:
    """Provide a port whose queue of connections is full, so that one more gets no answer."""
    with socket.create_server((HOST, 0), backlog=0) as listener, ExitStack() as exits:
        for _ in range(4):
            waiting = exits.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[:2]


@contextmanager
def run_port_without_sasl() -> Iterator[tuple[str, int]]:
    """Provide a port that answers ApiVersions, and nothing else."""
    with closing(FakeSaslBroker()) as fake:
        fake.ignored.add(HANDSHAKE)
        yield fake.address


STEPS = {
    "TCP": (run_full_port, PLAINTEXT),
    "TLS": (run_silent_port, TLS),
    "ApiVersions": (run_silent_port, PLAINTEXT),
    "SASL": (run_port_without_sasl, SASL),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_without_an_answer_ends_when_it_is_given_up(step: str) -> None:
    run_port, security = STEPS[step]
    with run_port() as address, pytest.raises(ConnectionLost, match="given up"):
        open_connection(address, security, UNREACHED_MS / 1000, lambda: True)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_without_an_answer_ends_at_the_deadline(step: str) -> None:
    run_port, security = STEPS[step]
    with run_port() as address, pytest.raises(ConnectionUnanswered, match="no answer in time"):
        open_connection(address, security, TIMEOUT_S)


def test_all_steps_together_have_one_deadline() -> None:
    with (
        closing(FakeSaslBroker(delay_s=0.7 * TIMEOUT_S)) as fake,
        pytest.raises(ConnectionUnanswered, match="no answer in time"),
    ):
        open_connection(fake.address, SASL, TIMEOUT_S)
