"""Create the TLS context of a connection, and say what a failed handshake means.

Python's `ssl` reads PEM: certificates and keys in files, or as text. A key in text goes to OpenSSL
through a file without a name, since `ssl` takes keys from files only.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from state.linux_calls import PrivateFile
from streams.common.addresses import Address, format_address
from streams.connection.certificate_validity import explain_invalidity, read_certificate_validity
from streams.connection.settings import ConnectionSettings, has_pem
from streams.errors import ConfigError

_EXPIRED, _NOT_YET_VALID, _REVOKED = 10, 9, 23
_UNTRUSTED = {2, 18, 19, 20, 21, 27}
_WRONG_HOST = {62, 64}
"""OpenSSL's codes of a refused certificate (X509_V_ERR_*, x509_vfy.h)."""

_NO_TLS_REASONS = {
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "RECORD_LAYER_FAILURE",
    "UNEXPECTED_MESSAGE",
    "PACKET_LENGTH_TOO_LONG",
}
_CERTIFICATE_ALERTS = (
    "BAD_CERTIFICATE",
    "CERTIFICATE_REQUIRED",
    "CERTIFICATE_EXPIRED",
    "CERTIFICATE_REVOKED",
    "CERTIFICATE_UNKNOWN",
    "UNSUPPORTED_CERTIFICATE",
    "UNKNOWN_CA",
    "ACCESS_DENIED",
    "DECRYPT_ERROR",
)


def create_tls_context(settings: ConnectionSettings) -> ssl.SSLContext:
    """Create the context for TLS 1.2 and 1.3; certificates and keys are read now.

    Raises ConfigError that names the setting with a file or text that can't be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings.get("ssl.endpoint.identification.algorithm", "https") == (
        "https"
    )
    if settings.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _load_authorities(context, settings)
    if has_pem(settings, "ssl.certificate"):
        _load_client_certificate(context, settings)
    if ciphers := settings.get("ssl.cipher.suites"):
        with _raise_tls_refusals_as_config_errors("ssl.cipher.suites"):
            context.set_ciphers(str(ciphers))
    return context


def _load_authorities(context: ssl.SSLContext, settings: ConnectionSettings) -> None:
    """Trust the authorities of the settings, or else those of the system."""
    if pem := settings.get("ssl.ca.pem"):
        with _raise_tls_refusals_as_config_errors("ssl.ca.pem"):
            # Not as `cadata`, which may have no comment that isn't ASCII.
            context.load_verify_locations(cafile=_write_pem(pem))
    elif path := settings.get("ssl.ca.location"):
        with _raise_tls_refusals_as_config_errors("ssl.ca.location", path):
            where = "capath" if Path(path).is_dir() else "cafile"
            context.load_verify_locations(**{where: path})
    else:
        context.load_default_certs()
    if path := settings.get("ssl.crl.location"):
        with _raise_tls_refusals_as_config_errors("ssl.crl.location", path):
            context.load_verify_locations(cafile=path)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _load_client_certificate(context: ssl.SSLContext, settings: ConnectionSettings) -> None:
    """Load the client certificate and its key."""
    password = settings.read_secret("ssl.key.password") or ""
    was_asked = False

    def answer() -> str:
        # OpenSSL asks for an encrypted key; without a function it would ask on the terminal.
        nonlocal was_asked
        was_asked = True
        return password

    def explain(error: OSError) -> str:
        return _explain_key(error, is_encrypted=was_asked)

    certificate, key = (
        _get_or_write_pem_path(settings, "ssl.certificate"),
        _get_or_write_pem_path(settings, "ssl.key"),
    )
    with _raise_tls_refusals_as_config_errors("ssl.key.location or ssl.key.pem", hint=explain):
        context.load_cert_chain(certificate, key, password=answer)


def _get_or_write_pem_path(settings: ConnectionSettings, subject: str) -> str:
    """Return the path of a certificate or key, with text of the settings in a private file."""
    if path := settings.get(f"{subject}.location"):
        with _raise_tls_refusals_as_config_errors(f"{subject}.location", path):
            Path(path).read_bytes()
        return str(path)
    return _write_pem(settings[f"{subject}.pem"])


def _write_pem(pem: object) -> PrivateFile:
    """Write text of the settings to a file, for OpenSSL, which reads files only."""
    return PrivateFile(str(pem).encode(), "millrace-connection")


@contextmanager
def _raise_tls_refusals_as_config_errors(
    name: str, path: str = "", hint: Callable[[OSError], str] = str
) -> Iterator[None]:
    """Raise ConfigError, with the setting and its path, for what OpenSSL or the system refuse."""
    try:
        yield
    except (OSError, ValueError) as error:
        shown = f" {str(path)!r}" if path else ""
        reason = str(error)
        if isinstance(error, OSError):
            # Without the number and the path of the system's own text.
            is_of_system = not isinstance(error, ssl.SSLError) and error.strerror
            reason = str(error.strerror) if is_of_system else hint(error)
        raise ConfigError(f"connection: {name}{shown} can't be used: {reason}") from None


def _explain_key(error: OSError, *, is_encrypted: bool) -> str:
    """Say in plain words why a certificate and a key don't load."""
    text = str(error)
    if "KEY_VALUES_MISMATCH" in text:
        return "the key isn't that of the client certificate"
    if is_encrypted:
        return "ssl.key.password is missing or wrong"
    return f"no certificate and key in PEM ({text})"


