"""Provide one registry for all tests, started when the first one asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import brokers
from tests.registry.server import JARS, ApicurioRegistry


@pytest.fixture(scope="session")
def registry() -> Iterator[ApicurioRegistry]:
    reason = JARS.missing()
    if reason:
        assert not brokers.in_ci(), reason
        pytest.skip(reason)
    server = ApicurioRegistry()
    try:
        server.start()
        yield server
    finally:
        server.close()
