"""Plant bugs in the group coordinator that only passing days show."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from coordinator.clock import Clock
from coordinator.groups import offset_expiry
from coordinator.shard.timers import KeyedTimers
from tests.simulation.bugs import replaced
from tests.simulation.checkers.checker import Checker
from tests.simulation.groups.checkers import Commits, Kept
from tests.simulation.history import Bug
from tests.simulation.runtime.days.bugs import offsets_of_living_groups_expire
from tests.simulation.steps import DAY_MS
from tests.simulation.world import World


class _WallClock:
    """Stands in for a clock whose monotonic time is shifted with the wall clock."""

    def __init__(self, clock: Clock) -> None:
        self.monotonic_ms = self.now_ms = clock.now_ms


def sessions_end_by_the_wall_clock(world: World) -> AbstractContextManager[None]:
    """Make the broker time sessions, and all else that it waits for, by the wall clock."""

    def make(original: Any) -> Any:
        def create(self: Any, clock: Clock, *others: Any) -> None:
            original(self, _WallClock(clock), *others)

        return create

    return replaced(KeyedTimers, "__init__", make)


def offsets_of_empty_groups_kept(world: World) -> AbstractContextManager[None]:
    """Make the broker keep the offsets of groups that nobody is in."""

    def make(original: Any) -> Any:
        def find(shard: Any, group_id: str) -> Any:
            policy = original(shard, group_id)
            return policy and replace(policy, is_subscribed=lambda topic: True)

        return find

    return replaced(offset_expiry, "find_offset_policy", make)


def offsets_kept_for_two_days(world: World) -> AbstractContextManager[None]:
    """Make the broker keep offsets for less time than its setting says."""

    def make(original: Any) -> Any:
        def build(*given: Any) -> Any:
            *others, _, now_ms = given
            return original(*others, 2 * DAY_MS, now_ms)

        return build

    return replaced(offset_expiry, "build_expiry_tombstones", make)


BUGS: dict[Bug, type[Checker]] = {
    offsets_of_living_groups_expire: Kept,
    sessions_end_by_the_wall_clock: Kept,
    offsets_of_empty_groups_kept: Kept,
    offsets_kept_for_two_days: Commits,
}
