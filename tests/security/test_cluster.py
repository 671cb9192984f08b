"""Every way into a secured Kafka, by the connection that goes before all clients."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from streams.connection.security import prepare_security
from streams.connection.settings import parse_connection
from streams.errors import AuthenticationError, BrokerUnavailable, StreamsError
from streams.membership.connection_check import check_connection
from streams.processes.cluster import find_or_start_cluster
from streams.settings.config import load_config
from tests.kafka.secured.access import ACCESS_NAMES, WRONG, describe_access, try_access
from tests.kafka.secured.administration import Administration
from tests.kafka.secured.server import SecuredKafka

MESSAGES = {
    "untrusted authority": "is not trusted",
    "untrusted certificate": "refused the client certificate",
    "expired certificate": "refused the client certificate, which has expired: it was valid until",
    "no certificate": "refused the client certificate",
    "wrong password": "SASL_AUTHENTICATION_FAILED",
    "unknown user": "SASL_AUTHENTICATION_FAILED",
    "wrong secret": "the token endpoint .* refused client",
    "token for another audience": "refuses the token .SASL_AUTHENTICATION_FAILED",
}
REFUSED, CLOSED = AuthenticationError, BrokerUnavailable
"""What answers a port of another protocol: where it merely closes connections, a load balancer may
have done so, and it is waited for."""
SECONDS_MAX, ACCEPTED_TIMES_MAX = 10, 3
"""How many seconds, and how many times what is let in takes, a refusal may take."""


def connect(settings: Mapping[str, str]) -> None:
    """Check the connection as a worker does at its start."""
    connection = dict(settings)
    servers = connection.pop("bootstrap.servers")
    find_or_start_cluster(load_config(bootstrap_servers=servers, connection=connection))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", ACCESS_NAMES)
def test_each_way_in_works_and_wrong_credentials_are_refused_by_name(
    secured_kafka: SecuredKafka, name: str
) -> None:
    access = describe_access(secured_kafka, name)
    began_s = time.monotonic()
    connect(access.settings)
    accepted_s = time.monotonic() - began_s
    for what, refusal in access.refusals.items():
        began_s = time.monotonic()
        with pytest.raises(AuthenticationError, match=MESSAGES[what]) as refused:
            connect(refusal.settings)
        refused_s = time.monotonic() - began_s
        assert refused_s < ACCEPTED_TIMES_MAX * accepted_s + SECONDS_MAX, what
        for setting, value in refusal.settings.items():
            if "password" in setting or "secret" in setting:
                assert value == WRONG or value not in str(refused.value)


@pytest.mark.parametrize(
    ("listener", "message"),
    [("EXPIRED", "not valid today .certificate has expired"), ("WRONG_HOST", "isn't for '127.0")],
)
def test_a_broker_with_a_wrong_certificate_is_not_trusted(
    secured_kafka: SecuredKafka, listener: str, message: str
) -> None:
    access = describe_access(secured_kafka, listener)
    with pytest.raises(AuthenticationError, match=message):
        connect(access.settings)
    unchecked = {
        "EXPIRED": {"enable.ssl.certificate.verification": "false"},
        "WRONG_HOST": {"ssl.endpoint.identification.algorithm": "none"},
    }
    connect({**access.settings, **unchecked[listener]})


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("spoken", "listener", "refusal", "message"),
    [
        ("PLAINTEXT", "SSL", REFUSED, "set security.protocol to SSL, or SASL_SSL"),
        ("PLAINTEXT", "SASL_SSL", REFUSED, "set security.protocol to SSL, or SASL_SSL"),
        ("PLAINTEXT", "SASL_PLAINTEXT", CLOSED, "set security.protocol to SASL_PLAINTEXT"),
        ("SSL", "PLAINTEXT", CLOSED, "set security.protocol to PLAINTEXT or SASL_PLAINTEXT"),
        ("SSL", "SASL_SSL", CLOSED, "set security.protocol to SASL_SSL"),
        (
            "SASL_SSL/PLAIN",
            "SASL_PLAINTEXT",
            CLOSED,
            "set security.protocol to PLAINTEXT or SASL_PLAINTEXT",
        ),
        ("SASL_SSL/PLAIN", "SSL", REFUSED, "takes no SASL on this port"),
        ("SASL_PLAINTEXT/PLAIN", "PLAINTEXT", REFUSED, "takes no SASL on this port"),
        ("SASL_PLAINTEXT/PLAIN", "SASL_SSL", REFUSED, "set security.protocol to SSL, or SASL_SSL"),
    ],
)
def test_a_port_that_speaks_another_protocol_is_explained(
    secured_kafka: SecuredKafka,
    spoken: str,
    listener: str,
    refusal: type[StreamsError],
    message: str,
) -> None:
    right = f"{listener}/PLAIN" if listener.startswith("SASL") else listener
    began_s = time.monotonic()
    connect(describe_access(secured_kafka, right).settings)
    accepted_s = time.monotonic() - began_s
    settings = dict(describe_access(secured_kafka, spoken).settings)
    del settings["bootstrap.servers"]
    security = prepare_security(parse_connection(settings))
    began_s = time.monotonic()
    with pytest.raises(refusal, match=message) as found:
        check_connection(secured_kafka.listener_servers(listener), security)
    assert found.type is refusal
    refused_s = time.monotonic() - began_s
    assert refused_s < ACCEPTED_TIMES_MAX * accepted_s + SECONDS_MAX


@pytest.mark.sampled(2)
@pytest.mark.parametrize("password", ["x²", "ﬁsh", "a\u00a0b", "e\u0301", "pw😀", "a\tb", "a,b=c"])
def test_scram_takes_a_password_as_it_is_like_librdkafka(
    secured_kafka: SecuredKafka, administration: Administration, password: str
) -> None:
    user = f"user-{password.encode().hex()}"
    administration.set_scram_password(user, password)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        access = describe_access(secured_kafka, f"SASL_SSL/{mechanism}", user, password)
        connect(access.settings)
        assert try_access(access.settings) is None