def explain_missing_tls(error: OSError, address: Address) -> str:
    """Say which setting to change if an answer looks like that of a port without TLS; else ''.

    A proxy answers so too while its brokers restart, so that a later attempt may succeed.
    """
    if not isinstance(error, ssl.SSLError) or error.reason not in _NO_TLS_REASONS:
        return ""
    return (
        f"the broker at {format_address(address)} doesn't speak TLS on this port: take the port of "
        "its SSL or SASL_SSL listener, or set security.protocol to PLAINTEXT or SASL_PLAINTEXT"
    )


def explain_handshake_failure(
    error: OSError, address: Address, settings: ConnectionSettings
) -> str | None:
    """Say what a TLS error means and which setting to change; None for a mere network error."""
    broker = f"the broker at {format_address(address)}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return _explain_refused_certificate(error, broker, address[0])
    if not isinstance(error, ssl.SSLError):
        return None
    reason = error.reason or ""
    if "PROTOCOL_VERSION" in reason or "UNSUPPORTED_PROTOCOL" in reason:
        return f"{broker} and this client have no version of TLS in common ({reason})"
    if "ALERT_HANDSHAKE_FAILURE" in reason:
        return (
            f"{broker} and this client can't agree on TLS ({reason}): check ssl.cipher.suites, and "
            "ssl.certificate.location and ssl.key.location if the broker wants a certificate"
        )
    if "ALERT" in reason and any(alert in reason for alert in _CERTIFICATE_ALERTS):
        if invalid := _explain_own_certificate(settings):
            return (
                f"{broker} refused the client certificate, {invalid} ({reason}): renew the files "
                "of ssl.certificate.location and ssl.key.location"
            )
        return (
            f"{broker} refused the client certificate, or wants one ({reason}): check "
            "ssl.certificate.location and ssl.key.location"
        )
    return None


def _explain_own_certificate(settings: ConnectionSettings) -> str:
    """Say why the client certificate is not valid now; empty if it is, or there is none."""
    pem = str(settings.get("ssl.certificate.pem", "")).encode()
    with suppress(OSError):
        if path := settings.get("ssl.certificate.location"):
            pem = Path(str(path)).read_bytes()
    validity = read_certificate_validity(pem)
    return "" if validity is None else explain_invalidity(validity, datetime.now(UTC))


def _explain_refused_certificate(
    error: ssl.SSLCertVerificationError, broker: str, host: str
) -> str:
    """Say why the certificate of a broker isn't trusted."""
    code, why = error.verify_code, error.verify_message.rstrip(".")
    if code in _WRONG_HOST:
        return (
            f"the certificate of {broker} isn't for {host!r} ({why}): connect by a name that is in "
            "it, or set ssl.endpoint.identification.algorithm to none"
        )
    if code in (_EXPIRED, _NOT_YET_VALID):
        return f"the certificate of {broker} is not valid today ({why}): it must be renewed there"
    if code in _UNTRUSTED:
        return (
            f"the certificate of {broker} is not trusted ({why}): set ssl.ca.location to a PEM "
            "file with the authority that signed it"
        )
    reason = "it is revoked" if code == _REVOKED else why
    return f"the certificate of {broker} is refused: {reason} (ssl.ca.location, ssl.crl.location)"
