"""Authenticate a connection by SASL, at its begin and again before its session ends (KIP-368)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from streams.connection.sasl import Exchange
from streams.connection.security import ConnectionSecurity
from streams.connection.settings import OAUTHBEARER
from streams.errors import AuthenticationError

_REFUSALS = {
    ErrorCode.sasl_authentication_failed,
    ErrorCode.illegal_sasl_state,
    ErrorCode.unsupported_sasl_mechanism,
}
_SASL_HANDSHAKE_API_KEY, _SASL_AUTHENTICATE_API_KEY = 17, 36


def authenticate_and_get_session_s(
    send_request: Callable[[Any], Any],
    negotiate_version: Callable[[int, int], int],
    security: ConnectionSecurity,
    broker: str,
) -> float:
    """Authenticate by the mechanism of `security`; return the session's length in seconds.

    0.0: the session doesn't end. `broker` is how errors call the broker. Raises AuthenticationError
    for SASL_AUTHENTICATION_FAILED, UNSUPPORTED_SASL_MECHANISM and ILLEGAL_SASL_STATE,
    ConnectionError for any other error code, and what `send_request` raises.
    """
    exchange = security.begin_sasl_exchange()
    handshake: Any = load_request_schema(_SASL_HANDSHAKE_API_KEY, 1)
    answer = send_request(handshake(mechanism=security.mechanism))
    _check_handshake(answer, security, broker)
    version = negotiate_version(_SASL_AUTHENTICATE_API_KEY, 2)
    request: Any = load_request_schema(_SASL_AUTHENTICATE_API_KEY, version)
    lifetime_s = 0.0
    message: bytes | None = next(exchange)
    while message is not None:
        answer = send_request(request(auth_bytes=message))
        if answer.error_code in _REFUSALS:
            raise AuthenticationError(_explain_refusal(answer, security, broker))
        if answer.error_code is not ErrorCode.none:
            raise ConnectionError(f"{broker} can't authenticate: {answer.error_code.name.upper()}")
        lifetime = getattr(answer, "session_lifetime", None)
        lifetime_s = lifetime.total_seconds() if lifetime is not None else 0.0
        message = _continue_exchange(exchange, answer.auth_bytes)
    return lifetime_s


def _continue_exchange(exchange: Exchange, answer: bytes) -> bytes | None:
    """Return the next message of an exchange, or None at its end."""
    try:
        return exchange.send(answer)
    except StopIteration:
        return None


def _check_handshake(answer: Any, security: ConnectionSecurity, broker: str) -> None:
    """Raise AuthenticationError if the broker doesn't take the mechanism."""
    if answer.error_code is ErrorCode.unsupported_sasl_mechanism:
        raise AuthenticationError(
            f"{broker} doesn't take sasl.mechanism {security.mechanism} on this port "
            f"({answer.error_code.name.upper()}): it takes {', '.join(answer.mechanisms) or 'none'}"
        )
    if answer.error_code not in (ErrorCode.none, ErrorCode.illegal_sasl_state):
        raise ConnectionError(f"{broker} can't authenticate: {answer.error_code.name.upper()}")
    if answer.error_code is not ErrorCode.none:
        protocol = "SSL" if security.tls is not None else "PLAINTEXT"
        raise AuthenticationError(
            f"{broker} takes no SASL on this port ({answer.error_code.name.upper()}): set "
            f"security.protocol to {protocol}, or take the port of a SASL listener"
        )


def _explain_refusal(answer: Any, security: ConnectionSecurity, broker: str) -> str:
    """Say which credentials a broker refuses, and which settings hold them."""
    code = answer.error_code.name.upper()
    if security.mechanism == OAUTHBEARER:
        return (
            f"{broker} refuses the token ({code}, {security.mechanism}): check scope and audience "
            "at the provider, and sasl.oauthbearer.* or oauth_cb here"
        )
    username = security.settings.read_secret("sasl.username")
    return (
        f"{broker} refuses the credentials of user {username!r} ({code}, {security.mechanism}): "
        f"check {security.resolve_setting_name('sasl.username')} and "
        f"{security.resolve_setting_name('sasl.password')}"
    )
