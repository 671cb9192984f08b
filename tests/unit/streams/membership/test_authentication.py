"""SASL on a connection, against a broker that answers as it is told."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from streams.connection.security import ConnectionSecurity, prepare_security
from streams.connection.settings import parse_connection
from streams.errors import AuthenticationError
from streams.membership.authentication import authenticate_and_get_session_s

SECRET = "a-planted-password"
PLAIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "user",
    "sasl.password": SECRET,
}


@dataclass
class Answer:
    """Represents an answer of the broker to a handshake or a message."""

    error_code: ErrorCode = ErrorCode.none
    mechanisms: tuple[str, ...] = ()
    auth_bytes: bytes = b""
    session_lifetime: datetime.timedelta = field(default_factory=datetime.timedelta)


class FakeBroker:
    """Gives the prepared answers in their order and keeps the requests."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.requests: list[Any] = []

    def send_request(self, request: Any) -> Answer:
        self.requests.append(request)
        return self._answers.pop(0)

    def authenticate(self, security: ConnectionSecurity) -> float:
        return authenticate_and_get_session_s(
            self.send_request, lambda _, version_max: version_max, security, "the broker at b:1"
        )


@pytest.fixture
def security() -> ConnectionSecurity:
    return prepare_security(parse_connection(PLAIN))


def test_the_mechanism_is_agreed_on_before_credentials_are_sent(
    security: ConnectionSecurity,
) -> None:
    broker = FakeBroker(Answer(), Answer(session_lifetime=datetime.timedelta(seconds=7)))
    assert broker.authenticate(security) == 7.0
    handshake, message = broker.requests
    assert handshake.mechanism == "PLAIN"
    assert message.auth_bytes == f"\0user\0{SECRET}".encode()


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (
            [Answer(ErrorCode.unsupported_sasl_mechanism, ("SCRAM-SHA-256", "OAUTHBEARER"))],
            "doesn't take sasl.mechanism PLAIN .*it takes SCRAM-SHA-256, OAUTHBEARER",
        ),
        (
            [Answer(ErrorCode.illegal_sasl_state)],
            "takes no SASL on this port .ILLEGAL_SASL_STATE.: set security.protocol to PLAINTEXT",
        ),
        (
            [Answer(), Answer(ErrorCode.sasl_authentication_failed)],
            "refuses the credentials of user 'user' .SASL_AUTHENTICATION_FAILED, PLAIN",
        ),
    ],
)
def test_a_refusal_names_the_broker_and_the_setting_and_no_secret(
    security: ConnectionSecurity, answers: list[Answer], message: str
) -> None:
    broker = FakeBroker(*answers)
    with pytest.raises(AuthenticationError, match=f"the broker at b:1 {message}") as refused:
        broker.authenticate(security)
    assert SECRET not in repr(refused.value)
    if len(answers) == 1:
        assert len(broker.requests) == 1, "the password was sent to a broker that refused"


def test_a_refused_token_ends_the_exchange_with_a_last_message() -> None:
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (SECRET, 2e9),
    }
    broker = FakeBroker(
        *(Answer(), Answer(auth_bytes=b'{"status":"invalid_token"}')),
        Answer(ErrorCode.sasl_authentication_failed),
    )
    with pytest.raises(AuthenticationError, match="refuses the token") as refused:
        broker.authenticate(prepare_security(parse_connection(settings)))
    assert broker.requests[-1].auth_bytes == b"\x01"
    assert SECRET not in repr(refused.value)
