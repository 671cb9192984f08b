"""Test which settings of queries are refused, and what the messages say."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from streams.settings.query_settings import QuerySettings

TOKEN = "0123456789abcdef"
TLS = {"query_ssl_certificate_location": "/tls/tls.crt"}


def settings(port: int | None, host: str, server: str, token: str, **more: Any) -> QuerySettings:
    return QuerySettings(
        query_port=port,
        query_host=host,
        application_server=server,
        query_token=token,
        **more,
    )


@pytest.mark.parametrize(
    ("port", "host", "server", "token", "more"),
    [
        (None, "127.0.0.1", "", "", {}),
        (0, "127.0.0.1", "", "", {}),
        (8100, "::1", "", "", {}),
        (8100, "[::1]", "", "", {}),
        (8100, "localhost", "", TOKEN, {}),
        (8100, "10.0.0.3", "", TOKEN, TLS),
        (8100, "0.0.0.0", "worker-3:8100", TOKEN, TLS),
        (8100, "10.0.0.3", "", TOKEN, {"query_plaintext": True}),
        (None, "127.0.0.1", "", "", {"query_ssl_ca_location": "/tls/ca.crt"}),
    ],
)
def test_settings_that_only_those_with_the_token_can_use_are_taken(
    port: int | None, host: str, server: str, token: str, more: dict[str, Any]
) -> None:
    assert settings(port, host, server, token, **more).query_host == host.strip("[]")


@pytest.mark.parametrize(
    ("port", "host", "server", "token", "more", "message"),
    [
        (8100, "10.0.0.3", "", "", TLS, "'10.0.0.3' can be reached from other machines"),
        (8100, "worker-3", "", "", TLS, "set query_token on every worker"),
        (8100, "10.0.0.3", "", TOKEN, {}, "without TLS .* set query_ssl_certificate_location"),
        (8100, "10.0.0.3", "", "", {"query_plaintext": True}, "set query_token"),
        (8100, "0.0.0.0", "", TOKEN, TLS, "set application_server"),
        (None, "127.0.0.1", "worker-3:8100", "", {}, "application_server needs query_port"),
        (0, "127.0.0.1", "worker-3:8100", "", {}, "the fixed port"),
        (8100, "127.0.0.1", "http://worker-3", "", {}, "application_server: .* begins with a"),
        (8100, "127.0.0.1", "", "short", {}, "of ASCII, without blanks, 16 at least"),
        (8100, "127.0.0.1", "", TOKEN + "\n", {}, "has a line end at its end, as its file may"),
        (8100, "127.0.0.1", "", TOKEN + "\r\n", {}, "has a line end at its end, as its file may"),
        (8100, "127.0.0.1", "", TOKEN + "\r\nX-More: 1", {}, "visible characters of ASCII"),
        (8100, "127.0.0.1", "", TOKEN + "\t" + TOKEN, {}, "visible characters of ASCII"),
        (8100, "127.0.0.1", "", TOKEN + "\x7f", {}, "visible characters of ASCII"),
        (8100, "127.0.0.1", "", TOKEN + "é", {}, "visible characters of ASCII"),
        (8100, "127.0.0.1", "", "0123456789 abcdef", {}, "without blanks"),
        (None, "127.0.0.1", "", "", {"query_ssl_key_location": "/k"}, "needs query_ssl_cert"),
        (65_536, "127.0.0.1", "", "", {}, "less than or equal to 65535"),
    ],
)
def test_settings_that_nobody_could_use_or_everybody_could_are_refused(
    port: int | None, host: str, server: str, token: str, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        settings(port, host, server, token, **more)
