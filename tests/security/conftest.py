"""Provide a secured Kafka for the session, and what changes it while it runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import brokers
from tests.kafka.secured.administration import Administration
from tests.kafka.secured.server import SecuredKafka
from tests.kafka.server import missing


@pytest.fixture(scope="session")
def secured_kafka() -> Iterator[SecuredKafka]:
    """Provide a running Kafka with all listeners and the authorizer.

    A test that changes users, ACLs or certificates uses names of its own, or changes them back.
    """
    reason = missing()
    if reason:
        assert not brokers.in_ci(), reason
        pytest.skip(reason)
    kafka = SecuredKafka()
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.close()


@pytest.fixture(scope="session")
def administration(secured_kafka: SecuredKafka) -> Administration:
    """Provide the administration of that Kafka."""
    return Administration(secured_kafka)
