"""Test that each listener of a secured Kafka lets plain clients in, and refuses the others.

It is the test of the fixture: what Millrace does at these listeners can be judged by it.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AclOperation, ResourceType

from tests.kafka.secured.access import (
    ACCESS_NAMES,
    describe_access,
    is_certificate_error,
    try_access,
)
from tests.kafka.secured.administration import Administration, create_allow_acl
from tests.kafka.secured.certificates import Authority
from tests.kafka.secured.listeners import MECHANISMS
from tests.kafka.secured.server import GUEST, SecuredKafka
from tests.processes import HANG_LIMIT_S, HOST
from tests.security.records import consume_one, produce_one

pytestmark = pytest.mark.sampled(1, by="test")

REFUSING = tuple(name for name in ACCESS_NAMES if name != "PLAINTEXT")
PERSONAL = ("MTLS", *(f"SASL_SSL/{mechanism}" for mechanism in MECHANISMS))
"""Ways in that tell the broker who it is."""
# OpenSSL's X509_V_ERR codes.
HAS_EXPIRED = 10
UNKNOWN_ISSUER = 20
IP_ADDRESS_MISMATCH = 64


def create_tls_context(
    authority: Authority, version: ssl.TLSVersion | None = None
) -> ssl.SSLContext:
    """Return what a Python client needs for TLS, of this version only if one is given."""
    context = ssl.create_default_context(cafile=str(authority.path))
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


def shake_hands(kafka: SecuredKafka, listener: str, context: ssl.SSLContext) -> tuple[str, bytes]:
    """Connect by TLS and return its version and the server's certificate, as DER."""
    address = (HOST, kafka.ports[listener])
    with (
        socket.create_connection(address, HANG_LIMIT_S) as plain,
        context.wrap_socket(plain, server_hostname=HOST) as secured,
    ):
        version, certificate = secured.version(), secured.getpeercert(binary_form=True)
        assert version is not None
        assert certificate is not None
        return version, certificate


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ACCESS_NAMES)
def test_a_client_produces_and_consumes(
    name: str, secured_kafka: SecuredKafka, unique: Callable[[str], str]
) -> None:
    settings = describe_access(secured_kafka, name).settings
    topic = unique("records")
    assert produce_one(settings, topic, name.encode()) is None
    assert consume_one(settings, topic) == name.encode()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", REFUSING)
def test_wrong_credentials_are_refused_with_the_code_that_says_so(
    name: str, secured_kafka: SecuredKafka
) -> None:
    refusals = describe_access(secured_kafka, name).refusals
    assert refusals
    errors = {what: try_access(refusal.settings) for what, refusal in refusals.items()}
    assert all(refusal.explains(errors[what]) for what, refusal in refusals.items()), errors


@pytest.mark.parametrize(
    ("listener", "reason"),
    [("EXPIRED", HAS_EXPIRED), ("WRONG_HOST", IP_ADDRESS_MISMATCH)],
)
def test_a_server_with_a_bad_certificate_is_refused(
    listener: str, reason: int, secured_kafka: SecuredKafka
) -> None:
    settings = {
        **describe_access(secured_kafka, "SSL").settings,
        "bootstrap.servers": secured_kafka.listener_servers(listener),
    }
    error = try_access(settings)
    assert error is not None
    assert is_certificate_error(error), error
    assert try_access({**settings, "enable.ssl.certificate.verification": "false"}) is None
    with pytest.raises(ssl.SSLCertVerificationError) as refused:
        shake_hands(secured_kafka, listener, create_tls_context(secured_kafka.authority))
    assert refused.value.verify_code == reason


def test_a_host_name_is_verified_unless_the_client_says_otherwise(
    secured_kafka: SecuredKafka,
) -> None:
    settings = {
        **describe_access(secured_kafka, "SSL").settings,
        "bootstrap.servers": secured_kafka.listener_servers("WRONG_HOST"),
    }
    assert try_access({**settings, "ssl.endpoint.identification.algorithm": "none"}) is None


