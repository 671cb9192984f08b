"""Define and check the settings by which a worker answers queries of its stores over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from streams.common.addresses import is_loopback, parse_address, strip_brackets

PORT_MAX = 65_535
_TOKEN_CHARACTERS_MIN = 16
_FIRST_VISIBLE, _LAST_VISIBLE = "!", "~"
_UNSPECIFIED = frozenset(("0.0.0.0", "::"))  # nosec B104 # nothing is bound here


class QuerySettings(BaseSettings):
    """Holds the settings of queries; what other machines reach has a token and TLS."""

    query_port: Annotated[int | None, Field(ge=0, le=PORT_MAX)] = None
    """Where to answer queries of stores; 0 and counting up as for `health_port`; None: nowhere."""
    query_host: str = "127.0.0.1"
    """The address of `query_port`; one that other machines reach needs a `query_token` and TLS."""
    application_server: str = ""
    """Where other workers reach `query_port`, as host:port (Kafka Streams: application.server); its
    port is counted up as `query_port` is. Empty: `query_host` and the port."""
    query_token: SecretStr = SecretStr("")
    """The secret that all workers of the application, and those who query them, share."""
    query_ssl_certificate_location: Path | None = None
    """The certificate of `query_port`, and those between it and its authority, as a PEM file that
    is read again when it changes. With it queries go over TLS."""
    query_ssl_key_location: Path | None = None
    """The key of that certificate, as PEM; None: in the same file."""
    query_ssl_key_password: SecretStr = SecretStr("")
    """The password of the key, if it is encrypted."""
    query_ssl_ca_location: Path | None = None
    """The authorities of the other workers' certificates, as a PEM file that is read again when it
    changes; None: those of the system. With it other workers are asked over TLS."""
    query_plaintext: bool = False
    """Whether other machines may reach `query_port` without TLS, since something else encrypts."""

    @field_validator("query_host")
    @classmethod
    def _unbracket_query_host(cls, host: str) -> str:
        return strip_brackets(host)

    @model_validator(mode="after")
    def _check_queries(self) -> QuerySettings:
        check_query_settings(self)
        return self


class QueryKeywords(TypedDict, total=False):
    """Holds the same settings as keyword arguments of `App`."""

    query_port: int | None
    query_host: str
    application_server: str
    query_token: SecretStr | str
    query_ssl_certificate_location: Path | str | None
    query_ssl_key_location: Path | str | None
    query_ssl_key_password: SecretStr | str
    query_ssl_ca_location: Path | str | None
    query_plaintext: bool


def check_query_settings(settings: QuerySettings) -> None:
    """Check the settings of queries together.

    Raises ValueError, which says what to change: without a token and TLS only this machine may ask.
    """
    port, host, token = (
        settings.query_port,
        settings.query_host,
        settings.query_token.get_secret_value(),
    )
    _check_application_server(port, host, settings.application_server)
    if token:
        _check_token(token)
    has_certificate = settings.query_ssl_certificate_location is not None
    if settings.query_ssl_key_location is not None and not has_certificate:
        raise ValueError("query_ssl_key_location needs query_ssl_certificate_location")
    if port is None or is_loopback(host):
        return
    if not token:
        raise ValueError(
            f"query_host {host!r} can be reached from other machines, and without query_token "
            "whoever reaches it reads all stores: set query_token on every worker"
        )
    if not has_certificate and not settings.query_plaintext:
        raise ValueError(
            f"query_host {host!r} can be reached from other machines, and without TLS whoever is "
            "between reads the token and the answers: set query_ssl_certificate_location; or "
            "query_plaintext, if a mesh, a proxy or a tunnel encrypts"
        )


def _check_token(token: str) -> None:
    """Check that a token can stand in a header as it is. Raises ValueError, without the token."""
    if token.rstrip("\r\n") != token:
        raise ValueError("query_token has a line end at its end, as its file may: leave it out")
    is_visible = all(_FIRST_VISIBLE <= each <= _LAST_VISIBLE for each in token)
    if len(token) < _TOKEN_CHARACTERS_MIN or not is_visible:
        raise ValueError(
            "query_token must be visible characters of ASCII, without blanks, "
            f"{_TOKEN_CHARACTERS_MIN} at least: `openssl rand -hex 32` makes one"
        )


def _check_application_server(port: int | None, host: str, server: str) -> None:
    """Check where other workers reach this one. Raises ValueError."""
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
