"""Test that a member that is told to probe joins its group again once the time has come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from streams.membership.group_member import MembershipSignal
from streams.runtime.threads.probing import ProbingRebalance
from tests.unit.streams.runtime.fakes import Clock
from tests.unit.streams.runtime.world import World, assign_partitions, build_mapping_topology

REJOIN_S = 5
TOLD_TO_PROBE = assign_partitions(0)._replace(rejoin_ms=REJOIN_S * 1_000)
Actions = Mapping[float, Callable[[World], None]]


def find_join_times(tmp_path: Path, until_s: float, actions: Actions) -> list[int]:
    """Run a member that is told to probe, and return the seconds in which it starts a join.

    `actions` are called at their times. Time passes in steps of less than half a second.
    """
    world = World(build_mapping_topology(str.upper), tmp_path)
    world.member.assign(TOLD_TO_PROBE)
    began_s = world.clock.elapsed_s
    left = dict(actions)
    times: list[int] = []

    def is_over() -> bool:
        passed_s = world.clock.elapsed_s - began_s
        times.extend([int(passed_s)] * (len(world.member.subscribed) - len(times)))
        for at_s in [at_s for at_s in left if at_s <= passed_s]:
            left.pop(at_s)(world)
        return passed_s >= until_s

    world.run_until(is_over)
    return times


def settle(world: World) -> None:
    world.member.assign(assign_partitions(0))


def signal_rebalance(world: World) -> None:
    world.member.signalled = MembershipSignal.REBALANCE


def test_a_member_joins_again_after_the_time_as_often_as_it_is_told_to(tmp_path: Path) -> None:
    assert find_join_times(tmp_path, 60, {12: settle}) == [0, 5, 10, 15]


def test_the_time_counts_from_the_last_assignment(tmp_path: Path) -> None:
    assert find_join_times(tmp_path, 12, {4: signal_rebalance}) == [0, 4, 9]


def test_a_time_that_comes_while_the_member_joins_is_left_to_that_join(tmp_path: Path) -> None:
    def hold(world: World) -> None:
        world.member.answers_joins = False
        signal_rebalance(world)

    def answer(world: World) -> None:
        settle(world)
        world.member.answers_joins = True

    assert find_join_times(tmp_path, 60, {3: hold, 8: answer}) == [0, 3]


def test_the_time_is_told_once() -> None:
    clock = Clock()
    probing = ProbingRebalance(clock)
    assert not probing.try_take_due_rejoin()
    probing.schedule_rejoin(REJOIN_S * 1_000)
    assert not probing.try_take_due_rejoin()
    clock.advance_monotonic_clock(REJOIN_S)
    assert [probing.try_take_due_rejoin(), probing.try_take_due_rejoin()] == [True, False]
