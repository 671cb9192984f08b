"""Issue the certificates of a secured Kafka and its clients: authorities, servers, clients.

All are PEM, which both librdkafka and Kafka (`ssl.keystore.type=PEM`) read: a key store is one file
with the private key (PKCS #8, not encrypted) before its certificate.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.processes import HOST

VALID = datetime.timedelta(days=2)
EXPIRED_FOR = datetime.timedelta(days=1)
SERVER_NAMES = (HOST, "localhost")
OTHER_NAMES = ("elsewhere.example",)


@dataclass(frozen=True, slots=True)
class Certificate:
    """Represents a certificate and its private key as files, each by itself and both in one."""

    certificate_path: Path
    key_path: Path
    key_store_path: Path


class Authority:
    """Represents a certificate authority; what it issues is written to `directory`."""

    def __init__(self, name: str, directory: Path) -> None:
        self._name = _common_name(name)
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._issued_count = 0
        self.path = directory / f"{name}.pem"
        signed = (
            self._begin_certificate(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path.write_bytes(signed.public_bytes(Encoding.PEM))

    def issue_server(
        self, names: tuple[str, ...] = SERVER_NAMES, *, expired: bool = False
    ) -> Certificate:
        """Issue a server certificate for these host names and addresses."""
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
        valid_for = -EXPIRED_FOR if expired else VALID
        return self._issue("broker", ExtendedKeyUsageOID.SERVER_AUTH, alternatives, valid_for)

    def issue_client(
        self, user: str, *, expired: bool = False, valid_for: datetime.timedelta = VALID
    ) -> Certificate:
        """Issue a client certificate whose subject is `CN=user`."""
        valid_for = -EXPIRED_FOR if expired else valid_for
        return self._issue(user, ExtendedKeyUsageOID.CLIENT_AUTH, None, valid_for)

    def _issue(
        self,
        subject: str,
        usage: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None,
        valid_for: datetime.timedelta,
    ) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._begin_certificate(_common_name(subject), key.public_key(), valid_for)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        )
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self._issued_count += 1
        stem = f"{self.path.stem}-{self._issued_count}-{subject}"
        issued = Certificate(
            self._directory / f"{stem}.crt.pem",
            self._directory / f"{stem}.key.pem",
            self._directory / f"{stem}.store.pem",
        )
        issued.certificate_path.write_bytes(certificate)
        issued.key_path.write_bytes(private)
        issued.key_store_path.write_bytes(private + certificate)
        return issued

    def _begin_certificate(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        valid_for: datetime.timedelta = VALID,
    ) -> x509.CertificateBuilder:
        """Return the part that all certificates have, with the key ids that strict clients ask for.

        Such a client is Python's `ssl` since 3.13 (RFC 5280, 4.2.1.1 and 4.2.1.2).
        """
        now = datetime.datetime.now(datetime.UTC)
        issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - VALID)
            .not_valid_after(now + valid_for)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(issuer_id, critical=False)
        )


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
