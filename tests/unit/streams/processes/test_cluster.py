"""The first connection tells ends that are the settings' fault from those of the broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.connection.security import PLAINTEXT, prepare_security
from streams.connection.settings import parse_connection
from streams.errors import AuthenticationError, ConfigError
from streams.membership.connection_check import check_connection
from streams.processes.cluster import find_cluster
from streams.settings.config import load_config
from tests.processes import HOST, free_ports
from tests.unit.streams.membership.fake_sasl_broker import FAILED, METADATA, NONE, FakeSaslBroker

SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "user",
    "sasl.password": "a-planted-password",
}
SHORT_S = 0.2


@pytest.fixture
def fake() -> Iterator[FakeSaslBroker]:
    fake = FakeSaslBroker()
    yield fake
    fake.close()


def test_a_broker_that_answers_is_taken(fake: FakeSaslBroker) -> None:
    check_connection(fake.servers, PLAINTEXT)
    check_connection(fake.servers, prepare_security(parse_connection(SASL)))
    assert fake.requests.count(METADATA) == 2


def test_credentials_that_each_server_refuses_are_refused(fake: FakeSaslBroker) -> None:
    fake.codes = [FAILED, FAILED]
    with pytest.raises(AuthenticationError, match=r"check sasl.username and sasl.password"):
        check_connection(f"{fake.servers},{fake.servers}", prepare_security(parse_connection(SASL)))
    assert METADATA not in fake.requests


def test_one_server_that_lets_in_is_enough(fake: FakeSaslBroker) -> None:
    fake.codes = [FAILED, NONE]
    check_connection(f"{fake.servers},{fake.servers}", prepare_security(parse_connection(SASL)))
    assert fake.requests.count(METADATA) == 1


def test_a_broker_that_closes_after_its_versions_wants_sasl(fake: FakeSaslBroker) -> None:
    fake.metadata = "close"
    with pytest.raises(AuthenticationError, match=r"set security.protocol to SASL_PLAINTEXT and"):
        check_connection(fake.servers, PLAINTEXT)
    assert len(fake.requests) > 1, "a broker that is just stopping ends a connection so, too"


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
        find_cluster(config)
    assert SASL["sasl.password"] not in str(refused.value)
