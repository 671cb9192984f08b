"""Provide Kafka Streams to the tests of this directory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.brokers import in_ci
from tests.differential.peer import JARS, Peer


@pytest.fixture(scope="session")
def peer() -> Iterator[Peer]:
    """Start one JVM with Kafka Streams; without Java the tests are skipped, in CI they fail."""
    reason = JARS.missing()
    if reason is not None:
        if in_ci():
            pytest.fail(f"{reason} (in CI this is a failure)")
        pytest.skip(reason)
    with Peer() as started:
        yield started
