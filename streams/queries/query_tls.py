"""Read the certificate of a query port, and the authorities of those of other workers, from files.

Files are looked at every few seconds. Changed ones are taken up when they have stayed the same for
two looks, since a certificate and its key are replaced one after the other; if they can't be used,
the old ones stay in use and the log says why, once for each change.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from streams.connection.certificate_validity import explain_invalidity, read_certificate_validity
from streams.connection.file_digests import FileDigests
from streams.connection.settings import LOCATION_SUFFIX, ConnectionSettings
from streams.errors import ConfigError

log = logging.getLogger(__name__)

CHECK_INTERVAL_S = 2.0


class QueryTls(NamedTuple):
    """Holds the files by which queries go over TLS; all None: they don't.

    Without `key` the key is in the file of the certificate. Without `authorities` a certificate of
    another worker has to be signed by one of the system's.
    """

    certificate: Path | None = None
    key: Path | None = None
    key_password: str = ""
    authorities: Path | None = None

    @property
    def is_used(self) -> bool:
        """Return whether other workers are asked over TLS."""
        return self.certificate is not None or self.authorities is not None

    def load_certificate(self, context: ssl.SSLContext) -> None:
        """Load the certificate and its key. Raises ConfigError."""
        assert self.certificate is not None
        was_asked = False

        def tell_password() -> str:
            # Without a function OpenSSL would ask on the terminal.
            nonlocal was_asked
            was_asked = True
            return self.key_password

        try:
            context.load_cert_chain(self.certificate, self.key, password=tell_password)
        except (OSError, ValueError) as error:
            named = f"query_ssl_certificate_location {str(self.certificate)!r}"
            if self.key is not None:
                named += f" with query_ssl_key_location {str(self.key)!r}"
            hint = (
                "query_ssl_key_password is missing or wrong"
                if was_asked
                else _explain_refusal(error)
            )
            raise ConfigError(f"{named} can't be used: {hint}") from None
        validity = read_certificate_validity(self.certificate.read_bytes())
        if validity and (invalid := explain_invalidity(validity, datetime.now(UTC))):
            log.warning(
                "query_ssl_certificate_location %r has a certificate %s: clients refuse it",
                str(self.certificate),
                invalid,
            )

    def create_client_context(self) -> ssl.SSLContext:
        """Create the context that trusts the authorities, and nobody without TLS.

        Raises ConfigError.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.authorities is None:
            if self.is_used:
                context.load_default_certs()
            return context
        try:
            context.load_verify_locations(cafile=self.authorities)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"query_ssl_ca_location {str(self.authorities)!r} can't be used: "
                f"{_explain_refusal(error)}"
            ) from None
        return context


def create_server_context() -> ssl.SSLContext:
    """Create the context of a query port, for TLS 1.2 and 1.3, without its certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class ChangedFiles:
    """Tells when files have changed and have stayed the same since the look before."""

    def __init__(self, paths: Mapping[str, Path | None], monotonic_s: Callable[[], float]) -> None:
        files = {f"{name}{LOCATION_SUFFIX}": str(path) for name, path in paths.items() if path}
        self._files = FileDigests(ConnectionSettings(files), monotonic_s)
        self._taken = self._seen = self._files.digest_files()

    def take_settled_change(self) -> bool:
        """Return whether changed files are to be taken up now: True once for each change."""
        found = self._files.digest_files()
        is_steady = found == self._seen
        self._seen = found
        if found == self._taken or not is_steady:
            return False
        self._taken = found
        return True


class ServerCertificate:
    """Holds the `context` of a query port, and takes up changes of its files.

    Raises ConfigError for files that can't be used.
    """

    def __init__(self, tls: QueryTls, monotonic_s: Callable[[], float]) -> None:
        self._tls = tls
        self._files = ChangedFiles({"certificate": tls.certificate, "key": tls.key}, monotonic_s)
        self.context = create_server_context()
        tls.load_certificate(self.context)

    def take_changes(self) -> None:
        """Use changed files for connections from now on; keep the old ones if they are of no use.

        It is called on the thread that serves: OpenSSL's contexts have no lock.
        """
        if not self._files.take_settled_change():
            return
        try:
            self._tls.load_certificate(create_server_context())
            self._tls.load_certificate(self.context)
        except ConfigError as error:
            log.warning("%s: the certificate before stays in use", error)
            return
        log.info("query_ssl_certificate_location: changed")


def _explain_refusal(error: Exception) -> str:
    """Say in plain words why a file can't be used."""
    if "KEY_VALUES_MISMATCH" in str(error):
        return "the key isn't that of the certificate"
    if isinstance(error, ssl.SSLError):
        return f"it isn't PEM that OpenSSL reads ({error.reason or error})"
    return getattr(error, "strerror", None) or str(error)
