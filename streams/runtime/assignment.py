"""Assign each task to one member and create internal topics: the duties of the group's leader.

Members may run different versions of the topology (`topology_versions`); then each creates the
internal topics of its own, since the leader knows the settings of no other.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from coordinator.assignors.tasks import assign_tasks
from streams.config import StreamsConfig
from streams.errors import (
    ConfigError,
    OutcomeUnknown,
    StreamsError,
    TopologyError,
    TopologyRefused,
)
from streams.membership.protocol import Assigned, Subscribed
from streams.positions import Partition
from streams.runtime.interfaces import AdminClient
from streams.runtime.internal_topics import COMPACTION_LAG, REPARTITION, changelog_settings
from streams.runtime.leftover_stores import (
    find_leftovers,
    warn_of_leftovers,
)
from streams.runtime.versions import (
    Admission,
    TaskNumbers,
    admit_versions,
    describe_versions,
    find_tasks,
    find_versions,
)
from streams.topology.build import Subtopology, Topology
from streams.topology.compatibility import list_names
from streams.topology.declared import declare_topology
from streams.topology.description import described

log = logging.getLogger(__name__)

_SILENT_LEADER = (
    "the group's leader is of a release that compares no topologies: what only this version reads "
    "has no owner as long as it leads; change the topology when all workers are of this release"
)


def task_id(subtopology: Subtopology, partition: int) -> str:
    """Return a task's name in Kafka Streams' manner: `<sub-topology>_<partition>`."""
    return f"{subtopology.number}_{partition}"


def name_task(topology: Topology, task: str) -> str:
    """Return a task's name by the first topic that it reads and its partition.

    So it is named in every version of the topology that may run beside this one, whatever its
    number.
    """
    number, _, partition = task.partition("_")
    return f"{min(topology.subtopologies[int(number)].sources)}_{partition}"


def check_inputs(
    topology: Topology, counts: Mapping[str, int], servers: str, dead_letters: Iterable[str] = ()
) -> None:
    """Check that a topology's input, output and dead-letter topics exist on the brokers.

    Raises: ConfigError naming those that don't exist, and TopologyError naming joined inputs whose
    partition counts differ.
    """
    read = (*topology.input_topics, *(table.topic for table in topology.global_tables))
    missing = [topic for topic in read if topic not in counts]
    sinks = {
        s.topic_name
        for sub in topology.subtopologies
        for s in sub.sinks
        if not s.internal and isinstance(s.topic, str)
    }
    missing += sorted(sinks - counts.keys() - set(missing))
    lost = sorted(set(dead_letters) - counts.keys())
    if lost:
        raise ConfigError(
            f"dead-letter topic {', '.join(map(repr, lost))} does not exist on {servers}: create "
            "it (`millrace create-topics`), or correct the handler that names it"
        )
    if missing:
        raise ConfigError(
            f"topic {', '.join(map(repr, missing))} does not exist on {servers}: create it "
            "(`millrace create-topics`), or correct its name in the topology"
        )
    topology.partition_counts({topic: counts[topic] for topic in topology.input_topics})


class Planner:
    """Creates the internal topics of an application and assigns its tasks to the group's members.

    Kafka Streams' counterpart is StreamsPartitionAssignor.
    """

    def __init__(self, topology: Topology, config: StreamsConfig, admin: AdminClient) -> None:
        self._topology = topology
        self._config = config
        self._admin = admin
        self.declared = declare_topology(described(topology))
        self._notice = ""
        self._inputs: dict[str, int] | None = None
        """The partition counts of the inputs when tasks were last assigned."""

    def plan(self, members: Mapping[str, Subscribed]) -> dict[str, Assigned]:
        """Return the assignment of each member, given what each has told the leader.

        It is empty, with the reason, if a member asks all of them to end, or for a member that
        can't run beside the others. Internal topics that are missing are created.

        Raises: StreamsError where a topic has the wrong partitions.
        """
        reasons = [each.shutdown for _, each in sorted(members.items()) if each.shutdown]
        if reasons:
            return dict.fromkeys(members, Assigned((), (), reasons[0]))
        existing = self._admin.partition_counts()
        counts = self._count_partitions(existing)
        admission = admit_versions(
            find_versions(members, self.declared), existing, self._topology.application_id
        )
        admitted = [version.topology for version in admission.versions]
        if any(each.fingerprint == self.declared.fingerprint for each in admitted):
            self._make_topics(existing, counts, runs_alone=len(admitted) == 1)
        inputs = {topic for each in admitted for topic in each.input_topics}
        self._inputs = {topic: existing[topic] for topic in inputs}
        return self._assign(members, admission)

    def _assign(
        self, members: Mapping[str, Subscribed], admission: Admission
    ) -> dict[str, Assigned]:
        """Assign every task to a member that has it, and return refusals for the others."""
        numbers = TaskNumbers(admission, self.declared)
        previous = {
            member: numbers.number_for_leader(member, members[member].tasks)
            for version in admission.versions
            for member in version.members
        }
        if len(admission.versions) > 1:
            tasks_of_member = assign_tasks(numbers.tasks, previous, numbers.able)
        else:
            tasks_of_member = assign_tasks(numbers.tasks, previous)
        undeclared = sorted(m for m, each in members.items() if each.topology is None)
        notice = describe_versions(admission, undeclared)
        assigned = {
            member: Assigned(
                tuple(numbers.number_for_member(member, tasks)),
                tuple(p for task in tasks for p in numbers.tasks[task]),
                notice=notice,
            )
            for member, tasks in tasks_of_member.items()
        }
        for member, why in admission.refused.items():
            declares = members[member].topology is not None
            # A member of the release before this one knows no refusal; it ends on a shutdown.
            assigned[member] = Assigned((), (), **{"refused" if declares else "shutdown": why})
        return {member: self._address(assigned[member], members[member]) for member in members}

    def _address(self, assigned: Assigned, subscribed: Subscribed) -> Assigned:
        """Add the topologies' fingerprints to the assignment of a member that declares one."""
        if subscribed.topology is None:
            return assigned._replace(notice="")
        return assigned._replace(
            fingerprint=subscribed.topology.fingerprint, leader=self.declared.fingerprint
        )

    def adopt(self, assigned: Assigned) -> Assigned:
        """Check the leader's assignment, as a member, and return it in this member's task numbers.

        Where the leader has another topology, the internal topics of this one are created here. A
        leader of a release that compares no topologies may number tasks otherwise: what it has
        assigned is known by its partitions.

        Raises: TopologyRefused if the leader says so, or for partitions that are no whole tasks
        here; StreamsError where a topic has the wrong ones; OutcomeUnknown for partitions that
        brokers do not list here yet: join again.
        """
        if assigned.refused:
            raise TopologyRefused(assigned.refused)
        self._say(assigned.notice if assigned.leader or not assigned.tasks else _SILENT_LEADER)
        if assigned.leader == self.declared.fingerprint or not assigned.tasks:
            return assigned
        existing = self._admin.partition_counts()
        counts = self._count_partitions(existing)
        self._make_topics(existing, counts, runs_alone=not assigned.leader)
        if assigned.leader:
            return assigned
        assigned_partitions = {Partition(*each) for each in assigned.partitions}
        tasks = {
            name: partitions
            for name, partitions in self.tasks(counts).items()
            if assigned_partitions.issuperset(partitions)
        }
        unknown = assigned_partitions.difference(*tasks.values())
        if unknown and all(p.number >= counts.get(p.topic, p.number + 1) for p in unknown):
            names = list_names({p.topic for p in unknown})
            raise OutcomeUnknown(f"the leader has seen more partitions of {names} than there are")
        if unknown:
            raise TopologyRefused(
                f"the leader of group {self._topology.application_id!r}, of an earlier release of "
                f"Millrace, has another topology: {list_names({p.topic for p in unknown})} is read "
                "with other topics there, or not here. End all workers of that version before; or, "
                "if it is another application, choose another application id"
            )
        return assigned._replace(tasks=tuple(tasks))

    def _say(self, notice: str) -> None:
        """Log the leader's notice about the group, once while it stays the same."""
        if notice and notice != self._notice:
            log.warning("%s", notice)
        self._notice = notice

    def is_outdated(self) -> bool:
        """Return whether input partitions have changed since tasks were assigned; for the leader.

        A leader that took over without assigning takes the partitions as it finds them at the first
        call.

        Raises: StreamsError where an input does not exist any more. Source: KafkaConsumer's leader,
        which joins again when its metadata have changed (ConsumerCoordinator.java).
        """
        existing = self._admin.partition_counts()
        own = self._find_inputs(existing)
        if self._inputs is None:
            self._inputs = own
        return {topic: existing.get(topic) for topic in self._inputs} != self._inputs

    def _find_inputs(self, existing: Mapping[str, int]) -> dict[str, int]:
        """Return the partition counts of the input topics; raise StreamsError if one is missing."""
        missing = [topic for topic in self._topology.input_topics if topic not in existing]
        if missing:
            raise StreamsError(f"input topics {missing} do not exist any more: create them again")
        return {topic: existing[topic] for topic in self._topology.input_topics}

    def tasks(self, counts: Mapping[str, int]) -> dict[str, list[Partition]]:
        """Return every task with the partitions that it reads."""
        return find_tasks(self.declared.subtopologies, counts)

    def _count_partitions(self, existing: Mapping[str, int]) -> dict[str, int]:
        """Return the partition counts of all source topics, internal ones included."""
        try:
            return self._topology.partition_counts(self._find_inputs(existing))
        except TopologyError as error:
            raise StreamsError(str(error)) from error

    def _make_topics(
        self, existing: Mapping[str, int], counts: Mapping[str, int], *, runs_alone: bool
    ) -> None:
        """Create missing internal topics; raise StreamsError for wrong partition counts.

        `is_only_version`: no other version is known to run beside this one. The stores of one would
        look like leftovers of this one's.
        """
        topology = self._topology
        wanted = {topic: counts[topic] for topic in topology.repartition_topics}
        settings = dict.fromkeys(wanted, REPARTITION)
        for sub in topology.subtopologies:
            for store in (s for s in sub.stores if s.logged and s.source_topic is None):
                changelog = topology.changelog(store.name)
                wanted[changelog] = max(counts[topic] for topic in sub.sources)
                settings[changelog] = changelog_settings(store, self._config.cut_retention_ms)
        for topic, partitions in wanted.items():
            if existing.get(topic, partitions) != partitions:
                raise StreamsError(
                    f"internal topic {topic!r} has {existing[topic]} partitions and the topology "
                    f"needs {partitions}: the inputs' partitions have changed; restore their "
                    "number, or reset the application: end its workers, then delete the offsets "
                    f"of group {topology.application_id!r}, its repartition and changelog topics, "
                    f"and {self._config.state_dir / topology.application_id} (docs/operations.md)"
                )
        new = {topic: count for topic, count in wanted.items() if topic not in existing}
        if runs_alone:
            self._warn_of_leftovers(new, existing)
        self._admin.create_topics(new, settings, self._config.replication_factor)
        self._compare_lags({t: each for t, each in settings.items() if t in existing})

    def _warn_of_leftovers(self, new: Collection[str], existing: Collection[str]) -> None:
        """Warn of stores that begin empty while state of unknown stores is left."""
        topology, application_id = self._topology, self._topology.application_id
        specs = [spec for sub in topology.subtopologies for spec in sub.stores]
        begun = {s.name for s in specs if s.logged and topology.changelog(s.name) in new}
        if not begun:
            return
        names = [spec.name for spec in specs]
        left = find_leftovers(
            application_id, names, existing, self._config.state_dir, self._admin.groups
        )
        if left:
            log.warning("%s", warn_of_leftovers(begun, left))

    def _compare_lags(self, wanted: Mapping[str, Mapping[str, str]]) -> None:
        """Warn of existing changelogs that compact earlier than `cut_retention_ms` asks for.

        Topics that exist are left as they are. Where their settings can't be read tasks are
        assigned all the same.
        """
        lags = {t: int(each.get(COMPACTION_LAG, 0)) for t, each in wanted.items()}
        topics = [topic for topic, lag in lags.items() if lag and self._config.cut_retention_ms]
        try:
            settings = self._admin.topic_settings(topics) if topics else {}
        except (OutcomeUnknown, StreamsError) as error:
            log.info("it is not known when %s are compacted: %s", list_names(topics), error)
            return
        for topic, topic_settings in settings.items():
            if int(topic_settings.get(COMPACTION_LAG, 0)) < lags[topic]:
                log.warning(
                    "%s has %s=%s, and cut_retention_ms asks for %d: alter it (kafka-configs), or "
                    "what a cut needs may be compacted away",
                    *(topic, COMPACTION_LAG, topic_settings.get(COMPACTION_LAG, 0), lags[topic]),
                )
