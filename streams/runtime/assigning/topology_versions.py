"""Decide which versions of a topology run side by side in one group, and number their tasks.

Members of one version have declared the same topology. Versions are taken in an order that any
leader finds: the one whose members run most tasks, then the one whose members ran most before they
lost their membership, then the one with most members, then by their fingerprints. Each is admitted
if it may run beside all those that were admitted before (`topology/compatibility`): so the group
goes on, and who comes newly to it is refused.

Each sub-topology that some version has gets one number for the leader, its own where it has one;
tasks are assigned by these numbers, and every member is told its own.
Kafka Streams compares nothing, and assigns by the leader's numbers (StreamsPartitionAssignor). In
KIP-1071 the coordinator has one topology; a member of an older epoch is told STALE_TOPOLOGY, and
one that brings a newer is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from streams.common.counted import format_count
from streams.common.topic_partitions import Partition
from streams.errors import TopologyError
from streams.membership.protocol import SubscriptionInfo
from streams.topology.compatibility import find_conflicts, format_names, is_superseded_by
from streams.topology.declared import DeclaredSubtopology, DeclaredTopology


class TopologyVersion(NamedTuple):
    """Describes a topology and the members that have declared it.

    It counts the tasks that they run, and those that they ran before they lost their membership.
    """

    topology: DeclaredTopology
    members: tuple[str, ...]
    task_count: int
    former_task_count: int

    @property
    def rank(self) -> tuple[int, int, int, str]:
        """Return the sort key by which versions are admitted."""
        return (
            -self.task_count,
            -self.former_task_count,
            -len(self.members),
            self.topology.fingerprint,
        )


@dataclass(frozen=True, slots=True)
class VersionAdmission:
    """Names the versions that run side by side, and why each other member was refused.

    `partition_counts` are the partitions of all topics that are read.
    """

    versions: tuple[TopologyVersion, ...]
    refusal_reasons: Mapping[str, str] = field(default_factory=dict)
    partition_counts: Mapping[str, int] = field(default_factory=dict)


def find_versions(
    members: Mapping[str, SubscriptionInfo],
) -> tuple[TopologyVersion, ...]:
    """Return the versions that the members have declared, in the order of their rank."""
    topologies: dict[str, DeclaredTopology] = {}
    of_version: dict[str, list[str]] = {}
    for member, subscribed in sorted(members.items()):
        topology = subscribed.require_topology()
        topologies.setdefault(topology.fingerprint, topology)
        of_version.setdefault(topology.fingerprint, []).append(member)
    versions = [
        TopologyVersion(
            topologies[fingerprint],
            tuple(named),
            task_count=sum(len(members[m].tasks) for m in named),
            former_task_count=sum(len(members[m].former) for m in named),
        )
        for fingerprint, named in of_version.items()
    ]
    return tuple(sorted(versions, key=lambda version: version.rank))


def admit_versions(
    versions: Iterable[TopologyVersion], existing_counts: Mapping[str, int], application_id: str
) -> VersionAdmission:
    """Admit each version that may run beside those before it, and refuse the others.

    A version is refused too if its inputs don't exist, or if a topic would have other partitions
    than those before it need. `existing_counts` has the partition counts of all topics.
    """
    admitted: list[TopologyVersion] = []
    refused: dict[str, str] = {}
    counts: dict[str, int] = {}
    for declared in versions:
        version, version_counts, reasons = _resolve_version(
            declared, existing_counts, application_id
        )
        for other in admitted:
            reasons += find_conflicts(
                other.topology, version.topology, ("the running version", "the refused one")
            )
        reasons += [
            f"topic {topic!r} has "
            f"{format_count(counts[topic], 'partition')}, and the refused one needs {count}"
            for topic, count in sorted(version_counts.items())
            if counts.get(topic, count) != count
        ]
        if not reasons:
            admitted.append(version)
            counts |= version_counts
            continue
        reason = (
            f"the members of group {application_id!r} run another topology, beside which this one "
            f"can't run: {'; '.join(reasons)}. If it is a new version, end all workers of the old "
            "one before (docs/upgrading.md); if it is another application, choose another "
            "application id"
        )
        refused |= dict.fromkeys(version.members, reason)
    return VersionAdmission(tuple(admitted), refused, counts)


class _ResolvedVersion(NamedTuple):
    version: TopologyVersion
    partition_counts: dict[str, int]
    refusal_reasons: list[str]


def _resolve_version(
    version: TopologyVersion, existing_counts: Mapping[str, int], application_id: str
) -> _ResolvedVersion:
    """Return a version with the topics of its patterns, and its partition counts or why none."""
    try:
        topology = version.topology.resolve_patterns(existing_counts, application_id)
    except TopologyError as error:
        return _ResolvedVersion(version, {}, [str(error)])
    counts, reasons = _find_source_counts_or_reasons(topology, existing_counts)
    return _ResolvedVersion(version._replace(topology=topology), counts, reasons)


def _find_source_counts_or_reasons(
    topology: DeclaredTopology, existing_counts: Mapping[str, int]
) -> tuple[dict[str, int], list[str]]:
    """Return the partition counts of a version's source topics, or none and the reasons why."""
    missing = [topic for topic in topology.input_topics if topic not in existing_counts]
    if missing:
        return {}, [f"input topics {format_names(missing)} do not exist"]
    try:
        counts = topology.derive_partition_counts(existing_counts)
    except TopologyError as error:
        return {}, [str(error)]
    return {topic: counts[topic] for topic in topology.sources if topic in counts}, []


