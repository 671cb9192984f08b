"""Decisions about groups of either kind leave their arguments as they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import pytest

from coordinator.groups import classic_protocol
from coordinator.groups.classic import membership as classic
from coordinator.groups.consumer import advance, effect_executor, heartbeat
from coordinator.groups.consumer import membership as consumers
from coordinator.groups.migration import join as migration_join
from tests.unit.coordinator.groups.classic.members import SESSION_MS, FakeMember, stable_group
from tests.unit.coordinator.groups.migration.migrants import TOPIC, Migrant, consumer
from tests.unit.coordinator.world import World

DECISIONS: dict[ModuleType, tuple[str, ...]] = {
    classic: ("join_group", "sync_group", "leave_group", "expire_session", "expire_join"),
    consumers: (
        "join_or_stay_in_group",
        "leave_temporarily",
        "fence_or_downgrade",
        "upgrade_group",
    ),
    heartbeat: ("advance_member",),
    advance: ("compute_group_epoch", "compute_target_assignment", "reconcile_member"),
    effect_executor: ("save_resolved_regexes",),
    classic_protocol: ("join_classic_member", "sync_classic_member", "process_classic_heartbeat"),
    migration_join: ("advance_member",),
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the calls of each decision, each of which is checked."""
    calls: Counter[str] = Counter()

    def check(name: str, decide: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(decide)
        def checked(*arguments: Any, **named: Any) -> Any:
            before = repr((arguments, named))
            try:
                return decide(*arguments, **named)
            finally:
                assert repr((arguments, named)) == before, name
                calls[name] += 1

        return checked

    for module, names in DECISIONS.items():
        for name in names:
            full_name = f"{module.__name__}.{name}"
            monkeypatch.setattr(module, name, check(full_name, getattr(module, name)))
    return calls


def test_no_decision_changes_its_arguments(world: World, calls: Counter[str]) -> None:
    world.topics.create(TOPIC, 6)
    a, b = FakeMember(world, "a", instance_id="i"), FakeMember(world, "b")
    stable_group(world, a, b)
    a.leave()
    b.join()
    world.clock.advance(SESSION_MS)

    old = Migrant(world, "old").stable_alone()
    new, other = consumer(world, "new", "n"), consumer(world, "other")
    new.join(TOPIC, regex="s.*")
    other.join(TOPIC)
    for _ in range(4):
        world.clock.advance(5_000)
        new.beat()
        other.beat()
        old.go_on()
    new.leave(to_come_back=True)
    back = consumer(world, "back", "n")
    back.join(TOPIC)
    other.leave()
    back.leave()
    assert calls.keys() == {
        f"{module.__name__}.{name}" for module, names in DECISIONS.items() for name in names
    }
