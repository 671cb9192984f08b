"""Tokens: from an endpoint that answers, refuses, lies or hangs, and from a user's function."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from streams.connection import tokens
from streams.connection.sasl import exchange_oauthbearer, exchange_plain
from streams.connection.settings import parse_connection
from streams.connection.tokens import Token, TokenSource, TokenUnavailable
from streams.errors import AuthenticationError, ConfigError
from tests.kafka.secured.certificates import Authority
from tests.processes import HOST

CLIENT, SECRET, TOKEN = "client=1,ü", "a-planted:secret+%20", "a-planted-token"
OK = json.dumps({"access_token": TOKEN, "expires_in": 3_600}).encode()


class Endpoint:
    """Serves a token endpoint that answers as it is told, and keeps what it was asked."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.status, self.body, self.location = 200, OK, ""
        self.raw: bytes | None = None
        self.asked: list[tuple[str, str]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                scheme, _, encoded = self.headers["Authorization"].partition(" ")
                assert scheme == "Basic"
                endpoint.asked.append((base64.b64decode(encoded).decode(), form))
                if endpoint.raw is not None:
                    self.wfile.write(endpoint.raw)
                    return
                self.send_response(endpoint.status)
                if endpoint.location:
                    self.send_header("Location", endpoint.location)
                self.send_header("Content-Length", str(len(endpoint.body)))
                self.end_headers()
                self.wfile.write(endpoint.body)

            do_GET = do_POST  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Print nothing."""

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'http' if tls is None else 'https'}://{HOST}:{self._server.server_port}/token"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.close()


def create_source(url: str, **more: Any) -> TokenSource:
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": CLIENT,
        "sasl.oauthbearer.client.secret": SECRET,
        "sasl.oauthbearer.token.endpoint.url": url,
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return TokenSource(parse_connection(settings))


def create_callback_source(callback: Any) -> TokenSource:
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": callback,
        "sasl.oauthbearer.config": "the-config",
    }
    return TokenSource(parse_connection(settings))


def fail(source: TokenSource, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as failed:
        source.fetch_token()
    assert failed.value.__cause__ is None
    for secret in (SECRET, TOKEN):
        assert secret not in str(failed.value) + repr(failed.value)


def test_a_token_comes_with_its_end_and_extensions_and_is_reused(endpoint: Endpoint) -> None:
    source = create_source(
        endpoint.url,
        sasl_oauthbearer_scope="a b",
        sasl_oauthbearer_extensions="logicalCluster=lkc-1,poolId=a=b",
    )
    began_s = time.time()
    token = source.fetch_token()
    assert token.value == TOKEN
    assert 3_600 <= token.ends_at_s - began_s <= 3_600 + time.time() - began_s
    assert token.extensions == {"logicalCluster": "lkc-1", "poolId": "a=b"}
    assert TOKEN not in repr(token)
    assert source.fetch_token() is token
    assert endpoint.asked == [
        (f"{CLIENT}:{SECRET}", "grant_type=client_credentials&scope=a+b"),
    ]


def test_a_token_that_has_ended_is_fetched_again(endpoint: Endpoint) -> None:
    endpoint.body = json.dumps({"access_token": TOKEN, "expires_in": 0}).encode()
    source = create_source(endpoint.url)
    source.fetch_token()
    source.fetch_token()
    assert len(endpoint.asked) == 2


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refused_client_is_named(endpoint: Endpoint, status: int) -> None:
    endpoint.status = status
    fail(
        create_source(f"{endpoint.url}?key={SECRET}"),
        AuthenticationError,
        f"endpoint {endpoint.url} refused client '{CLIENT}' .HTTP {status}",
    )


@pytest.mark.parametrize("status", [404, 429, 500, 503])
def test_an_endpoint_in_trouble_may_be_tried_again(endpoint: Endpoint, status: int) -> None:
    endpoint.status = status
    source = create_source(endpoint.url)
    fail(source, TokenUnavailable, f"answered HTTP {status}")
    endpoint.status = 200
    assert source.fetch_token().value == TOKEN


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"garbage", b"[]", b"1", b"{}", b'{"access_token": null}', b'{"access_token": ""}'),
        b'{"access_token": "x", "expires_in": "soon"}',
        b'{"access_token": ["x"]}',
    ],
)
def test_an_answer_without_a_token_is_told(endpoint: Endpoint, body: bytes) -> None:
    endpoint.body = body
    fail(create_source(endpoint.url), TokenUnavailable, "answered without a token")


@pytest.mark.parametrize(
    "raw", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"]
)
def test_an_answer_that_is_no_http_is_told(endpoint: Endpoint, raw: bytes) -> None:
    endpoint.raw = raw
    fail(create_source(endpoint.url), TokenUnavailable, f"the token endpoint {endpoint.url}")


def test_a_redirect_is_not_sent_the_secret(endpoint: Endpoint) -> None:
    other = Endpoint()
    try:
        endpoint.status, endpoint.location = 302, other.url
        fail(create_source(endpoint.url), TokenUnavailable, "answered HTTP 302")
        assert other.asked == []
    finally:
        other.close()


def test_an_endpoint_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(tokens, "TIMEOUT_S", 0.1)
    with socket.create_server((HOST, 0)) as silent:
        url = f"http://{HOST}:{silent.getsockname()[1]}/token"
        fail(create_source(url), TokenUnavailable, "doesn't answer: timed out")


def test_an_endpoint_that_is_away_may_be_tried_again(endpoint: Endpoint) -> None:
    source = create_source("http://127.0.0.1:1/token")
    fail(source, TokenUnavailable, "doesn't answer")


def test_the_endpoints_certificate_is_checked(authority: Authority, tmp_path: Any) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate = authority.issue_server()
    server.load_cert_chain(certificate.certificate_path, certificate.key_path)
    endpoint = Endpoint(server)
    try:
        trusting = create_source(endpoint.url, https_ca_location=str(authority.path))
        assert trusting.fetch_token().value == TOKEN
        trusting = create_source(endpoint.url, https_ca_pem=authority.path.read_text())
        assert trusting.fetch_token().value == TOKEN
        fail(create_source(endpoint.url), TokenUnavailable, "CERTIFICATE_VERIFY_FAILED")
        # The brokers' authority isn't that of the endpoint.
        of_brokers = create_source(endpoint.url, ssl_ca_location=str(authority.path))
        fail(of_brokers, TokenUnavailable, "CERTIFICATE_VERIFY_FAILED")
    finally:
        endpoint.close()


def fetch_named(config: str) -> tuple[str, float]:
    return f"{TOKEN} by {config}", time.time() + 3_600


def test_a_function_returns_a_token_in_each_form() -> None:
    ends_at_s = time.time() + 3_600
    forms: list[Any] = [
        fetch_named,
        f"{__name__}:fetch_named",
        lambda config: (f"{TOKEN} by {config}", ends_at_s, "principal", {}),
    ]
    for form in forms:
        assert create_callback_source(form).fetch_token().value == f"{TOKEN} by the-config"
    extended = create_callback_source(lambda _: (TOKEN, ends_at_s, "principal", {"a": "b"}))
    assert extended.fetch_token().extensions == {"a": "b"}


def raise_with_secret(config: str) -> tuple[str, float]:
    raise ValueError(SECRET)


@pytest.mark.parametrize(
    "callback",
    [
        raise_with_secret,
        lambda _: None,
        lambda _: TOKEN,
        lambda _: (None, 1.0),
        lambda _: (TOKEN, SECRET),
    ],
)
def test_a_function_that_fails_is_told_without_its_text(callback: Any) -> None:
    fail(
        create_callback_source(callback),
        TokenUnavailable,
        "oauth_cb raised [A-Z][A-Za-z]+, or did not return",
    )


@pytest.mark.parametrize("name", ["no_module:f", f"{__name__}:none_such", f"{__name__}:TOKEN"])
def test_a_function_that_cannot_be_imported_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"oauth_cb '{name}'"):
        create_callback_source(name)


def test_messages_of_plain_and_oauthbearer() -> None:
    assert list(exchange_plain("üser,=", "pass")) == ["\0üser,=\0pass".encode()]
    exchange = exchange_oauthbearer(Token(TOKEN, 0.0, {"a": "b"}))
    assert next(exchange) == f"n,,\x01auth=Bearer {TOKEN}\x01a=b\x01\x01".encode()
    assert exchange.send(b'{"status":"invalid_token"}') == b"\x01"
    accepted = exchange_oauthbearer(Token(TOKEN, 0.0))
    next(accepted)
    with pytest.raises(StopIteration):
        accepted.send(b"")
