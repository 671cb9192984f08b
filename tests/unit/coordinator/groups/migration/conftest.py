"""Provide a world with the topic that the migrating members read."""

from __future__ import annotations

import pytest

from coordinator.groups.consumer.config import ConsumerGroupSettings
from tests.unit.coordinator.groups.migration.migrants import GROUP, TOPIC
from tests.unit.coordinator.world import World


@pytest.fixture
def world() -> World:
    made = World()
    made.topics.create(TOPIC, 6)
    made.group_settings[GROUP] = ConsumerGroupSettings(assignment_interval_ms=0)
    return made
