"""Look for secrets in bytes: as they are, and in what base64, URLs and JSON make of them.

What encloses a secret in base64 needn't be known, be it `user:secret` of HTTP's Basic, PLAIN's
fields with NUL between, or a whole request: three alignments cover them all.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping
from urllib.parse import quote_plus

from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

_PEM_LINE_MIN = 40
"""Shorter lines of a key are an end, or BEGIN and END, and no proof of that key."""
_TOKEN_CLAIMS = 40
"""How many characters of a token's claims are the same in all tokens: they are the issuer's."""


def list_forms(secret: str) -> set[bytes]:
    """Return the bytes that show that a secret of at least some ten characters was written."""
    plain = secret.encode()
    forms = {plain, quote_plus(secret).encode(), plain.hex().encode()}
    forms |= {repr(plain)[2:-1].encode(), json.dumps(secret)[1:-1].encode()}
    for before in range(3):
        # The first and the last group also depend on what is around the secret.
        inner = plain[(3 - before) % 3 :]
        inner = inner[: len(inner) // 3 * 3]
        forms |= {base64.b64encode(inner), base64.urlsafe_b64encode(inner)}
    return forms


def encrypt_key(pem: bytes, password: str) -> str:
    """Return a private key in PEM, encrypted with this password."""
    encryption = BestAvailableEncryption(password.encode())
    key = load_pem_private_key(pem, None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def list_key_forms(plain_pem: bytes, pem: str) -> set[bytes]:
    """Return the forms of a private key: its text `pem`, its text when decrypted, and its number.

    It is a key of the curve P-256: RFC 5915 has SEQUENCE, INTEGER 1, OCTET STRING of 32 bytes.
    """
    number = load_pem_private_key(plain_pem, None).private_bytes(
        Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption()
    )[7:39]
    lines = [line for text in (plain_pem.decode(), pem) for line in text.splitlines()]
    parts = [line for line in lines if len(line) >= _PEM_LINE_MIN and "-" not in line]
    return {number, number.hex().encode()}.union(*map(list_forms, parts))


def begin_token(token: str) -> str:
    """Return the part of a JSON Web Token that all tokens of its issuer begin with."""
    header, claims, _ = token.split(".")
    return f"{header}.{claims[:_TOKEN_CLAIMS]}"


def find_secrets(forms: Mapping[str, Collection[bytes]], data: bytes) -> list[str]:
    """Return the names of the secrets of which a form is in the data."""
    return [name for name, each in forms.items() if any(form in data for form in each)]