def test_a_server_of_an_unknown_authority_is_refused(secured_kafka: SecuredKafka) -> None:
    with pytest.raises(ssl.SSLCertVerificationError) as refused:
        shake_hands(secured_kafka, "SSL", create_tls_context(secured_kafka.untrusted_authority))
    assert refused.value.verify_code == UNKNOWN_ISSUER


@pytest.mark.parametrize(
    ("listener", "only"),
    [
        ("SSL", None),
        ("TLS_1_2", ssl.TLSVersion.TLSv1_2),
        ("TLS_1_3", ssl.TLSVersion.TLSv1_3),
    ],
)
def test_a_listener_speaks_the_versions_of_tls_that_it_was_told(
    listener: str, only: ssl.TLSVersion | None, secured_kafka: SecuredKafka
) -> None:
    names = {ssl.TLSVersion.TLSv1_2: "TLSv1.2", ssl.TLSVersion.TLSv1_3: "TLSv1.3"}
    for version, name in names.items():
        context = create_tls_context(secured_kafka.authority, version)
        if only in (None, version):
            assert shake_hands(secured_kafka, listener, context)[0] == name
        else:
            with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
                shake_hands(secured_kafka, listener, context)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PERSONAL)
def test_a_user_without_rights_writes_once_an_acl_allows_it(
    name: str,
    secured_kafka: SecuredKafka,
    administration: Administration,
    unique: Callable[[str], str],
) -> None:
    topic = unique("guarded")
    admin = describe_access(secured_kafka, name).settings
    guest = describe_access(secured_kafka, name, GUEST).settings
    assert produce_one(admin, topic, b"by the super user") is None

    def is_authorized() -> bool:
        error = produce_one(guest, topic, b"by the guest")
        assert error is None or error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED, error
        return error is None

    assert not is_authorized()
    write = create_allow_acl(GUEST, AclOperation.WRITE, ResourceType.TOPIC, topic)
    administration.add_acls(write)
    assert is_authorized()
    administration.remove_acls(write)
    assert not is_authorized()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_scram_user_comes_changes_its_password_and_goes(
    mechanism: str,
    secured_kafka: SecuredKafka,
    administration: Administration,
    unique: Callable[[str], str],
) -> None:
    user = unique("user")

    def read_code(password: str) -> int | None:
        access = describe_access(secured_kafka, f"SASL_SSL/{mechanism}", user, password)
        error = try_access(access.settings)
        return None if error is None else error.code()

    assert read_code("first") == KafkaError._AUTHENTICATION
    administration.set_scram_password(user, "first")
    assert read_code("first") is None
    administration.set_scram_password(user, "second")
    assert read_code("first") == KafkaError._AUTHENTICATION
    assert read_code("second") is None
    administration.remove_scram_user(user)
    assert read_code("second") == KafkaError._AUTHENTICATION


def test_a_listener_shows_the_certificate_that_replaced_its_first(
    secured_kafka: SecuredKafka, administration: Administration
) -> None:
    context = create_tls_context(secured_kafka.authority)
    for _ in range(2):
        replacement = secured_kafka.authority.issue_server()
        administration.replace_key_store("SSL", replacement)
        _, shown = shake_hands(secured_kafka, "SSL", context)
        pem = replacement.certificate_path.read_text()
        assert shown == ssl.PEM_cert_to_DER_cert(pem)


def test_a_client_certificate_is_refused_once_its_authority_is_not_trusted(
    secured_kafka: SecuredKafka, administration: Administration
) -> None:
    access = describe_access(secured_kafka, "MTLS")
    old, new = access.settings, access.refusals["untrusted certificate"].settings
    both = [secured_kafka.authority, secured_kafka.untrusted_authority]
    try:
        administration.replace_trust_store("MTLS", both)
        assert try_access(old) is None
        assert try_access(new) is None
        administration.replace_trust_store("MTLS", both[1:])
        refused = try_access(old)
        assert refused is not None
        assert is_certificate_error(refused), refused
        assert try_access(new) is None
    finally:
        administration.replace_trust_store("MTLS", both[:1])
