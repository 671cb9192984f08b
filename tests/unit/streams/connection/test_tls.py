"""The TLS context: each form of certificates and keys, and a message for each that is refused."""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from streams.connection.settings import ConnectionSettings, parse_connection
from streams.connection.tls import create_tls_context, explain_handshake_failure
from streams.errors import ConfigError
from tests.kafka.secured.certificates import Authority, Certificate
from tests.processes import HANG_LIMIT_S, HOST

PASSWORD = "a-planted-password"


@pytest.fixture(scope="session")
def client(authority: Authority) -> Certificate:
    return authority.issue_client("user")


@pytest.fixture(scope="session")
def encrypted_key(client: Certificate) -> Path:
    key = serialization.load_pem_private_key(client.key_path.read_bytes(), None)
    path = client.key_path.with_suffix(".encrypted")
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(PASSWORD.encode()),
        )
    )
    return path


def create(**settings: str) -> ssl.SSLContext:
    """Create the context of settings with underscores for dots."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return create_tls_context(parse_connection({"security.protocol": "SSL", **named}))


def refuse(**settings: str) -> str:
    """Return the message with which settings are refused."""
    with pytest.raises(ConfigError) as refused:
        create(**settings)
    message = str(refused.value)
    assert PASSWORD not in message
    assert "PRIVATE KEY" not in message
    return message


def test_certificates_and_keys_are_read_from_files_and_from_text(
    authority: Authority, client: Certificate
) -> None:
    from_files = create(
        ssl_ca_location=str(authority.path),
        ssl_certificate_location=str(client.certificate_path),
        ssl_key_location=str(client.key_path),
    )
    from_text = create(
        ssl_ca_pem=authority.path.read_text(),
        ssl_certificate_pem=client.certificate_path.read_text(),
        ssl_key_pem=client.key_path.read_text(),
    )
    for context in (from_files, from_text):
        subjects = [each["subject"] for each in context.get_ca_certs()]
        assert subjects == [((("commonName", "authority"),),)]
        assert context.minimum_version == ssl.TLSVersion.TLSv1_2
        assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)


def test_an_encrypted_key_needs_its_password(
    client: Certificate, encrypted_key: Path, tmp_path: Path
) -> None:
    key = {
        "ssl_certificate_location": str(client.certificate_path),
        "ssl_key_location": str(encrypted_key),
    }
    create(**key, ssl_key_password=PASSWORD)
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    create(**key, ssl_key_password_file=str(tmp_path / "password"))
    assert "ssl.key.password is missing or wrong" in refuse(**key)
    assert "ssl.key.password is missing or wrong" in refuse(**key, ssl_key_password="wrong")
    text = {**key, "ssl_key_pem": encrypted_key.read_text()}
    del text["ssl_key_location"]
    create(**text, ssl_key_password=PASSWORD)
    assert "ssl.key.location or ssl.key.pem can't be used" in refuse(
        **text, ssl_key_password=PASSWORD * 100
    )


def test_a_key_of_another_certificate_is_refused(authority: Authority, client: Certificate) -> None:
    message = refuse(
        ssl_certificate_location=str(client.certificate_path),
        ssl_key_location=str(authority.issue_client("other").key_path),
    )
    assert "the key isn't that of the client certificate" in message


def test_what_is_missing_or_no_pem_is_named_with_its_path(
    authority: Authority, client: Certificate, missing: str, tmp_path: Path
) -> None:
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("garbage")
    certificate, key = str(client.certificate_path), str(client.key_path)
    for path in (missing, str(garbage)):
        assert f"ssl.ca.location '{path}' can't be used" in refuse(ssl_ca_location=path)
        message = refuse(ssl_ca_location=str(authority.path), ssl_crl_location=path)
        assert f"ssl.crl.location '{path}' can't be used" in message
    message = refuse(ssl_certificate_location=missing, ssl_key_location=key)
    assert f"ssl.certificate.location '{missing}' can't be used" in message
    message = refuse(ssl_certificate_location=certificate, ssl_key_location=missing)
    assert f"ssl.key.location '{missing}' can't be used" in message
    message = refuse(ssl_certificate_location=certificate, ssl_key_location=str(garbage))
    assert "no certificate and key in PEM" in message
    assert "ssl.ca.pem can't be used" in refuse(ssl_ca_pem="garbage")
    assert "ssl.key.password.file" in refuse(
        ssl_certificate_location=certificate, ssl_key_location=key, ssl_key_password_file=missing
    )


def test_ciphers_are_set_and_unknown_ones_refused() -> None:
    only = "ECDHE-RSA-AES128-GCM-SHA256"
    names = {each["name"] for each in create(ssl_cipher_suites=only).get_ciphers()}
    assert {name for name in names if not name.startswith("TLS_")} == {only}
    assert "ssl.cipher.suites can't be used" in refuse(ssl_cipher_suites="NONE-SUCH")


def test_what_is_verified_can_be_weakened_by_name_only() -> None:
    context = create(ssl_endpoint_identification_algorithm="none")
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_REQUIRED)
    context = create(enable_ssl_certificate_verification="false")
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_NONE)


def explain_handshake(
    server: ssl.SSLContext, client: ssl.SSLContext, settings: ConnectionSettings | None = None
) -> str | None:
    """Return what is said of a handshake and of the first byte; None if both are right."""

    def serve(listener: socket.socket) -> None:
        plain, _ = listener.accept()
        plain.settimeout(HANG_LIMIT_S)
        try:
            with server.wrap_socket(plain, server_side=True) as secured:
                secured.sendall(b"x")
        except OSError:
            plain.close()

    with socket.create_server((HOST, 0)) as listener:
        address = listener.getsockname()
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            with (
                socket.create_connection(address, HANG_LIMIT_S) as plain,
                client.wrap_socket(plain, server_hostname=HOST) as secured,
            ):
                secured.recv(1)
                return None
        except OSError as error:
            return explain_handshake_failure(error, address, settings or ConnectionSettings())
        finally:
            thread.join()


def create_server(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate_path, certificate.key_path)
    return context


def test_a_directory_of_authorities_is_trusted(authority: Authority, tmp_path: Path) -> None:
    server = create_server(authority.issue_server())
    client = create(ssl_ca_location=str(tmp_path))
    assert "is not trusted" in str(explain_handshake(server, client))
    pem = authority.path.read_bytes()
    names = x509.load_pem_x509_certificate(pem).subject
    number = _hash_subject(names)
    (tmp_path / f"{number}.0").write_bytes(pem)
    assert explain_handshake(server, create(ssl_ca_location=str(tmp_path))) is None


def _hash_subject(name: x509.Name) -> str:
    """Return the name of an authority's file in a directory (`openssl x509 -subject_hash`)."""
    import hashlib

    # OpenSSL hashes the canonical form: lower case, UTF8String, without the outer SEQUENCE.
    (attribute,) = name
    text = str(attribute.value).lower().encode()
    oid = bytes.fromhex("0603550403")
    pair = oid + bytes([0x0C, len(text)]) + text
    sequence = bytes([0x30, len(pair)]) + pair
    canonical = bytes([0x31, len(sequence)]) + sequence
    digest = hashlib.sha1(canonical, usedforsecurity=False).digest()
    return f"{int.from_bytes(digest[:4], 'little'):08x}"


