"""Replace the files of a client certificate while an application runs."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.kafka.secured.access import describe_access
from tests.kafka.secured.certificates import Certificate
from tests.kafka.secured.server import SecuredKafka


class CertificateFiles:
    """Holds the files of a client certificate, which are replaced while an application runs."""

    def __init__(self, directory: Path, certificate: Certificate) -> None:
        self.certificate_path = directory / "client.pem"
        self.key_path = directory / "client.key"
        self.write(certificate)

    def write(self, certificate: Certificate, key: Certificate | None = None) -> None:
        """Write a certificate, with the key of another if one is given."""
        shutil.copy(certificate.certificate_path, self.certificate_path)
        shutil.copy((key or certificate).key_path, self.key_path)

    def describe(self, kafka: SecuredKafka) -> dict[str, str]:
        """Return the connection with these files."""
        return {
            **describe_access(kafka, "MTLS").settings,
            "ssl.certificate.location": str(self.certificate_path),
            "ssl.key.location": str(self.key_path),
        }
