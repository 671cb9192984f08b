"""Check the settings of the connection to a cluster, and keep their secrets out of texts.

The names are librdkafka's. A secret may stand in a file instead: `<name>.file`.

    what                      settings
    protocol                  security.protocol: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
    the broker's certificate  ssl.ca.location or ssl.ca.pem, ssl.crl.location,
                              ssl.endpoint.identification.algorithm,
                              enable.ssl.certificate.verification
    a client certificate      ssl.certificate.location or .pem, ssl.key.location or .pem,
                              ssl.key.password
    PLAIN, SCRAM              sasl.mechanism, sasl.username, sasl.password
    OAUTHBEARER               sasl.oauthbearer.*, or oauth_cb
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from streams.errors import ConfigError

_Fault: TypeAlias = str
"""Text that says what is wrong with a value; empty if nothing is."""

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER, GSSAPI = "OAUTHBEARER", "GSSAPI"
MECHANISMS = (*PASSWORD_MECHANISMS, OAUTHBEARER, GSSAPI)

FILE_SUFFIX = ".file"
LOCATION_SUFFIX = ".location"
TOKEN_CALLBACK = "oauth_cb"
_SECRETS = frozenset(
    {
        "sasl.password",
        "ssl.key.password",
        "ssl.key.pem",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
    }
)
_FILES = frozenset(
    {
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.crl.location",
        "https.ca.location",
    }
)
_FILED = frozenset(
    f"{name}{FILE_SUFFIX}"
    for name in (
        "sasl.username",
        "sasl.password",
        "ssl.key.password",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
    )
)
_KNOWN = (
    _SECRETS
    | _FILES
    | _FILED
    | {
        "security.protocol",
        "sasl.mechanism",
        "sasl.username",
        "ssl.ca.pem",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.endpoint.identification.algorithm",
        "enable.ssl.certificate.verification",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.extensions",
        "https.ca.pem",
        TOKEN_CALLBACK,
    }
)
_ALIASES = {
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
_TLS_VERSIONS = "OpenSSL and the broker agree on the version of TLS: leave it out"
_INSTEAD = {
    "bootstrap.servers": "set bootstrap_servers",
    "sasl.jaas.config": "set sasl.username and sasl.password",
    "ssl.truststore.location": "set ssl.ca.location to a PEM file",
    "ssl.truststore.password": "set ssl.ca.location to a PEM file, which has no password",
    "ssl.truststore.type": "set ssl.ca.location to a PEM file",
    "ssl.truststore.certificates": "set ssl.ca.pem",
    "ssl.keystore.location": (
        "set ssl.certificate.location and ssl.key.location to PEM files "
        "(openssl pkcs12 -in FILE -nodes makes them)"
    ),
    "ssl.keystore.password": "set ssl.key.password, if the PEM file of ssl.key.location has one",
    "ssl.keystore.type": "set ssl.certificate.location and ssl.key.location to PEM files",
    "ssl.protocol": _TLS_VERSIONS,
    "ssl.enabled.protocols": _TLS_VERSIONS,
    "ssl.keystore.certificate.chain": "set ssl.certificate.pem",
    "ssl.keystore.key": "set ssl.key.pem",
    "sasl.login.callback.handler.class": "set oauth_cb to a function that returns a token",
}
"""The advice that an error gives for names that Java clients have, or that belong elsewhere."""
_SECURITY_PREFIXES = ("security.", "ssl.", "sasl.", "https.", "enable.ssl.", "enable.sasl.")


class ConnectionSettings(dict[str, Any]):
    """Holds the settings of a connection by librdkafka's names; its repr shows no secret."""

    def __repr__(self) -> str:
        return repr(self.hide_secrets())

    __str__ = __repr__

    def hide_secrets(self) -> dict[str, Any]:
        """Return the settings with `***` in place of secrets."""
        return {name: _mask_value(name, value) for name, value in self.items()}

    @property
    def protocol(self) -> str:
        """Return `security.protocol` in capitals, PLAINTEXT if it isn't set."""
        return str(self.get("security.protocol", "PLAINTEXT")).upper()

    @property
    def uses_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def mechanism(self) -> str | None:
        """Return the SASL mechanism in capitals, or None where the protocol has none."""
        if self.protocol not in ("SASL_PLAINTEXT", "SASL_SSL"):
            return None
        return str(self.get("sasl.mechanism", "")).upper()

    def read_secret(self, name: str) -> str | None:
        """Return the value of a setting, or of the file that stands in its place; None without.

        The end of the file's last line isn't part of it. Raises ConfigError.
        """
        if name in self:
            return str(self[name])
        if f"{name}{FILE_SUFFIX}" not in self:
            return None
        filed = f"{name}{FILE_SUFFIX}"
        return read_secret_file(f"connection: {filed}", str(self[filed]))


def read_secret_file(setting: str, path: str) -> str:
    """Return the secret in a file, without the end of its last line.

    Raises ConfigError, which calls the setting `setting`.
    """
    try:
        return Path(path).read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{setting} {path!r} can't be read: {getattr(error, 'strerror', error)}"
        ) from None


