"""Check the settings by which a worker answers queries of its stores over HTTP."""

from __future__ import annotations

from streams.common.addresses import is_loopback, parse_address

_TOKEN_CHARACTERS_MIN = 16
_UNSPECIFIED = frozenset(("0.0.0.0", "::"))  # nosec B104 # nothing is bound here


def check_query_settings(port: int | None, host: str, server: str, token: str) -> None:
    """Check `query_port`, `query_host`, `application_server` and `query_token` together.

    Raises ValueError, which says what to change: without a token only this machine may ask.
    """
    if server:
        try:
            parse_address(server)
        except ValueError as error:
            raise ValueError(f"application_server: {error}") from None
        if not port:
            raise ValueError(
                "application_server needs query_port, the fixed port that answers there"
            )
    elif port is not None and host in _UNSPECIFIED:
        raise ValueError(
            f"query_host {host!r} is all addresses of the machine: set application_server to the "
            "host:port at which other workers reach this one"
        )
    if token and (len(token) < _TOKEN_CHARACTERS_MIN or not token.isascii() or " " in token):
        raise ValueError(
            f"query_token must be ASCII without blanks, {_TOKEN_CHARACTERS_MIN} characters at "
            "least: `openssl rand -hex 32` makes one"
        )
    if port is not None and not token and not is_loopback(host):
        raise ValueError(
            f"query_host {host!r} can be reached from other machines, and without query_token "
            "whoever reaches it reads all stores: set query_token on every worker"
        )
