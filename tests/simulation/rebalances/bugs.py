"""Plant bugs in rebalances, each of which breaks one promise that a checker must see broken."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, NamedTuple, cast

from streams.membership import group_join
from streams.membership.classic_member import ClassicProtocolMember
from streams.runtime.assigning import group_assignment
from streams.runtime.assigning.topology_versions import TaskNumbers
from streams.runtime.threads.rebalance import ThreadRebalance
from tests.simulation.bugs import replaced
from tests.simulation.groups.days_bugs import sessions_end_by_the_wall_clock
from tests.simulation.history import Bug
from tests.simulation.runtime.bugs import (
    revoked_tasks_forgotten,
    tasks_assigned_before_they_are_revoked,
)
from tests.simulation.runtime.days.bugs import offsets_of_living_groups_expire
from tests.simulation.runtime.host import SimHost
from tests.simulation.world import World


def one_standby_too_few(world: World) -> AbstractContextManager[None]:
    """Make a leader place a standby less of each task than the setting says."""

    def make(original: Any) -> Any:
        def assign(state: Any, configs: Any) -> Any:
            fewer = configs.num_standby_replicas - 1
            return original(state, configs._replace(num_standby_replicas=fewer))

        return assign

    return replaced(group_assignment, "assign_tasks_and_replicas", make)


def tasks_assigned_without_regard_to_owners(world: World) -> AbstractContextManager[None]:
    """Make a leader place tasks as if nobody had any."""

    def make(original: Any) -> Any:
        def describe(*arguments: Any) -> Any:
            return original(*arguments)._replace(owners={})

        return describe

    return replaced(group_assignment, "describe_application", make)


def places_given_up_at_a_restart(world: World) -> AbstractContextManager[None]:
    """Make a member that has just started leave the place that it had, and join anew."""

    def make(original: Any) -> Any:
        def start(self: ThreadRebalance) -> None:
            if self._owned_generation < 0:
                member = cast(ClassicProtocolMember, self._member)
                member._send_leave_group_or_log("", "it starts")
            original(self)

        return start

    return replaced(ThreadRebalance, "start_joining", make)


def directories_not_told(world: World) -> AbstractContextManager[None]:
    """Make a leader take every member for one with a state directory of its own."""

    def make(original: Any) -> Any:
        return lambda data: original(data)._replace(directory="")

    return replaced(group_join, "decode_subscription", make)


def larger_versions_not_preferred(world: World) -> AbstractContextManager[None]:
    """Make a leader assign a task to any member that has it, with whatever stores."""

    def make(original: property) -> Any:
        def able(self: TaskNumbers) -> dict[str, list[str]]:
            members = sorted(self._member_numbers)
            return dict.fromkeys(self.partitions_by_task, members)

        return property(able)

    return replaced(TaskNumbers, "able_members_by_task", make)


def workers_time_by_the_wall_clock(world: World) -> AbstractContextManager[None]:
    """Make workers time heartbeats, polls and commits by a clock that days move."""
    return replaced(SimHost, "monotonic_s", lambda original: lambda self: self.now_ms() / 1_000)


class Planted(NamedTuple):
    """Holds a bug, the name of the checker that must see it, and a setting in which it shows."""

    bug: Bug
    checker: str
    setting: dict[str, Any]


BUGS = (
    Planted(tasks_assigned_before_they_are_revoked, "owners", {}),
    Planted(revoked_tasks_forgotten, "progress", {}),
    Planted(one_standby_too_few, "progress", {"standbys": 1}),
    Planted(tasks_assigned_without_regard_to_owners, "movement", {}),
    Planted(places_given_up_at_a_restart, "movement", {"standbys": 1}),
    Planted(directories_not_told, "apart", {"members_a_directory": 2, "standbys": 1}),
    Planted(larger_versions_not_preferred, "versions", {}),
)
DAYS_BUGS = (
    Planted(offsets_of_living_groups_expire, "idle", {}),
    Planted(sessions_end_by_the_wall_clock, "idle", {}),
    Planted(workers_time_by_the_wall_clock, "idle", {}),
)
"""Bugs that only days show which pass."""
