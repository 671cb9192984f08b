"""The first connection tells ends that are the settings' fault from those of the broker."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import pytest

from streams.connection.security import PLAINTEXT, ConnectionSecurity, prepare_security
from streams.connection.settings import parse_connection
from streams.errors import AuthenticationError, BrokerUnavailable, ConfigError
from streams.membership import connection_check
from streams.membership.connection import ConnectionLost
from streams.membership.connection_check import Answer, check_connection
from streams.processes.cluster import find_or_start_cluster
from streams.settings.config import load_config
from tests.processes import HOST, UNREACHED_MS, free_ports
from tests.unit.streams.membership.fake_sasl_broker import (
    API_VERSIONS,
    FAILED,
    METADATA,
    NONE,
    FakeSaslBroker,
)

SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "user",
    "sasl.password": "a-planted-password",
}
SECURED = prepare_security(parse_connection(SASL))
SHORT_S, LONGER_S = 0.2, 1.0


@pytest.fixture
def fake() -> Iterator[FakeSaslBroker]:
    fake = FakeSaslBroker()
    yield fake
    fake.close()


@pytest.fixture
def others() -> Iterator[list[FakeSaslBroker]]:
    """Provide two more brokers of the same cluster."""
    others = [FakeSaslBroker(), FakeSaslBroker()]
    yield others
    for other in others:
        other.close()


def test_a_broker_that_answers_is_taken(fake: FakeSaslBroker) -> None:
    check_connection(fake.servers, PLAINTEXT)
    check_connection(fake.servers, SECURED)
    assert fake.requests.count(METADATA) == 2


def test_credentials_that_each_server_refuses_are_refused(fake: FakeSaslBroker) -> None:
    fake.codes = [FAILED, FAILED]
    with pytest.raises(AuthenticationError, match=r"check sasl.username and sasl.password"):
        check_connection(f"{fake.servers},{fake.servers}", SECURED)
    assert METADATA not in fake.requests


def test_the_file_of_a_refused_password_is_named(fake: FakeSaslBroker, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("a-planted-password\n")
    settings = {name: value for name, value in SASL.items() if name != "sasl.password"}
    filed = parse_connection(settings | {"sasl.password.file": str(file)})
    fake.codes = [FAILED]
    with pytest.raises(AuthenticationError, match=r"sasl.username and sasl\.password\.file$"):
        check_connection(fake.servers, prepare_security(filed))


def test_one_server_that_lets_in_is_enough(fake: FakeSaslBroker) -> None:
    fake.codes = [FAILED, NONE]
    check_connection(f"{fake.servers},{fake.servers}", SECURED)
    assert fake.requests.count(METADATA) == 1


def test_a_server_that_hangs_keeps_no_other_waiting(fake: FakeSaslBroker) -> None:
    with socket.create_server((HOST, 0)) as silent:
        servers = f"{HOST}:{silent.getsockname()[1]},{fake.servers}"
        check_connection(servers, SECURED, timeout_s=UNREACHED_MS / 1000)
    assert METADATA in fake.requests


def test_a_broker_that_refuses_beside_others_is_one_warning(
    fake: FakeSaslBroker, others: list[FakeSaslBroker], caplog: pytest.LogCaptureFixture
) -> None:
    fake.brokers = [fake.address, *(other.address for other in others)]
    others[1].codes = [FAILED]
    check_connection(fake.servers, SECURED)
    [warning] = caplog.messages
    assert warning.startswith("connection: 1 of 3 brokers can't be used")
    assert f"the broker at {others[1].servers} refuses the credentials of user 'user'" in warning
    assert "check sasl.username and sasl.password" in warning
    assert METADATA in others[0].requests


def test_brokers_that_all_refuse_end_the_start_though_a_server_has_let_in(
    fake: FakeSaslBroker, others: list[FakeSaslBroker]
) -> None:
    fake.brokers = [other.address for other in others]
    for other in others:
        other.codes = [FAILED]
    with pytest.raises(AuthenticationError, match=r"check sasl.username and sasl.password"):
        check_connection(fake.servers, SECURED)


def test_brokers_that_do_not_answer_refuse_nothing(
    fake: FakeSaslBroker, others: list[FakeSaslBroker], caplog: pytest.LogCaptureFixture
) -> None:
    (port,) = free_ports(1)
    fake.brokers = [(HOST, port), *(other.address for other in others)]
    others[0].ignored.add(API_VERSIONS)
    others[1].refused.add(API_VERSIONS)
    check_connection(fake.servers, SECURED, timeout_s=LONGER_S)
    assert caplog.messages == []
    assert fake.connection_count == 1


def test_where_nothing_can_be_refused_one_broker_is_asked(
    fake: FakeSaslBroker, others: list[FakeSaslBroker]
) -> None:
    fake.brokers = [other.address for other in others]
    check_connection(fake.servers, PLAINTEXT)
    check_connection(fake.servers, SECURED, asks_each_broker=False)
    assert [other.connection_count for other in others] == [0, 0]


def test_a_broker_that_closes_after_its_versions_wants_sasl(fake: FakeSaslBroker) -> None:
    fake.metadata = "close"
    with pytest.raises(BrokerUnavailable, match=r"set security.protocol to SASL_PLAINTEXT and"):
        check_connection(fake.servers, PLAINTEXT)
    assert len(fake.requests) > 1, "a broker that is just stopping ends a connection so, too"


@pytest.fixture
def closing_port() -> Iterator[int]:
    """Provide a port that accepts each connection and closes it, as of a load balancer."""
    with socket.create_server((HOST, 0)) as balancer:

        def close_each() -> None:
            with suppress(OSError):
                while True:
                    balancer.accept()[0].close()

        closing = threading.Thread(target=close_each)
        closing.start()
        yield balancer.getsockname()[1]
        balancer.shutdown(socket.SHUT_RDWR)
        closing.join()


@pytest.mark.parametrize(
    "settings",
    [{}, {"security.protocol": "SSL"}, SASL, {**SASL, "security.protocol": "SASL_SSL"}],
    ids=["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
)
def test_a_load_balancer_without_a_backend_is_a_broker_that_is_away(
    closing_port: int, settings: dict[str, str]
) -> None:
    """Check that nobody takes it for refused credentials, which would not be waited for."""
    security = prepare_security(parse_connection(settings))
    expected: AbstractContextManager[object] = nullcontext()
    if security.tls is not None:
        expected = pytest.raises(BrokerUnavailable, match="in the TLS handshake, as a port without")
    with expected:
        check_connection(f"{HOST}:{closing_port}", security, timeout_s=LONGER_S)


@pytest.mark.parametrize("is_cut_off", [True, False])
def test_an_attempt_that_was_cut_off_hides_no_hint_of_those_before_it(
    monkeypatch: pytest.MonkeyPatch, is_cut_off: bool
) -> None:
    failures = iter((ConnectionLost("closed", "take another port"), ConnectionLost("away")))

    def fail(_servers: str, _security: ConnectionSecurity, timeout_s: float) -> Answer:
        failure = next(failures)
        if is_cut_off and not failure.hint:
            time.sleep(timeout_s)
        raise failure

    monkeypatch.setattr(connection_check, "try_connection", fail)
    told = pytest.raises(BrokerUnavailable, match="take another port")
    with told if is_cut_off else nullcontext():
        assert check_connection("broker:9092", PLAINTEXT, timeout_s=LONGER_S) == {}


def test_a_broker_that_does_not_answer_in_time_is_waited_for_elsewhere(
    fake: FakeSaslBroker,
) -> None:
    fake.metadata = "hang"
    check_connection(fake.servers, PLAINTEXT, timeout_s=SHORT_S)
    assert fake.requests == [METADATA]


def test_a_broker_that_is_away_is_waited_for_elsewhere() -> None:
    (port,) = free_ports(1)
    check_connection(f"{HOST}:{port}", PLAINTEXT)


def test_the_embedded_broker_takes_no_connection(tmp_path: Path) -> None:
    config = load_config(connection=SASL, state_dir=tmp_path)
    with pytest.raises(ConfigError, match=r"'embedded'.* set bootstrap_servers") as refused:
        find_or_start_cluster(config)
    assert SASL["sasl.password"] not in str(refused.value)
