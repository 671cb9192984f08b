"""Provide Kafka Streams to the tests of this directory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.differential.peer import Peer, require_java


@pytest.fixture(scope="session")
def peer() -> Iterator[Peer]:
    """Start one JVM with Kafka Streams; without Java the tests are skipped, in CI they fail."""
    require_java()
    with Peer() as started:
        yield started
