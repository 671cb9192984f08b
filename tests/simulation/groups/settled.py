"""Find what is missing until every group is at rest, by its members and the broker's state.

At rest: every live member is in its group at the broker's generation, nobody else is, and each
partition of the topics that somebody there wants is owned by one of those who want it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from coordinator.groups.classic.state import ClassicGroup, ClassicGroupPhase
from coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroupPhase
from coordinator.shard.coordinator_state import CoordinatorState
from tests.simulation.groups.members.member import Member
from tests.simulation.groups.world import GroupWorld
from tests.simulation.ledger import Place

REFRESHED_AFTER_MS = 13_000  # if at all


def unsettled(world: GroupWorld) -> str:
    """Return the first thing found missing, or nothing."""
    if not world.is_listening:
        return "the broker is down"
    if any(life.is_leaving and not life.is_over for host in world.hosts for life in host.lives):
        return "somebody is leaving"
    for group_id in world.group_ids:
        if found := find_unrest(world, group_id):
            return f"{group_id}: {found}"
    return ""


def find_unrest(world: GroupWorld, group_id: str) -> str:
    """Return the first thing that is missing until one group is at rest, or nothing."""
    members = world.find_living(group_id)
    return _of_broker(world, group_id, members) or _of_members(world, members)


def _of_broker(world: GroupWorld, group_id: str, members: list[Member]) -> str:
    shard = world.shard(group_id)
    if shard.log.coordinator_state is not CoordinatorState.ACTIVE:
        return f"its shard is {shard.log.coordinator_state.name}"
    consumers = shard.state.consumer.get(group_id)
    if consumers is not None:
        return _of_consumers(consumers, members) or _unresolved(world, consumers)
    return _of_classic(shard.state.classic.get(group_id), members)


def _of_classic(group: ClassicGroup | None, members: list[Member]) -> str:
    if not members:
        is_empty = group is None or (
            group.phase is ClassicGroupPhase.EMPTY and not group.pending_join
        )
        return "" if is_empty else f"nobody is left, but it is {group}"
    if group is None:
        return "the broker doesn't know it"
    if group.phase is not ClassicGroupPhase.STABLE:
        return f"it is {group.phase.value}: {group}"
    for member in members:
        if member.member_id not in group.members or member.epoch != group.generation:
            return (
                f"{member.name} is {member.member_id!r} of {member.epoch}, "
                f"not of {group.generation}"
            )
    if len(group.members) != len(members):
        return f"the broker counts {sorted(group.members)}"
    return ""


def _of_consumers(group: ConsumerGroup, members: list[Member]) -> str:
    if sorted(group.members) != sorted(member.member_id for member in members):
        return f"the broker counts {sorted(group.members)}"
    if members and group.phase is not ConsumerGroupPhase.STABLE:
        return f"it is {group.phase.value}: {group}"
    for member in members:
        if member.epoch != group.epoch:
            return f"{member.name} is at {member.epoch}, not {group.epoch}"
    return ""


def _unresolved(world: GroupWorld, group: ConsumerGroup) -> str:
    """Return a group whose expressions are not resolved for the present topics, or nothing.

    Expressions are resolved anew when there are new topics, at most every ten seconds, as in Kafka;
    one that is gone may stay among what they stood for.
    """
    present = {topic.name for topic in world.broker.topics if not topic.is_internal}
    for regex in group.regex_subscriber_counts:
        found = group.resolved_regexes.get(regex)
        wanted = {name for name in present if re.fullmatch(regex, name)}
        if found is not None and found.topics == wanted:
            continue
        if found is None or found.topics & present != wanted:
            return f"{regex} stands for {found}, not for {sorted(wanted)}"
        if world.loop.now_ms() < found.resolved_at_ms + REFRESHED_AFTER_MS:
            return f"{regex} may yet be resolved anew: it stands for {found}"
    return ""


def _of_members(world: GroupWorld, members: Iterable[Member]) -> str:
    owners: dict[Place, str] = {}
    wanted: set[str] = set()
    present = {t.name: len(t.partitions) for t in world.broker.topics if not t.is_internal}
    for member in members:
        if not member.is_steady(present):
            return f"{member.name} is not at rest"
        topics = member.interest.names(present)
        wanted.update(topics)
        for place in member.owned:
            if place in owners:
                return f"{place} is {owners[place]}'s and {member.name}'s"
            if place[0] not in topics:
                return f"{member.name} has {place}, and wants {topics}"
            owners[place] = member.name
    for topic in sorted(wanted):
        for index in range(world.partitions_of(topic)):
            if (topic, index) not in owners:
                return f"{topic}-{index} is nobody's"
    gone = [place for place in owners if place[1] >= world.partitions_of(place[0])]
    return f"{gone[0]} is owned, and is not there" if gone else ""
