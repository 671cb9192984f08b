"""Test that every invariant holds in histories of groups on a broker that crashes."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

import pytest

from tests.simulation.groups.checkers.checker import GroupChecker
from tests.simulation.groups.history import GroupHistory
from tests.simulation.groups.scenario import scenario
from tests.simulation.groups.world import GroupWorld
from tests.simulation.history import find_failure
from tests.simulation.test_histories import fingerprints
from tests.simulation.world import Violation

DAYS_SEEDS = 5
SEEDS = 15  # `make ci` runs 30, `make soak SEEDS=1000` as many as you like


@cache
def run_seed(seed: int) -> tuple[GroupHistory, Violation | None]:
    """Return the history of a seed, which is run once for all tests, and what it violates."""
    history = GroupHistory(scenario(seed))
    return history, history.run()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_law_of_groups_holds_in_the_history_of_a_seed(seed: int) -> None:
    _, violation = run_seed(seed)
    assert violation is None, find_failure(GroupHistory, scenario(seed))


@pytest.mark.parametrize("seed", range(DAYS_SEEDS))
def test_every_law_of_groups_holds_while_days_pass(seed: int) -> None:
    found = find_failure(GroupHistory, scenario(seed, days=True))
    assert not found, found


def test_histories_of_groups_are_about_something() -> None:
    """Check that histories have rebalances, accepted and refused commits, ends and restarts."""
    histories = []
    for seed in range(10):
        history, violation = run_seed(seed)
        assert violation is None
        histories.append(history)
    lives = [life for h in histories for host in h.world.hosts for life in host.lives]
    assert sum(life.is_over for life in lives) > 50
    assert max(life.epoch for life in lives) > 5
    assert sum(history.world.life for history in histories) > 10
    assert sum(len(life.owned) for life in lives) > 50
    assert {life.profile.protocol for life in lives} == {"eager", "cooperative", "consumer"}


class Conversions(GroupChecker):
    """Counts conversions of groups that have members."""

    name: ClassVar[str] = "conversions"

    def __init__(self, world: GroupWorld) -> None:
        super().__init__(world)
        self.kinds: dict[str, bool] = {}  # by group: whether it is one of consumers
        self.counts = {True: 0, False: 0}

    def handle_action(self) -> None:
        for shard in self.world.broker.coordinators.groups.shards:
            joined = [(name, False) for name, group in shard.state.classic.items() if group.members]
            joined += [
                (name, True) for name, group in shard.state.consumer.items() if group.members
            ]
            for name, kind in joined:
                self.counts[kind] += self.kinds.get(name, kind) is not kind
                self.kinds[name] = kind


def test_groups_are_converted_both_ways_in_the_middle_of_histories() -> None:
    counts = {True: 0, False: 0}
    for mixed in map(scenario, range(40)):
        if mixed.setting.is_mixed and mixed.setting.hosts <= 6:
            history = GroupHistory(mixed, checkers=[Conversions])
            assert history.run() is None
            [checker] = history.checkers
            assert isinstance(checker, Conversions)
            for kind, count in checker.counts.items():
                counts[kind] += count
    assert min(counts.values()) > 5, counts


def test_a_seed_is_the_same_history_of_groups_in_every_process() -> None:
    module, history = "tests.simulation.groups", "history import GroupHistory"
    assert fingerprints("1", module, history) == fingerprints("2", module, history)
