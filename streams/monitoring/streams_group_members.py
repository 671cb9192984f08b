"""Convert what a broker tells of a streams group to what a report of any group is made from.

The broker tells the topology and each member's tasks at any time, and neither where the state of a
task is nor how far it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from streams.membership.group_description import GroupDescription
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo
from streams.membership.streams.described_group import (
    StreamsGroupDescription,
    StreamsMemberDescription,
)
from streams.membership.streams.former_members import find_process_id
from streams.membership.streams.task_roles import split_task_name
from streams.monitoring.group_report import GroupMembers, decode_members
from streams.topology.declared import DeclaredSubtopology, DeclaredTopology
from streams.topology.streams_group_topology import INPUT

_NOT_READY = "NotReady"
"""The state of groups whose members get no tasks, as topics are missing or don't fit."""


def convert_group_members(
    group_id: str, description: GroupDescription, partition_counts: Mapping[str, int]
) -> GroupMembers:
    """Return the members of a group of either protocol, with their tasks.

    Raises: ConfigError for a group of another program.
    """
    if description.streams is None:
        return decode_members(group_id, description)
    return _convert_streams_group_members(
        group_id, description, description.streams, partition_counts
    )


class MissingTopics(NamedTuple):
    """Holds topics that a streams group waits for: inputs, and those that its broker creates.

    `hidden` are topics that may be there, as this user may not describe them. `has_run`: the
    application may have read inputs before, so that one which is created again is another one.
    """

    inputs: tuple[str, ...] = ()
    internal: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    has_run: bool = False


def find_missing_topics(
    description: GroupDescription,
    partition_counts: Mapping[str, int],
    find_hidden_topics: Callable[[Collection[str]], Collection[str]],
    *,
    has_run: bool,
) -> MissingTopics:
    """Return the topics of a streams group's topology that are not there; none of another group.

    The broker tells its members, and not who describes the group, so that only a group that is not
    ready is looked at. `find_hidden_topics` returns those of unlisted topics that this user may not
    describe. `has_run`: the application has left offsets or a ledger; internal topics that are
    there tell it, too, as brokers create them once all inputs exist.
    """
    if description.streams is None or description.state != _NOT_READY:
        return MissingTopics()
    topics = description.streams.topology.topics
    unlisted = {key for key in topics if key[0] not in partition_counts}
    hidden = set(find_hidden_topics({topic for topic, _ in unlisted})) if unlisted else set()
    missing = {key for key in unlisted if key[0] not in hidden}
    has_internal = any(role != INPUT for _, role in topics.keys() - missing)
    return MissingTopics(
        tuple(sorted(topic for topic, role in missing if role == INPUT)),
        tuple(sorted({topic for topic, role in missing if role != INPUT})),
        tuple(sorted(hidden)),
        has_run=has_run or has_internal,
    )


def _convert_streams_group_members(
    group_id: str,
    description: GroupDescription,
    group: StreamsGroupDescription,
    partition_counts: Mapping[str, int],
) -> GroupMembers:
    """Return the members of a streams group with their tasks, as a report needs them."""
    topology = DeclaredTopology(
        "",
        {number: DeclaredSubtopology(sources) for number, sources in group.sources.items()},
        {},
    )
    return GroupMembers(
        description.members,
        {m.member_id: _build_subscription(group_id, m, topology) for m in group.members},
        {m.member_id: _build_assignment(m, topology, partition_counts) for m in group.members},
    )


def _build_subscription(
    group_id: str, member: StreamsMemberDescription, topology: DeclaredTopology
) -> SubscriptionInfo:
    """Return what a member has told its group.

    The process id that workers send is the id of their state directory.
    """
    process_id = find_process_id(group_id, member.member_id)
    return SubscriptionInfo(
        tuple(sorted(member.assigned.active, key=split_task_name)),
        topology=topology,
        generation=member.epoch,
        process=process_id or member.process_id,
        directory=member.process_id if process_id else "",
        tags=member.tags,
        endpoint=member.endpoint,
    )


def _build_assignment(
    member: StreamsMemberDescription,
    topology: DeclaredTopology,
    partition_counts: Mapping[str, int],
) -> AssignmentInfo:
    """Return the tasks of a member, those that it is to give up among them."""
    assigned, target = member.assigned, member.target
    active = sorted(assigned.active & target.active, key=split_task_name)
    return AssignmentInfo(
        tuple(active),
        tuple(
            (topic, partition)
            for subtopology, partition in map(split_task_name, active)
            for topic in sorted(topology.subtopologies[int(subtopology)].sources)
            if partition < partition_counts.get(topic, 0)
        ),
        revoked=tuple(sorted(assigned.active - target.active, key=split_task_name)),
        standby=tuple(sorted(assigned.standby, key=split_task_name)),
        warmup=tuple(sorted(assigned.warmup, key=split_task_name)),
    )
