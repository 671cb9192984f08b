"""Exchange the messages of a SASL mechanism, apart from how they are sent.

An exchange is a generator: it yields what the client sends, and is sent what the broker answers.
Sources: RFC 4616 (PLAIN), RFC 7628 (OAUTHBEARER).
"""

from __future__ import annotations

from collections.abc import Generator

from streams.connection.scram import exchange_scram
from streams.connection.settings import OAUTHBEARER, ConnectionSettings
from streams.connection.tokens import Token, TokenSource

Exchange = Generator[bytes, bytes, None]

_SEPARATOR = b"\x01"


def begin_sasl_exchange(settings: ConnectionSettings, tokens: TokenSource | None) -> Exchange:
    """Begin the exchange of the settings' mechanism.

    Secrets in files are read now. Raises ConfigError, or what a source of tokens raises.
    """
    mechanism = settings.mechanism or ""
    if mechanism == OAUTHBEARER:
        assert tokens is not None
        return exchange_oauthbearer(tokens.fetch_token())
    username = settings.read_secret("sasl.username") or ""
    password = settings.read_secret("sasl.password") or ""
    if mechanism == "PLAIN":
        return exchange_plain(username, password)
    return exchange_scram(mechanism, username, password)


def exchange_plain(username: str, password: str) -> Exchange:
    """Authenticate by SASL/PLAIN, which sends user and password in one message (RFC 4616)."""
    yield f"\0{username}\0{password}".encode()


def exchange_oauthbearer(token: Token) -> Exchange:
    """Send a token; a broker that refuses it says why and waits for one more message."""
    fields = [b"auth=Bearer " + token.value.encode()]
    fields += [f"{name}={value}".encode() for name, value in token.extensions.items()]
    refusal = yield b"n,," + b"".join(_SEPARATOR + each for each in fields) + _SEPARATOR * 2
    if refusal:
        yield _SEPARATOR