def hides_value(name: str) -> bool:
    """Return whether the value of a setting, known or not, may be secret."""
    lowered = name.lower()
    if lowered.endswith((FILE_SUFFIX, LOCATION_SUFFIX, ".url")):
        return False
    return name in _SECRETS or any(
        word in lowered for word in ("password", "secret", "token", "jaas", "key", "credential")
    )


def _mask_value(name: str, value: Any) -> Any:
    """Return `***` for a secret, and a URL without its query, which may hold one."""
    if hides_value(name):
        return "***"
    return str(value).partition("?")[0] if name.endswith(".url") else value


def is_security_setting(name: str) -> bool:
    """Return whether a setting of librdkafka's belongs to the connection, so not to one client."""
    return name in _KNOWN or name in _ALIASES or name.startswith(_SECURITY_PREFIXES)


def override_connection(
    settings: ConnectionSettings, given_settings: Mapping[str, Any]
) -> ConnectionSettings:
    """Return the settings of a connection with those that are `given_settings` in place of theirs.

    A value replaces a file that stands for it, and the other way round. What has no effect with the
    protocol is passed on, as librdkafka takes it. Raises ConfigError.
    """
    replaced = {_remove_source_suffix(name) for name in given_settings}
    kept = {
        name: value
        for name, value in settings.items()
        if _remove_source_suffix(name) not in replaced
    }
    return parse_connection({**kept, **given_settings}, refuses_unused=False)


def _remove_source_suffix(name: str) -> str:
    """Return the name of a setting without the suffix for a file, a location or PEM text."""
    name = _ALIASES.get(name, name)
    for suffix in (FILE_SUFFIX, LOCATION_SUFFIX, ".pem"):
        name = name.removesuffix(suffix)
    return name


def parse_connection(
    given_settings: Mapping[str, Any], *, refuses_unused: bool = True
) -> ConnectionSettings:
    """Return the settings of a connection after a check of their names and of what goes together.

    No file is read yet: an application can be built where its certificates are not. With
    `refuses_unused` a setting that has no effect with the protocol is an error. Raises ConfigError
    with all that is wrong, without values.
    """
    settings = ConnectionSettings()
    faults = list(_read_settings(given_settings, settings))
    if not faults:  # else what goes together can't be judged
        faults += _find_protocol_faults(settings)
        if refuses_unused:
            faults += _find_settings_without_effect(settings)
        if refuses_unused or settings.uses_tls:
            faults += _find_certificate_faults(settings)
    if faults:
        raise ConfigError(f"connection: {'; '.join(faults)}")
    return settings


def _read_settings(given: Mapping[str, Any], settings: ConnectionSettings) -> Iterator[str]:
    """Read names and values into `settings`, and yield what is wrong with single ones."""
    for given_name, value in given.items():
        name = _ALIASES.get(given_name, given_name)
        if name not in _KNOWN:
            yield _describe_unknown(given_name)
        elif name in settings:
            yield f"{given_name} and {name} are the same, so give one"
        elif value is None or (value == "" and name != "ssl.endpoint.identification.algorithm"):
            yield f"{name} is empty"
        else:
            text, fault = _read_value(name, value)
            settings[name] = text
            if fault:
                yield fault
    for name in sorted(_FILED & settings.keys()):
        if name.removesuffix(FILE_SUFFIX) in settings:
            yield f"give {name.removesuffix(FILE_SUFFIX)} or {name}"


def _read_value(name: str, value: Any) -> tuple[Any, _Fault]:
    """Return a value as librdkafka reads it from text, and what is wrong with it, without it.

    The function of `oauth_cb` stays as it is.
    """
    if name == TOKEN_CALLBACK and callable(value):
        return value, ""
    if not isinstance(value, str | int | float):
        return "", f"{name} can't be a {type(value).__name__}: it is text"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    fault = ""
    if name in _FILES and "-----BEGIN" in text:
        pem = name.replace(".location", ".pem")
        instead = f": set {pem}" if pem in _KNOWN else ""
        fault = f"{name} is the path of a file, and was given its text{instead}"
    elif name == "enable.ssl.certificate.verification" and text.lower() not in ("true", "false"):
        fault = f"{name} can't be {text!r}: it is true or false"
    elif name == "sasl.oauthbearer.token.endpoint.url":
        fault = _explain_wrong_endpoint(text)
    # librdkafka compares it letter by letter.
    return text.upper() if name == "sasl.mechanism" else text, fault


def _explain_wrong_endpoint(url: str) -> str:
    """Return what is wrong with a token endpoint that isn't http or has a password; else empty."""
    name = "sasl.oauthbearer.token.endpoint.url"
    scheme, _, rest = url.partition("://")
    if scheme.lower() not in ("http", "https") or not rest:
        return f"{name} is no http:// or https:// address"
    if "@" in rest.partition("/")[0]:
        return (
            f"{name} has credentials in it: set sasl.oauthbearer.client.id and "
            "sasl.oauthbearer.client.secret"
        )
    return ""


