"""Report an application's group: its members, their tasks, and how far each is behind.

Made from what brokers tell alone, so that no worker has to be reached: the description of the group
with the subscriptions and assignments of Millrace, committed offsets, and the ends of topics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from streams.command_lines import format_kafka_command
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import ConfigError
from streams.membership.group_description import GroupDescription, MemberDescription
from streams.membership.protocol import (
    AssignmentInfo,
    SubscriptionInfo,
    decode_assignment,
    decode_subscription,
)
from streams.runtime.assigning.task_lags import TaskChangelogs, list_task_changelogs
from streams.topology.declared import DeclaredTopology

STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """Reports how many records of a partition the application has still to process.

    `lag` is None where nothing has been committed though something was written, or the partition
    does not exist any more.
    """

    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class ActiveTask:
    """Reports a task that a member runs; `lag` is the sum over its partitions, as far as known."""

    task: str
    lag: int | None
    partitions: Sequence[PartitionLag]


@dataclass(frozen=True, slots=True)
class StandbyTask:
    """Reports a standby or warm-up task.

    `lag_max` is how many changelog records its state is behind at most: since the last rebalance,
    when the member said how far it was, it has got on. None if it had not begun then.
    """

    task: str
    lag_max: int | None


@dataclass(frozen=True, slots=True)
class MemberReport:
    """Reports a member (a stream thread) with its tasks, in its own task numbers.

    `generation` is the one in which it had been given the tasks that it brought into this one;
    `revoked` are tasks that it is giving up, `rejoin_ms` when it joins again to move tasks that
    have warmed up. `problem` is why it was refused, or is to end.
    """

    member_id: str
    instance_id: str | None
    host: str
    process: str
    directory: str
    tags: Mapping[str, str]
    topology: str
    generation: int | None
    active: Sequence[ActiveTask]
    standby: Sequence[StandbyTask]
    warmup: Sequence[StandbyTask]
    revoked: Sequence[str]
    rejoin_ms: int
    problem: str


@dataclass(frozen=True, slots=True)
class GroupReport:
    """Reports an application's group.

    `former_generation` is the highest that a member came from: the group's own, which brokers don't
    tell, is higher. `unassigned` are partitions of inputs that no member reads. `missing_topics`
    are inputs, and `missing_internal_topics` others, that a streams group which is not ready has in
    its topology and that are not there; `hidden_topics` may be there, as this user may not describe
    them. `has_run` of such a group: its inputs may have been read before.
    """

    group: str
    state: str
    former_generation: int | None
    members: Sequence[MemberReport]
    unassigned: Sequence[PartitionLag]
    protocol: str = "classic"
    """Who assigns the tasks: a member (`classic`), or the broker (`streams`)."""
    missing_topics: Sequence[str] = ()
    missing_internal_topics: Sequence[str] = ()
    hidden_topics: Sequence[str] = ()
    has_run: bool = False

    def as_json(self) -> str:
        """Return the report as indented JSON."""
        return orjson.dumps(self, option=orjson.OPT_INDENT_2).decode()


class TopicOffsets(NamedTuple):
    """Holds partition counts of topics, committed offsets of the group, and ends of partitions."""

    counts: Mapping[str, int]
    committed: Mapping[Partition, OffsetAndMetadata]
    ends: Mapping[Partition, int]


class GroupMembers(NamedTuple):
    """Holds the members of a group with what they have said and what they were assigned."""

    described: Sequence[MemberDescription]
    subscriptions: Mapping[str, SubscriptionInfo]
    assignments: Mapping[str, AssignmentInfo]


def decode_members(group_id: str, description: GroupDescription) -> GroupMembers:
    """Decode what the members of a group have said, and what they were assigned.

    Raises: ConfigError for a group of another program. In a rebalance nothing can be decoded.
    """
    subscriptions, assignments = {}, {}
    for each in description.members if description.state == STABLE else ():
        try:
            subscriptions[each.member_id] = decode_subscription(each.subscription)
            assignments[each.member_id] = decode_assignment(each.assignment)
        except ValueError as error:
            raise ConfigError(
                f"group {group_id!r} is not of a Millrace application: member {each.member_id!r} "
                f"speaks {description.protocol_type!r} with protocol {description.protocol!r}; "
                f"{format_consumer_group_command(group_id)} shows a consumer group's members and "
                "lags"
            ) from error
    return GroupMembers(description.members, subscriptions, assignments)


def format_consumer_group_command(group_id: str) -> str:
    """Return the command that describes a group of consumers, whatever their protocol."""
    return format_kafka_command("kafka-consumer-groups.sh", "--describe", "--group", group_id)


def list_report_partitions(
    group_id: str,
    members: GroupMembers,
    counts: Mapping[str, int],
    committed: Iterable[Partition],
) -> list[Partition]:
    """Return the existing partitions whose ends a report needs: of inputs and of changelogs."""
    found = {Partition(*each) for each in committed}
    for member, subscribed in members.subscriptions.items():
        if subscribed.topology is not None:
            found |= _list_source_partitions(group_id, subscribed, counts)
            for ending in _find_copied_changelogs(
                group_id, members, member, counts
            ).ending.values():
                found |= set(ending)
        found |= {Partition(*each) for each in members.assignments[member].partitions}
    return sorted(each for each in found if each.number < counts.get(each.topic, 0))


def build_report(
    group_id: str,
    state: str,
    members: GroupMembers,
    offsets: TopicOffsets,
    protocol: str = "classic",
) -> GroupReport:
    """Build the report of a group."""
    reports = [
        _report_member(group_id, each, members, offsets)
        for each in sorted(members.described, key=lambda m: m.instance_id or m.member_id)
    ]
    generations = [each.generation for each in members.subscriptions.values()]
    held = {
        partition
        for member, assigned in members.assignments.items()
        for partition in (
            *(Partition(*each) for each in assigned.partitions),
            *_list_task_partitions(
                group_id, members.subscriptions[member], assigned.revoked, offsets.counts
            ),
        )
    }
    wanted = set[Partition]().union(
        *(
            _list_source_partitions(group_id, each, offsets.counts)
            for each in members.subscriptions.values()
        )
    )
    if not members.described:
        wanted |= offsets.committed.keys()
    return GroupReport(
        group_id,
        state,
        max(generations, default=None),
        reports,
        [_measure_lag(each, offsets) for each in sorted(wanted - held)],
        protocol,
    )


def _report_member(
    group_id: str, described: MemberDescription, members: GroupMembers, offsets: TopicOffsets
) -> MemberReport:
    """Build the report of one member; without tasks where nothing is known of them."""
    member = described.member_id
    subscribed = members.subscriptions.get(member, SubscriptionInfo(()))
    assigned = members.assignments.get(member, AssignmentInfo((), ()))
    changelogs = _find_copied_changelogs(group_id, members, member, offsets.counts)

    def report_standby(task: str) -> StandbyTask:
        said = subscribed.offsets.get(task, -1)
        if said < 0 or task not in changelogs.stateful_tasks:
            return StandbyTask(task, None)
        followed = [offsets.committed.get(p) for p in changelogs.committed[task]]
        end = sum(offsets.ends.get(p, 0) for p in changelogs.ending[task])
        end += sum(held.offset for held in followed if held is not None)
        return StandbyTask(task, max(end - said, 0))

    return MemberReport(
        member,
        described.instance_id,
        described.client_host.removeprefix("/"),
        subscribed.process,
        subscribed.directory,
        dict(subscribed.tags),
        "" if subscribed.topology is None else subscribed.topology.fingerprint,
        subscribed.generation,
        [
            _report_active(group_id, task, subscribed, offsets)
            for task in _sort_tasks(assigned.tasks)
        ],
        [report_standby(task) for task in _sort_tasks(assigned.standby)],
        [report_standby(task) for task in _sort_tasks(assigned.warmup)],
        _sort_tasks(assigned.revoked),
        assigned.rejoin_ms,
        assigned.refused or assigned.failed or assigned.shutdown,
    )


def _report_active(
    group_id: str, task: str, subscribed: SubscriptionInfo, offsets: TopicOffsets
) -> ActiveTask:
    """Report an active task; its partitions are known of members that declare their topology."""
    partitions = [
        _measure_lag(each, offsets)
        for each in _list_task_partitions(group_id, subscribed, [task], offsets.counts)
    ]
    lags = [each.lag for each in partitions if each.lag is not None]
    return ActiveTask(task, sum(lags) if lags else None, partitions)


def _measure_lag(partition: Partition, offsets: TopicOffsets) -> PartitionLag:
    """Report how far the group is behind in a partition."""
    committed, end = offsets.committed.get(partition), offsets.ends.get(partition)
    if committed is None:
        return PartitionLag(*partition, None, end, 0 if end == 0 else None)
    lag = None if end is None else max(end - committed.offset, 0)
    return PartitionLag(*partition, committed.offset, end, lag)


def _list_source_partitions(
    group_id: str, subscribed: SubscriptionInfo, counts: Mapping[str, int]
) -> set[Partition]:
    """Return the partitions of all topics that a member's topology reads."""
    topology = _resolve_topology(group_id, subscribed)
    topics = () if topology is None else topology.sources
    return {Partition(topic, n) for topic in topics for n in range(counts.get(topic, 0))}


