"""Test the broker's log lines about groups at level `info`, which say what happened and why."""

from __future__ import annotations

import logging

import pytest

from tests.unit.coordinator.groups.classic.members import FakeMember, stable_group
from tests.unit.coordinator.groups.consumer.members import Consumer
from tests.unit.coordinator.world import World


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "coordinator.groups")
    return caplog


def test_a_classic_group_s_generations_are_told(
    world: World, lines: pytest.LogCaptureFixture
) -> None:
    first, second = FakeMember(world, "a"), FakeMember(world, "b")
    stable_group(world, first, second)
    assert lines.messages[0] == "counts: generation 0 ends: join"
    assert "2 members" in lines.messages[-1]
    lines.clear()
    second.leave()
    assert lines.messages == [f"counts: generation {first.generation} ends: leave"]


def test_who_comes_and_goes_in_a_consumer_group_is_told(
    world: World, lines: pytest.LogCaptureFixture
) -> None:
    world.topics.create("six", 6)
    someone = Consumer(world, "a", None)
    someone.join("six")
    assert lines.messages == [
        "readers: epoch 2 begins: join a",
        "readers: all 1 members are at epoch 2, after 0 ms",
    ]
    lines.clear()
    world.clock.advance(45_000)
    assert lines.messages[0] == "readers: epoch 3 begins: session a"
