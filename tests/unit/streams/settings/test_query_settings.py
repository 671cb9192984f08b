"""Test which settings of queries are refused, and what the messages say."""

from __future__ import annotations

import pytest

from streams.settings.query_settings import check_query_settings

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    ("port", "host", "server", "token"),
    [
        (None, "127.0.0.1", "", ""),
        (0, "127.0.0.1", "", ""),
        (8100, "::1", "", ""),
        (8100, "localhost", "", TOKEN),
        (8100, "10.0.0.3", "", TOKEN),
        (8100, "0.0.0.0", "worker-3:8100", TOKEN),
    ],
)
def test_settings_that_only_those_with_the_token_can_use_are_taken(
    port: int | None, host: str, server: str, token: str
) -> None:
    check_query_settings(port, host, server, token)


@pytest.mark.parametrize(
    ("port", "host", "server", "token", "message"),
    [
        (8100, "10.0.0.3", "", "", "'10.0.0.3' can be reached from other machines"),
        (8100, "worker-3", "", "", "set query_token on every worker"),
        (8100, "0.0.0.0", "", TOKEN, "set application_server"),
        (None, "127.0.0.1", "worker-3:8100", "", "application_server needs query_port"),
        (0, "127.0.0.1", "worker-3:8100", "", "the fixed port"),
        (8100, "127.0.0.1", "http://worker-3", "", "application_server: .* begins with a protocol"),
        (8100, "127.0.0.1", "", "short", "16 characters at least"),
        (8100, "127.0.0.1", "", "0123456789 abcdef", "without blanks"),
    ],
)
def test_settings_that_nobody_could_use_or_everybody_could_are_refused(
    port: int | None, host: str, server: str, token: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check_query_settings(port, host, server, token)
