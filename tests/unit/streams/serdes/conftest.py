"""Provide a schema registry in memory to the tests of serdes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.streams.serdes.schema_registry import SchemaRegistry


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    """Provide a running schema registry, which is empty."""
    with SchemaRegistry() as running:
        yield running
