"""Test a secured Kafka with other options than the session's, and after a kill."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kafka.secured.access import (
    ACCESS_NAMES,
    describe_access,
    is_certificate_error,
    try_access,
)
from tests.kafka.secured.administration import Administration
from tests.kafka.secured.listeners import SecurityOptions
from tests.kafka.secured.server import GUEST, SecuredKafka
from tests.security.conftest import RunSecuredKafka
from tests.security.records import produce_one

pytestmark = pytest.mark.sampled(1, by="test")

OPTIONS = SecurityOptions(
    authorizer=False, reauthentication_ms={}, tls_versions={"MTLS": "TLSv1.2"}
)


@pytest.fixture(scope="module")
def open_kafka(run_secured_kafka: RunSecuredKafka) -> Iterator[SecuredKafka]:
    """Provide a Kafka without authorizer, whose clients' certificates are for TLS 1.2."""
    with run_secured_kafka(OPTIONS) as kafka:
        yield kafka


def test_everyone_writes_without_an_authorizer(open_kafka: SecuredKafka) -> None:
    guest = describe_access(open_kafka, "SASL_SSL/PLAIN", GUEST).settings
    assert produce_one(guest, "open", b"by the guest") is None


def test_a_client_without_certificate_is_refused_within_the_handshake_of_tls_1_2(
    open_kafka: SecuredKafka,
) -> None:
    access = describe_access(open_kafka, "MTLS")
    assert try_access(access.settings) is None
    error = try_access(access.refusals["no certificate"].settings)
    assert error is not None
    assert is_certificate_error(error), error


def test_all_ways_in_and_the_changes_of_run_time_are_there_after_a_kill(
    open_kafka: SecuredKafka,
) -> None:
    administration = Administration(open_kafka)
    administration.set_scram_password("added", "added-secret")
    administration.replace_trust_store("MTLS", [open_kafka.untrusted_authority])
    open_kafka.kill()
    open_kafka.restart()
    try:
        for name in ACCESS_NAMES:
            if name != "MTLS":
                assert try_access(describe_access(open_kafka, name).settings) is None, name
        client = describe_access(open_kafka, "MTLS")
        refused = try_access(client.settings)
        assert refused is not None
        assert is_certificate_error(refused), refused
        assert try_access(client.refusals["untrusted certificate"].settings) is None
        added = describe_access(open_kafka, "SASL_SSL/SCRAM-SHA-256", "added", "added-secret")
        assert try_access(added.settings) is None
    finally:
        administration.replace_trust_store("MTLS", [open_kafka.authority])