def rename_aliases(given_settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with names in place of aliases, so that two places can be merged by name.

    Where one place has both, the alias stays, for `parse_connection` to refuse.
    """
    renamed = {}
    for given_name, value in given_settings.items():
        name = _ALIASES.get(given_name, given_name)
        renamed[given_name if name in given_settings else name] = value
    return renamed


def _describe_unknown(name: str) -> str:
    """Describe what is wrong with an unknown name, and what may be meant."""
    if name in _INSTEAD:
        return f"{name} can't be set: {_INSTEAD[name]}"
    if name.startswith("sasl.kerberos."):
        return f"{name} can't be set: GSSAPI is not supported"
    close = difflib.get_close_matches(name, sorted(_KNOWN), n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return f"unknown setting {name}{meant}"


def _find_protocol_faults(settings: ConnectionSettings) -> Iterator[str]:
    """Yield what is wrong where protocol, mechanism and credentials don't fit together."""
    protocol, mechanism = settings.protocol, settings.mechanism
    if protocol not in PROTOCOLS:
        yield (
            f"security.protocol can't be {settings['security.protocol']!r}: it is one of "
            f"{', '.join(PROTOCOLS)}"
        )
    if mechanism is None:
        return
    if mechanism not in MECHANISMS:
        given = f"can't be {mechanism!r}" if mechanism else "is missing"
        yield f"sasl.mechanism {given}: it is one of {', '.join(MECHANISMS)}"
    if mechanism in PASSWORD_MECHANISMS:
        for name in ("sasl.username", "sasl.password"):
            if name not in settings and f"{name}{FILE_SUFFIX}" not in settings:
                yield f"{mechanism} needs {name}, or {name}{FILE_SUFFIX} with a path"
    if mechanism == OAUTHBEARER:
        yield from _find_token_faults(settings)


def _find_settings_without_effect(settings: ConnectionSettings) -> Iterator[str]:
    """Yield the settings that have no effect with the protocol or the mechanism, if it is one."""
    protocol, mechanism = settings.protocol, settings.mechanism
    if protocol not in PROTOCOLS or (mechanism is not None and mechanism not in MECHANISMS):
        return
    for name in settings:
        is_for_tokens = name.startswith(("sasl.oauthbearer.", "https.", TOKEN_CALLBACK))
        if mechanism is None and (is_for_tokens or name.startswith("sasl.")):
            yield (
                f"{name} has no effect with security.protocol {protocol}: set SASL_SSL, or "
                "SASL_PLAINTEXT"
            )
        elif not settings.uses_tls and name.startswith(("ssl.", "enable.ssl.")):
            wanted = "SSL" if mechanism is None else "SASL_SSL"
            yield f"{name} has no effect with security.protocol {protocol}: set {wanted}"
        elif is_for_tokens and mechanism != OAUTHBEARER:
            yield f"{name} has no effect with sasl.mechanism {mechanism}: it is for {OAUTHBEARER}"


def _find_token_faults(settings: ConnectionSettings) -> Iterator[str]:
    """Yield what is missing for tokens of OAUTHBEARER to come from somewhere."""
    if TOKEN_CALLBACK in settings:
        callback = settings[TOKEN_CALLBACK]
        if not callable(callback) and ":" not in callback:
            yield f"oauth_cb can't be {callback!r}: it is a function, or 'module:function'"
        return
    if str(settings.get("sasl.oauthbearer.method", "default")).lower() != "oidc":
        yield (
            "OAUTHBEARER needs sasl.oauthbearer.method=oidc with client id, secret and token "
            "endpoint, or oauth_cb, a function that returns a token"
        )
        return
    for name in (
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.token.endpoint.url",
    ):
        if name not in settings and f"{name}{FILE_SUFFIX}" not in settings:
            yield f"sasl.oauthbearer.method=oidc needs {name}"


def _find_certificate_faults(settings: ConnectionSettings) -> Iterator[str]:
    """Yield a fault for a client certificate without a key, and for what is given twice."""
    for subject in ("ssl.ca", "ssl.certificate", "ssl.key", "https.ca"):
        if f"{subject}.pem" in settings and f"{subject}.location" in settings:
            yield f"give {subject}.location or {subject}.pem"
    has_certificate = has_pem(settings, "ssl.certificate")
    if has_certificate != has_pem(settings, "ssl.key"):
        missing = "ssl.key" if has_certificate else "ssl.certificate"
        yield f"a client certificate needs its key: set {missing}.location, or {missing}.pem"
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https")
    if algorithm not in ("https", "none", ""):
        yield (
            f"ssl.endpoint.identification.algorithm can't be {algorithm!r}: it is 'https' or 'none'"
        )


def has_pem(settings: ConnectionSettings, subject: str) -> bool:
    """Return whether a certificate or key is given, as a file or as text."""
    return f"{subject}.location" in settings or f"{subject}.pem" in settings
