"""Give the librdkafka settings of each way into a secured Kafka, and of those that it refuses."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from tests.kafka.secured.certificates import Authority
from tests.kafka.secured.listeners import MECHANISMS, PROTOCOLS
from tests.kafka.secured.server import (
    ADMIN,
    PASSWORDS,
    STRANGER,
    STRANGER_SECRET,
    SecuredKafka,
)
from tests.processes import HANG_LIMIT_S

SASL_LISTENERS = ("SASL_SSL", "SASL_PLAINTEXT", "REAUTHENTICATED")
ACCESS_NAMES = (
    *("PLAINTEXT", "SSL", "MTLS", "TLS_1_2", "TLS_1_3"),
    *(f"{listener}/{mechanism}" for listener in SASL_LISTENERS for mechanism in MECHANISMS),
)
"""The ways in: a listener, and the mechanism where it has several."""
WRONG = "wrong"
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Refusal:
    """Holds librdkafka settings with which a client does not get in, and the error's code."""

    settings: Mapping[str, str]
    error: int

    def explains(self, error: KafkaError | None) -> bool:
        """Tell whether this is the error of the refusal."""
        if error is None:
            return False
        if self.error == KafkaError._AUTHENTICATION:
            return bool(error.code() == self.error)
        return is_certificate_error(error)


@dataclass(frozen=True, slots=True)
class Access:
    """Holds librdkafka settings that work, and by name those that are refused."""

    listener: str
    settings: Mapping[str, str]
    refusals: Mapping[str, Refusal]


def is_certificate_error(error: KafkaError) -> bool:
    """Tell whether the error says that a certificate was refused, by the client or the broker.

    Its code is `_SSL` or `_TRANSPORT`: librdkafka gives the same failed verification the one or the
    other, by whether the connection was closed before it looked. The text says what happened.
    """
    codes = (KafkaError._SSL, KafkaError._TRANSPORT)
    return error.code() in codes and "certificate" in error.str()


def describe_access(
    kafka: SecuredKafka, name: str, user: str = ADMIN, password: str | None = None
) -> Access:
    """Return the settings with which this user gets in by one of ACCESS_NAMES.

    The password is that of PASSWORDS if none is given. A listener that asks for neither a password
    nor a certificate lets everybody in as ANONYMOUS.
    """
    listener, _, mechanism = name.partition("/")
    protocol = PROTOCOLS[listener]
    settings = {
        "bootstrap.servers": kafka.listener_servers(listener),
        "security.protocol": protocol,
    }
    if protocol.endswith("SSL"):
        settings["ssl.ca.location"] = str(kafka.authority.path)
    if listener == "MTLS":
        settings |= _describe_client(kafka.authority, user)
    elif mechanism:
        credentials = _describe_credentials(
            kafka, mechanism, user, PASSWORDS[user] if password is None else password
        )
        settings |= {"sasl.mechanism": mechanism, **credentials}
    refusals = {
        what: Refusal(_change(settings, changes), error)
        for what, changes, error in _list_refused(kafka, listener, mechanism, user)
    }
    return Access(listener, settings, refusals)


def try_access(settings: Mapping[str, str], timeout_s: float = HANG_LIMIT_S) -> KafkaError | None:
    """Return the first error that a client with these settings meets; None if it gets in.

    Raises TimeoutError if neither happens in time.
    """
    errors: list[KafkaError] = []
    client = AdminClient({**settings, "error_cb": errors.append})
    answer = client.describe_cluster()
    deadline = time.monotonic() + timeout_s
    while not errors and not answer.done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {timeout_s} s neither an answer nor an error")
        client.poll(_POLL_S)
    if errors:
        return errors[0]
    answer.result()
    return None


def _describe_client(authority: Authority, user: str, *, expired: bool = False) -> dict[str, str]:
    certificate = authority.issue_client(user, expired=expired)
    return {
        "ssl.certificate.location": str(certificate.certificate_path),
        "ssl.key.location": str(certificate.key_path),
    }


def _describe_credentials(
    kafka: SecuredKafka, mechanism: str, user: str, password: str
) -> dict[str, str]:
    if mechanism != "OAUTHBEARER":
        return {"sasl.username": user, "sasl.password": password}
    return {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": user,
        "sasl.oauthbearer.client.secret": password,
        "sasl.oauthbearer.token.endpoint.url": kafka.oidc.token_url,
    }


def _list_refused(
    kafka: SecuredKafka, listener: str, mechanism: str, user: str
) -> Iterator[tuple[str, Mapping[str, str | None], int]]:
    """Yield the name of each refusal, the settings that differ (None: absent), and the error.

    A client certificate that the broker refuses is no `_SSL`: in TLS 1.3 the client has ended its
    handshake when the alert arrives, and librdkafka takes it for a connection that broke.
    """
    if PROTOCOLS[listener].endswith("SSL"):
        untrusted = {"ssl.ca.location": str(kafka.untrusted_authority.path)}
        yield "untrusted authority", untrusted, KafkaError._SSL
    if listener == "MTLS":
        stranger = _describe_client(kafka.untrusted_authority, user)
        yield "untrusted certificate", stranger, KafkaError._TRANSPORT
        expired = _describe_client(kafka.authority, user, expired=True)
        yield "expired certificate", expired, KafkaError._TRANSPORT
        yield "no certificate", dict.fromkeys(stranger), KafkaError._TRANSPORT
    if mechanism == "OAUTHBEARER":
        wrong = _describe_credentials(kafka, mechanism, user, WRONG)
        yield "wrong secret", wrong, KafkaError._AUTHENTICATION
        elsewhere = _describe_credentials(kafka, mechanism, STRANGER, STRANGER_SECRET)
        yield "token for another audience", elsewhere, KafkaError._AUTHENTICATION
    elif mechanism:
        yield "wrong password", {"sasl.password": WRONG}, KafkaError._AUTHENTICATION
        yield "unknown user", {"sasl.username": WRONG}, KafkaError._AUTHENTICATION


def _change(settings: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**settings, **changes}
    return {name: value for name, value in merged.items() if value is not None}