def test_a_revoked_certificate_is_refused(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "revoking")])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("localhost")]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    paths = {each: tmp_path / each for each in ("crt", "key", "crl")}
    pem = serialization.Encoding.PEM
    paths["crt"].write_bytes(certificate.public_bytes(pem))
    paths["key"].write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(paths["crt"], paths["key"])
    for serials, said in (([], None), ([7], "it is revoked")):
        builder = x509.CertificateRevocationListBuilder().issuer_name(name)
        builder = builder.last_update(now - day).next_update(now + day)
        for serial in serials:
            revoked = x509.RevokedCertificateBuilder().serial_number(serial)
            builder = builder.add_revoked_certificate(revoked.revocation_date(now - day).build())
        paths["crl"].write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(pem))
        client = create(
            ssl_ca_location=str(paths["crt"]),
            ssl_crl_location=str(paths["crl"]),
            ssl_endpoint_identification_algorithm="none",
        )
        explained = explain_handshake(server, client)
        assert explained is None if said is None else said in str(explained)


def test_sides_without_a_common_cipher_are_told_so(authority: Authority) -> None:
    server = create_server(authority.issue_server())
    server.maximum_version = ssl.TLSVersion.TLSv1_2
    server.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    client = create(
        ssl_ca_location=str(authority.path), ssl_cipher_suites="ECDHE-ECDSA-AES128-GCM-SHA256"
    )
    assert "check ssl.cipher.suites" in str(explain_handshake(server, client))


def test_a_version_that_only_one_side_has_is_named(authority: Authority) -> None:
    server = create_server(authority.issue_server())
    client = create(ssl_ca_location=str(authority.path))
    server.maximum_version, client.minimum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    assert "have no version of TLS in common" in str(explain_handshake(server, client))


def test_a_client_certificate_that_is_refused_since_it_has_expired_is_named_with_the_date(
    authority: Authority,
) -> None:
    server = create_server(authority.issue_server())
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(authority.path)
    for expired, text in ((True, "which has expired: it was valid until 20"), (False, None)):
        issued = authority.issue_client("user", expired=expired)
        named = {
            "security.protocol": "SSL",
            "ssl.ca.location": str(authority.path),
            "ssl.certificate.location": str(issued.certificate_path),
            "ssl.key.location": str(issued.key_path),
        }
        settings = parse_connection(named)
        explained = explain_handshake(server, create_tls_context(settings), settings)
        assert explained is None if text is None else text in str(explained)
