"""Prepare what clients of a cluster share: the TLS context, the source of tokens, the settings.

Certificates, keys and secrets are read here, once for all connections of one application. To take
up files that have changed, prepare it again.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Any

from streams.connection.sasl import Exchange, begin_exchange
from streams.connection.settings import (
    FILE_SUFFIX,
    GSSAPI,
    OAUTHBEARER,
    TOKEN_CALLBACK,
    ConnectionSettings,
    parse_connection,
)
from streams.connection.tls import create_tls_context
from streams.connection.tokens import TokenSource, load_token_callback
from streams.errors import ConfigError


@dataclass(frozen=True, slots=True, repr=False)
class ConnectionSecurity:
    """Secures the connections of one application; `tls` and `tokens` are None where unused."""

    settings: ConnectionSettings
    tls: ssl.SSLContext | None
    tokens: TokenSource | None

    @property
    def mechanism(self) -> str | None:
        """Return the SASL mechanism, or None."""
        return self.settings.mechanism

    def begin_exchange(self) -> Exchange:
        """Begin a SASL exchange. Raises what `sasl.begin_exchange` raises."""
        return begin_exchange(self.settings, self.tokens)

    def librdkafka_settings(self) -> dict[str, Any]:
        """Return the settings for a client of librdkafka, with secrets read from their files.

        Raises: ConfigError.
        """
        found: dict[str, Any] = {}
        for name, value in self.settings.items():
            if name.endswith(FILE_SUFFIX):
                plain_name = name.removesuffix(FILE_SUFFIX)
                found[plain_name] = self.settings.read_secret(plain_name)
            elif name == TOKEN_CALLBACK:
                found[name] = load_token_callback(self.settings)
            else:
                found[name] = value
        if found.get("ssl.endpoint.identification.algorithm") == "":
            found["ssl.endpoint.identification.algorithm"] = "none"
        return found


def prepare_security(settings: ConnectionSettings) -> ConnectionSecurity:
    """Read certificates and keys, and return what secures connections.

    Raises ConfigError that names the setting whose file or text can't be used.
    """
    if settings.mechanism == GSSAPI:
        raise ConfigError(
            "connection: sasl.mechanism GSSAPI is not supported: confluent-kafka's wheels have a "
            "librdkafka without sasl_gssapi among its builtin.features (that takes librdkafka "
            "built with libsasl2, and confluent-kafka built from source on it), and Millrace's own "
            "group membership doesn't speak it. Use SCRAM, OAUTHBEARER or a client certificate"
        )
    return ConnectionSecurity(
        settings,
        create_tls_context(settings) if settings.uses_tls else None,
        TokenSource(settings) if settings.mechanism == OAUTHBEARER else None,
    )


PLAINTEXT = prepare_security(parse_connection({}))
"""Secures nothing: the connection to a cluster without TLS and SASL."""
