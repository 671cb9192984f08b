"""Prepare what clients of a cluster share: the TLS context, the source of tokens, the settings.

Certificates, keys and secrets are read here, once for all connections of one application. To take
up files that have changed, prepare it again. What is read from files stays as it was read.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streams.connection.file_copies import copy_files_into_settings
from streams.connection.file_digests import digest_files
from streams.connection.librdkafka_thread import wrap_without_garbage_collection
from streams.connection.sasl import Exchange, begin_sasl_exchange
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
    """Secures the connections of one application; `tls` and `tokens` are None where unused.

    `settings` name copies of the files; `file_digests` are those of the files when they were read,
    by setting.
    """

    settings: ConnectionSettings
    tls: ssl.SSLContext | None
    tokens: TokenSource | None
    file_digests: Mapping[str, str]

    @property
    def mechanism(self) -> str | None:
        """Return the SASL mechanism, or None."""
        return self.settings.mechanism

    @property
    def is_secured(self) -> bool:
        """Return whether there is anything that a broker could refuse: TLS, or SASL."""
        return self.tls is not None or self.mechanism is not None

    def resolve_setting_name(self, name: str) -> str:
        """Return the name under which a setting was given: its own, or that of a file for it."""
        filed = f"{name}{FILE_SUFFIX}"
        return filed if filed in self.file_digests else name

    def begin_sasl_exchange(self) -> Exchange:
        """Begin a SASL exchange. Raises what `sasl.begin_sasl_exchange` raises."""
        return begin_sasl_exchange(self.settings, self.tokens)

    def build_librdkafka_settings(self) -> dict[str, Any]:
        """Return the settings for a client of librdkafka.

        Raises: ConfigError.
        """
        found = dict(self.settings)
        if (callback := load_token_callback(self.settings)) is not None:
            found[TOKEN_CALLBACK] = wrap_without_garbage_collection(callback)
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
    digests = digest_files(settings)
    # From the files themselves, so that an error names them.
    tls = create_tls_context(settings) if settings.uses_tls else None
    try:
        copied = copy_files_into_settings(settings)
    except OSError as error:
        raise ConfigError(f"connection: its files can't be copied: {error}") from None
    if digest_files(settings) != digests:
        raise ConfigError("connection: its files were changed while they were read: try again")
    tokens = TokenSource(copied) if settings.mechanism == OAUTHBEARER else None
    return ConnectionSecurity(copied, tls, tokens, digests)


PLAINTEXT = prepare_security(parse_connection({}))
"""Secures nothing: the connection to a cluster without TLS and SASL."""
