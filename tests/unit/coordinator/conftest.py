"""Give each test of the coordinators a world of its own."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.world import World


@pytest.fixture
def world() -> World:
    return World()
