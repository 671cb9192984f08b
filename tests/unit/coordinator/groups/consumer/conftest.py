"""Provide a world with one topic of six partitions and members of a consumer group."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from coordinator.groups.consumer.config import ConsumerGroupSettings
from tests.unit.coordinator.groups.consumer.members import GROUP, Consumer
from tests.unit.coordinator.world import World


@pytest.fixture
def world() -> World:
    """Return a world in which target assignments are computed whenever they are due."""
    world = World()
    world.group_settings[GROUP] = ConsumerGroupSettings(assignment_interval_ms=0)
    return world


@pytest.fixture
def topic_id(world: World) -> UUID:
    """Return the id of the topic `six`."""
    return world.topics.create("six", 6)


@pytest.fixture
def member(world: World, topic_id: UUID) -> Callable[..., Consumer]:
    return lambda member_id, instance_id=None: Consumer(world, member_id, instance_id)
