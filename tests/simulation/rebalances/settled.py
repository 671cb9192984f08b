"""Find what is missing until every task runs, and until the group is at rest."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.groups.classic.state import ClassicGroupPhase
from coordinator.groups.streams.state import StreamsGroup
from streams.membership.streams.member import StreamsProtocolMember
from streams.membership.streams.task_roles import TasksByRole
from tests.simulation.rebalances.member import LightMember
from tests.simulation.rebalances.topologies import list_tasks
from tests.simulation.rebalances.world import STREAMS, RebalanceWorld

TASKS = list_tasks()


def find_idle_tasks(world: RebalanceWorld) -> str:
    """Return which tasks do not run, or run twice; empty if there are none."""
    wrong = {task: names for task, names in world.find_runners().items() if len(names) != 1}
    return f"these don't run once: {wrong}" if wrong else ""


def find_unrest(world: RebalanceWorld) -> str:
    """Return the first thing that is missing until the group is at rest; empty if it is."""
    return next(_find_unrest(world), "")


def _find_unrest(world: RebalanceWorld) -> Iterator[str]:
    if not world.is_listening:
        yield "the broker is away"
        return
    if world.rebalances.protocol == STREAMS:
        yield from _find_streams_unrest(world)
        return
    group = world.find_group()
    if group is None or group.phase is not ClassicGroupPhase.STABLE:
        yield f"the group is {group and group.phase.value}"
        return
    known = {member.instance_id or "" for member in group.members.values()}
    alive = {slot.instance_id for slot in world.alive}
    if known != alive:
        yield f"the group has {sorted(known - alive)} too many, and lacks {sorted(alive - known)}"
    for member in world.members:
        if not member.is_at_rest:
            yield f"{member.process.name} is not at rest: {member.describe()}"
        elif member.membership.current_membership.generation != group.generation:
            yield f"{member.process.name} is of another generation than {group.generation}"
    if idle := find_idle_tasks(world):
        yield idle
    missing = find_missing_standbys(world)
    if missing:
        yield f"standbys lack, {missing}"


def _find_streams_unrest(world: RebalanceWorld) -> Iterator[str]:
    group = world.find_streams_group()
    if group is None or not group.members:
        yield f"the group has no members: {group}"
        return
    known = {member.rpartition("-")[0] for member in group.members}
    alive = {slot.instance_id for slot in world.alive}
    if known != alive or len(group.members) != len(alive):
        yield f"the group has {sorted(known - alive)} too many, and lacks {sorted(alive - known)}"
    for member in world.members:
        if not member.is_at_rest:
            yield f"{member.process.name} is not at rest: {member.describe()}"
        elif member.membership.current_membership.generation != group.epoch:
            yield f"{member.process.name} is of another epoch than {group.epoch}"
        elif wrong := _find_misowned_tasks(member, group):
            yield wrong
    if idle := find_idle_tasks(world):
        yield idle
    if missing := find_missing_standbys(world):
        yield f"standbys lack, {missing}"


def _find_misowned_tasks(member: LightMember, group: StreamsGroup) -> str:
    """Return what a member has and the group knows nothing of, or the reverse; empty if nothing."""
    membership = member.membership
    assert isinstance(membership, StreamsProtocolMember)
    owned = membership._heartbeats.state.owned
    assigned = group.members[membership.current_membership.member_id].assigned
    known = TasksByRole(
        *(
            frozenset(f"{subtopology}_{partition}" for subtopology, partition in role)
            for role in (assigned.active, assigned.standby, assigned.warmup)
        )
    )
    if owned == known:
        return ""
    return f"{member.process.name} has {owned}, and the group has assigned it {known}"


def find_missing_standbys(world: RebalanceWorld) -> dict[str, tuple[int, int]]:
    """Return how many standbys each task has, and how many it should have, where these differ.

    As many as the setting says, in so many other directories whose members may have the task.
    """
    able = {slot.directory.name for slot in world.list_able_slots()}
    runners, followers = world.find_runners(), world.find_followers()
    missing = {}
    for task, has_state in TASKS.items():
        homes = {world.find_slot(name).directory.name for name in runners[task]}
        wanted = min(world.rebalances.standbys, len(able - homes)) if has_state else 0
        there = {world.find_slot(name).directory.name for name in followers[task]}
        if len(there) != wanted:
            missing[task] = len(there), wanted
    return missing