def find_tasks(
    subtopologies: Mapping[int, DeclaredSubtopology], partition_counts: Mapping[str, int]
) -> dict[str, list[Partition]]:
    """Return every task with the partitions that it reads.

    A sub-topology has as many tasks as the widest of its topics has partitions. It is left out
    where not all of `partition_counts` are known, or where no topic matches its patterns.
    """
    return {
        f"{number}_{partition}": [
            Partition(topic, partition)
            for topic in sorted(sub.topics)
            if partition < partition_counts[topic]
        ]
        for number, sub in subtopologies.items()
        if sub.topics <= partition_counts.keys()
        for partition in range(max((partition_counts[topic] for topic in sub.topics), default=0))
    }


class TaskNumbers:
    """Numbers the tasks of all admitted versions, and translates the numbers for each member.

    `running_tasks` are those that each member runs, as the member names them.
    """

    def __init__(
        self,
        admission: VersionAdmission,
        leader: DeclaredTopology,
        running_tasks: Mapping[str, Iterable[str]] = MappingProxyType({}),
    ) -> None:
        self._admission = admission
        self._running_tasks = running_tasks
        self.subtopologies: dict[int, DeclaredSubtopology] = dict(leader.subtopologies)
        """The sub-topologies of the leader and of all admitted versions, by the leader's number."""
        self._member_numbers: dict[str, dict[int, int]] = {}
        """For each member: the member's own number of a sub-topology, by the leader's number."""
        admitted: set[int] = set()
        for version in admission.versions:
            own = {
                self._number_subtopology(sub): n
                for n, sub in version.topology.subtopologies.items()
            }
            admitted |= own.keys()
            self._member_numbers |= dict.fromkeys(version.members, own)
        subs = {number: self.subtopologies[number] for number in sorted(admitted)}
        self.partitions_by_task = find_tasks(subs, admission.partition_counts)
        """Each task with the partitions that it reads."""

    @property
    def able_members_by_task(self) -> dict[str, list[str]]:
        """Map each task, as the leader names it, to the members that it may be assigned to.

        These are the members whose version has the task. Where versions extend one another, it is
        assigned to those of the largest only, or stays with the member that runs it: a store that
        only the larger has is filled from the moment on at which a task comes to it, and would have
        a gap if the task went back.
        """
        owners = {
            task: member
            for member, tasks in self._running_tasks.items()
            if member in self._member_numbers
            for task in self.number_for_leader(member, tasks)
        }
        able_by_subtopology: dict[int, list[str]] = {}
        for number in self.subtopologies:
            versions = [
                (version, version.topology.subtopologies[own[number]])
                for version in self._admission.versions
                if number in (own := self._member_numbers[version.members[0]])
            ]
            able_by_subtopology[number] = [
                member
                for version, sub in versions
                if not any(
                    is_superseded_by((version.topology, sub), (other.topology, larger))
                    for other, larger in versions
                )
                for member in version.members
            ]
        able: dict[str, list[str]] = {}
        for task in self.partitions_by_task:
            number = int(task.partition("_")[0])
            able[task] = able_by_subtopology[number]
            owner = owners.get(task)
            if owner is not None and owner not in able[task]:
                able[task] = [*able[task], owner]
        return able

    def number_for_leader(self, member: str, tasks: Iterable[str]) -> list[str]:
        """Translate a member's task names to the leader's; drop those its version doesn't have."""
        numbers = {str(own): number for number, own in self._member_numbers[member].items()}
        split = [task.partition("_") for task in tasks]
        return [f"{numbers[sub]}_{partition}" for sub, _, partition in split if sub in numbers]

    def number_offsets_for_leader(self, member: str, offsets: Mapping[str, int]) -> dict[str, int]:
        """Translate task names of a member's offsets to the leader's numbers of sub-topologies."""
        return {
            name: offset
            for task, offset in offsets.items()
            for name in self.number_for_leader(member, [task])
        }

    def number_for_member(self, member: str, tasks: Iterable[str]) -> list[str]:
        """Translate task names from the leader's numbers to the member's own, sorted."""
        own = self._member_numbers[member]
        split = [task.partition("_") for task in tasks]
        return sorted(f"{own[int(sub)]}_{partition}" for sub, _, partition in split)

    def number_known_for_member(self, member: str, tasks: Iterable[str]) -> list[str]:
        """Translate the leader's task names as `number_for_member`; drop what the member lacks."""
        own = self._member_numbers[member]
        return self.number_for_member(
            member, [task for task in tasks if int(task.partition("_")[0]) in own]
        )

    def _number_subtopology(self, subtopology: DeclaredSubtopology) -> int:
        """Return the leader's number of a sub-topology; give it a new number if it has none.

        Of two admitted versions, what reads the same topics is the same, or one extends the other.
        """
        for number, known in self.subtopologies.items():
            if known.sources == subtopology.sources:
                if known.stores < subtopology.stores:
                    self.subtopologies[number] = subtopology
                return number
        number = max(self.subtopologies, default=-1) + 1
        self.subtopologies[number] = subtopology
        return number


def describe_versions(admission: VersionAdmission) -> str:
    """Return the notice about versions and refusals that members log; empty if there is none.

    It names the versions if there are several.
    """
    parts = []
    if len(admission.versions) > 1:
        each = ", ".join(
            f"{version.topology.fingerprint} on {len(version.members)}"
            for version in admission.versions
        )
        parts.append(
            f"the group runs {len(admission.versions)} versions of the topology side by side "
            f"(members of each: {each}); if no upgrade is going on, another application has this "
            "application id"
        )
    for reason in sorted(set(admission.refusal_reasons.values())):
        names = [
            member for member, why in sorted(admission.refusal_reasons.items()) if why == reason
        ]
        were = "members {} were" if len(names) > 1 else "member {} was"
        parts.append(f"{were.format(', '.join(names))} refused: {reason}")
    return "; ".join(parts)
