"""Issue OAuth tokens as an OpenID Connect provider does: a token endpoint and its public keys.

The token endpoint answers the client credentials grant (RFC 6749, 4.4) with a JSON Web Token that
is signed by RS256, and a wrong client id or secret with 401. The broker (Kafka's class
OAuthBearerValidatorCallbackHandler) reads the public key from the JWKS endpoint and checks
signature, issuer, audience and lifetime.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote_plus

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.processes import HOST

AUDIENCE = "kafka"
TOKEN_PATH = "/token"
KEYS_PATH = "/keys"
KEY_ID = "tests-1"
READ_TIMEOUT_S = 30.0
_NOT_FORM_ENCODED = re.compile("%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Client:
    """Represents a registered client; `audience` is what its tokens are for."""

    secret: str
    audience: str = AUDIENCE


class OidcProvider:
    """Serves token and key endpoints on a free port of the loopback until it is closed.

    A test may register and remove `clients`, and set `token_lifetime_s` and `decodes_credentials`,
    while it runs.
    """

    def __init__(self, clients: Mapping[str, Client], token_lifetime_s: int = 3_600) -> None:
        self.clients = dict(clients)
        self.token_lifetime_s = token_lifetime_s
        self.decodes_credentials = True
        """Whether id and secret of an Authorization header are form-decoded (RFC 6749, 2.3.1), as
        by Keycloak and Spring; other providers compare them as they come."""
        self.issued_count = 0
        self.refused_count = 0
        self._counted = threading.Lock()
        self._token_numbers = itertools.count(1)
        self._key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        self._server = ThreadingHTTPServer((HOST, 0), _create_handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, name="oidc-provider")
        self.url = f"http://{HOST}:{self._server.server_port}"
        self.token_url = self.url + TOKEN_PATH
        self.keys_url = self.url + KEYS_PATH
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def respond_with_keys(self) -> dict[str, object]:
        """Return the JSON Web Key Set (RFC 7517) with the public key."""
        public = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA",
            "use": "sig",
            "alg": "RS256",
            "kid": KEY_ID,
            "n": _encode(public.n.to_bytes((public.n.bit_length() + 7) // 8)),
            "e": _encode(public.e.to_bytes(3)),
        }
        return {"keys": [key]}

    def respond_with_token(self, client_id: str, secret: str) -> dict[str, object] | None:
        """Return the answer with a new token; None if id and secret are of no client."""
        client = self.clients.get(client_id)
        granted = client is not None and client.secret == secret
        with self._counted:
            self.issued_count += granted
            self.refused_count += not granted
        if client is None or not granted:
            return None
        return {
            "access_token": self.sign_token(client_id, client.audience),
            "token_type": "Bearer",
            "expires_in": self.token_lifetime_s,
        }

    def sign_token(self, subject: str, audience: str = AUDIENCE) -> str:
        """Return a JSON Web Token (RFC 7519) for this subject, valid from now on."""
        issued_at_s = int(time.time())
        claims = {
            "iss": self.url,
            "sub": subject,
            "aud": audience,
            "iat": issued_at_s,
            "exp": issued_at_s + self.token_lifetime_s,
            "jti": str(next(self._token_numbers)),
        }
        header = {"alg": "RS256", "typ": "JWT", "kid": KEY_ID}
        signed = ".".join(_encode(json.dumps(part).encode()) for part in (header, claims))
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_encode(signature)}"


def _create_handler(provider: OidcProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = READ_TIMEOUT_S

        def do_GET(self) -> None:
            if self.path == KEYS_PATH:
                self._respond(200, provider.respond_with_keys())
            else:
                self._respond(404, {"error": "not_found"})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            fields = {name: values[0] for name, values in parse_qs(body).items()}
            if self.path != TOKEN_PATH:
                self._respond(404, {"error": "not_found"})
            elif fields.get("grant_type") != "client_credentials":
                self._respond(400, {"error": "unsupported_grant_type"})
            else:
                answer = provider.respond_with_token(*self._read_credentials(fields))
                if answer is None:
                    self._respond(401, {"error": "invalid_client"})
                else:
                    self._respond(200, answer)

        def _read_credentials(self, fields: Mapping[str, str]) -> tuple[str, str]:
            """Return client id and secret of the Authorization header, or of the body."""
            scheme, _, encoded = self.headers.get("Authorization", "").partition(" ")
            if scheme.lower() != "basic":
                return fields.get("client_id", ""), fields.get("client_secret", "")
            return _parse_basic_credentials(encoded, is_form=provider.decodes_credentials)

        def _respond(self, status: int, content: Mapping[str, object]) -> None:
            encoded = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Print nothing: a request is no event of the test's output."""

    return Handler


def _parse_basic_credentials(encoded: str, *, is_form: bool) -> tuple[str, str]:
    """Return the client id and secret of an Authorization header; empty for what is no form."""
    client_id, _, secret = base64.b64decode(encoded).decode().partition(":")
    if not is_form:
        return client_id, secret
    if _NOT_FORM_ENCODED.search(client_id + secret):
        return "", ""
    return unquote_plus(client_id), unquote_plus(secret)


def _encode(data: bytes) -> str:
    """Return base64url without padding, as JSON Web Tokens are written (RFC 7515)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
