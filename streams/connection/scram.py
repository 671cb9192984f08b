"""Prove a password by SCRAM, as Kafka's and librdkafka's clients do (RFC 5802, RFC 7677).

Users and passwords are UTF-8 as they are given. RFC 5802 normalizes them before (SASLprep); Kafka
does not, so that a client that does is refused with a password such as 'x²'.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Generator

from streams.errors import AuthenticationError

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_ITERATIONS_MIN, _ITERATIONS_MAX = 4_096, 1_000_000
"""A broker with fewer iterations could be one that wants to guess the password (Kafka's minimum);
with more, one that wants to keep its clients busy. Kafka stores at most 16 384."""
_NO_CHANNEL_BINDING = "n,,"


def exchange_scram(
    mechanism: str, username: str, password: str, nonce: str | None = None
) -> Generator[bytes, bytes, None]:
    """Prove the password without sending it, and check that the broker knows it too.

    `nonce` is random unless it is given. Raises AuthenticationError for an answer of a broker that
    doesn't know the password, or doesn't keep to the protocol.
    """
    algorithm = _HASHES[mechanism]
    nonce = nonce or secrets.token_urlsafe(24)
    client_first = f"n={_escape_username(username)},r={nonce}"
    server_first = yield (_NO_CHANNEL_BINDING + client_first).encode()
    try:
        fields = _parse_fields(server_first)
        salt = base64.b64decode(fields["s"], validate=True)
        iterations = int(fields["i"])
        server_nonce = fields["r"]
    except (KeyError, ValueError):
        raise _build_refusal(mechanism, "its first answer can't be read") from None
    if not server_nonce.startswith(nonce) or server_nonce == nonce:
        raise _build_refusal(mechanism, "its nonce isn't the client's with one of its own")
    if not _ITERATIONS_MIN <= iterations <= _ITERATIONS_MAX:
        raise _build_refusal(mechanism, f"it wants {iterations} iterations")

    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    stored_key = hashlib.new(algorithm, client_key).digest()
    binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
    without_proof = f"c={binding},r={server_nonce}"
    signed = b",".join((client_first.encode(), server_first, without_proof.encode()))
    signature = hmac.digest(stored_key, signed, algorithm)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))

    server_final = yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
    server_key = hmac.digest(salted, b"Server Key", algorithm)
    expected = hmac.digest(server_key, signed, algorithm)
    try:
        shown = base64.b64decode(_parse_fields(server_final)["v"], validate=True)
    except (KeyError, ValueError):
        raise _build_refusal(mechanism, "its last answer can't be read") from None
    if not hmac.compare_digest(shown, expected):
        raise _build_refusal(
            mechanism, "it doesn't know the password either, so it may be another server"
        )


def _escape_username(username: str) -> str:
    """Return a user name without the characters that separate fields."""
    return username.replace("=", "=3D").replace(",", "=2C")


def _parse_fields(message: bytes) -> dict[str, str]:
    """Parse `a=...,b=...`. Raises ValueError."""
    return {
        name: value
        for name, _, value in (each.partition("=") for each in message.decode().split(","))
    }


def _build_refusal(mechanism: str, problem: str) -> AuthenticationError:
    return AuthenticationError(f"the broker's side of {mechanism} is wrong: {problem}")