def _list_task_partitions(
    group_id: str, subscribed: SubscriptionInfo, tasks: Collection[str], counts: Mapping[str, int]
) -> list[Partition]:
    """Return the partitions that a member's tasks read, none if its topology isn't declared."""
    topology = _resolve_topology(group_id, subscribed)
    if topology is None:
        return []
    found = []
    for number, _, partition in (task.partition("_") for task in tasks):
        topics = topology.subtopologies[int(number)].topics
        found += [Partition(topic, int(partition)) for topic in sorted(topics)]
    return [each for each in found if each.number < counts.get(each.topic, 0)]


def _resolve_topology(group_id: str, subscribed: SubscriptionInfo) -> DeclaredTopology | None:
    """Return a member's topology with the topics of its patterns to which it subscribes."""
    if subscribed.topology is None:
        return None
    return subscribed.topology.resolve_patterns(dict.fromkeys(subscribed.topics, 1), group_id)


def _find_copied_changelogs(
    group_id: str, members: GroupMembers, member: str, counts: Mapping[str, int]
) -> TaskChangelogs:
    """Return the changelogs of the standby and warm-up tasks of a member."""
    subscribed = members.subscriptions.get(member)
    if subscribed is None or subscribed.topology is None:
        return TaskChangelogs({}, {})
    assigned = members.assignments[member]
    copies = (*assigned.standby, *assigned.warmup)
    return list_task_changelogs(group_id, subscribed.topology.subtopologies, copies, counts)


def _sort_tasks(tasks: Iterable[str]) -> list[str]:
    return sorted(tasks, key=lambda task: tuple(map(int, task.split("_"))))
