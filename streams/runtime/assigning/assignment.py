"""Assign each task to one member and create internal topics: the duties of the group's leader.

Members may run different versions of the topology (`topology_versions`); then each creates the
internal topics of its own, since the leader knows the settings of no other.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TypeAlias

from coordinator.assignors.tasks import NO_STRATEGY, TaskAssignment
from streams.common.topic_partitions import CommittedOffsets
from streams.errors import (
    OutcomeUnknown,
    StreamsError,
    TaskAssignmentError,
    TopologyError,
    TopologyRefused,
)
from streams.membership.connection import ConnectionLost
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo
from streams.runtime.assigning.custom_assignment import (
    assign_by_application,
    describe_clients,
    describe_tasks,
)
from streams.runtime.assigning.group_assignment import (
    GroupInfo,
    assign_by_state,
    build_assignments,
    describe_application,
    describe_group,
    get_assignment_configs,
    hash_partition_counts,
)
from streams.runtime.assigning.internal_topic_check import InternalTopicCheck
from streams.runtime.assigning.internal_topics import list_topic_settings
from streams.runtime.assigning.leftover_stores import (
    find_leftovers,
    format_leftover_warning,
)
from streams.runtime.assigning.lost_topics import check_internal_counts, derive_internal_counts
from streams.runtime.assigning.partition_racks import (
    PartitionRacks,
    fetch_partition_racks,
    find_task_racks,
)
from streams.runtime.assigning.task_lags import (
    FetchCommittedOffsets,
    TaskChangelogs,
    fetch_end_offset_sums,
    list_task_changelogs,
)
from streams.runtime.assigning.topology_versions import (
    TaskNumbers,
    VersionAdmission,
    admit_versions,
    describe_versions,
    find_versions,
)
from streams.runtime.assigning.unread_topics import UnreadTopicCheck
from streams.runtime.clients.interfaces import AdminClient
from streams.runtime.offsets.committed_record_search import CommittedRecordSearch
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology
from streams.topology.declared import declare_topology
from streams.topology.description import describe_topology
from streams.topology.resolve import resolve_topology

HaveInputsChanged: TypeAlias = bool

log = logging.getLogger(__name__)


def name_task_by_topic(topology: Topology, task_id: str) -> str:
    """Return a task's name by the first topic that it reads and its partition.

    So it is named in every version of the topology that may run beside this one, whatever its
    number.
    """
    number, _, partition = task_id.partition("_")
    return f"{min(topology.subtopologies[int(number)].declared_sources)}_{partition}"


class StreamsPartitionAssignor:
    """Creates the internal topics of an application and assigns its tasks to the group's members.

    `fetch_committed_offsets` returns those of the group, for tables that their input restores.
    `bootstrap_servers` are the brokers' addresses for messages, where those of the settings name an
    embedded broker. `search` looks into topics that a former version has left; None: nobody does.
    Kafka Streams' counterpart is StreamsPartitionAssignor.
    """

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        admin: AdminClient,
        fetch_committed_offsets: FetchCommittedOffsets = lambda _: CommittedOffsets({}, []),
        bootstrap_servers: str = "",
        search: CommittedRecordSearch | None = None,
    ) -> None:
        self._topology = topology
        self._config = config
        self._admin = admin
        self._fetch_committed_offsets = fetch_committed_offsets
        self.declared = declare_topology(describe_topology(topology))
        self._logged_notice = ""
        self._topic_check = InternalTopicCheck(
            topology, config, admin, bootstrap_servers or config.bootstrap_servers
        )
        self._unread_topic_check = None
        if search is not None:
            self._unread_topic_check = UnreadTopicCheck(
                topology.application_id, config.state_dir, admin, fetch_committed_offsets, search
            )
        self._adopted_inputs_hash = 0
        self._assigned_input_counts: dict[str, int] | None = None
        """The partition counts of the inputs when tasks were last assigned."""
        self._known_sources = topology.source_topics
        self._assigned_versions = [self.declared]
        """The topologies whose tasks were last assigned, or the own."""

    def assign_group(self, members: Mapping[str, SubscriptionInfo]) -> dict[str, AssignmentInfo]:
        """Create missing internal topics, and return each member's assignment of tasks.

        An assignment is empty, with the reason, if a member asks all of them to end, or for a
        member that can't run beside the others.

        Raises: StreamsError where a topic has the wrong partitions.
        """
        reasons = [each.shutdown for _, each in sorted(members.items()) if each.shutdown]
        if reasons:
            return dict.fromkeys(members, AssignmentInfo((), (), reasons[0]))
        existing = self._admin.fetch_partition_counts()
        counts = self._find_source_partition_counts(existing)
        admission = admit_versions(find_versions(members), existing, self._topology.application_id)
        admitted = [version.topology for version in admission.versions]
        self._assigned_versions = admitted
        if any(each.fingerprint == self.declared.fingerprint for each in admitted):
            self._create_internal_topics(existing, counts, is_only_version=len(admitted) == 1)
        inputs = {topic for each in admitted for topic in each.input_topics}
        self._assigned_input_counts = {topic: existing[topic] for topic in inputs}
        try:
            return self._assign_to_admitted_members(members, admission, existing)
        except TaskAssignmentError as error:
            log.exception("tasks can't be assigned: the threads of all members end")
            return dict.fromkeys(members, AssignmentInfo((), (), failed=str(error)))

    def _assign_to_admitted_members(
        self,
        members: Mapping[str, SubscriptionInfo],
        admission: VersionAdmission,
        existing_counts: Mapping[str, int],
    ) -> dict[str, AssignmentInfo]:
        """Assign every task to a member of an admitted version, and refuse the other members.

        A task that another member owns is assigned in a later round, when its owner has revoked it.
        """
        running = {member: each.tasks for member, each in members.items()}
        leader = self.declared.resolve_patterns(existing_counts, self._topology.application_id)
        numbers = TaskNumbers(admission, leader, running)
        notice = describe_versions(admission)
        admitted = [member for version in admission.versions for member in version.members]
        group = describe_group(members, admitted, numbers)
        changelogs = list_task_changelogs(
            self._topology.application_id,
            numbers.subtopologies,
            numbers.partitions_by_task,
            existing_counts,
        )
        targets = self._choose_tasks(group, changelogs)
        assigned = {
            member: each._replace(notice=notice)
            for member, each in build_assignments(group, changelogs.stateful_tasks, targets).items()
        }
        for member, why in admission.refusal_reasons.items():
            assigned[member] = AssignmentInfo((), (), refused=why)
        return {
            member: self._add_fingerprints(assigned[member], members[member]) for member in members
        }

    def _choose_tasks(self, group: GroupInfo, changelogs: TaskChangelogs) -> TaskAssignment:
        """Return the tasks that each member is to have, by `task_assignor` if it is set.

        While versions of the topology run side by side, not every member can run every task, which
        no such assignor knows: then Millrace's own assigns.
        """
        config, custom = self._config, self._config.task_assignor
        ends: dict[str, int] | None = {}
        if len(group.clients) > 1 or custom is not None:
            ends = self._fetch_end_offset_sums(changelogs)
        state = describe_application(group, changelogs.stateful_tasks, ends)
        sources = group.numbers.partitions_by_task
        racks: PartitionRacks = {}
        if custom is not None or config.rack_aware_assignment_strategy != NO_STRATEGY:
            racks = fetch_partition_racks(self._admin, sources, changelogs)
            state = state._replace(task_racks=find_task_racks(sources, changelogs, racks))
        if custom is None:
            return assign_by_state(group, state, ends, config)
        if state.eligible_members is not None:
            log.info(
                "the tasks of several versions of the topology are not assigned by task_assignor"
            )
            return assign_by_state(group, state, ends, config)
        return assign_by_application(
            custom,
            state,
            describe_tasks(group.numbers.subtopologies, sources, changelogs, racks),
            describe_clients(state, group.members, are_lags_known=ends is not None),
            get_assignment_configs(config),
            are_lags_known=ends is not None,
        )

    def _fetch_end_offset_sums(self, changelogs: TaskChangelogs) -> dict[str, int] | None:
        """Return where the state of each task is up to date; None if that can't be known now."""
        try:
            return fetch_end_offset_sums(changelogs, self._admin, self._fetch_committed_offsets)
        except (OutcomeUnknown, ConnectionLost, StreamsError) as error:
            log.info("tasks are assigned without knowing how far their state is: %s", error)
            return None

    def _add_fingerprints(
        self, assigned: AssignmentInfo, subscribed: SubscriptionInfo
    ) -> AssignmentInfo:
        """Add the fingerprints of the member's topology, of this leader's and of the inputs."""
        return assigned._replace(
            fingerprint=subscribed.require_topology().fingerprint,
            leader=self.declared.fingerprint,
            inputs_hash=hash_partition_counts(self._assigned_input_counts or {}),
        )

    def adopt_assignment(self, assigned: AssignmentInfo) -> AssignmentInfo:
        """Check the leader's assignment, as a member, and return it if its tasks may be taken over.

        Where the leader has another topology, the internal topics of this one are created here,
        also for tasks that are only followed: without changelogs they would never catch up.

        Raises: TopologyRefused or TaskAssignmentError if the leader says so; StreamsError where a
        topic has the wrong partitions.
        """
        if assigned.failed:
            raise TaskAssignmentError(assigned.failed)
        if assigned.refused:
            raise TopologyRefused(assigned.refused)
        self._adopted_inputs_hash = assigned.inputs_hash
        if hash_partition_counts(self._assigned_input_counts or {}) != assigned.inputs_hash:
            self._assigned_input_counts = None  # another leader has assigned since
            self._assigned_versions = [self.declared]
        self._log_notice(assigned.notice)
        is_idle = not (assigned.tasks or assigned.following)
        if assigned.leader == self.declared.fingerprint or is_idle:
            return assigned
        existing = self._admin.fetch_partition_counts()
        counts = self._find_source_partition_counts(existing)
        self._create_internal_topics(existing, counts, is_only_version=False)
        return assigned

    def _log_notice(self, notice: str) -> None:
        """Log the leader's notice about the group, unless it is the same as the last."""
        if notice and notice != self._logged_notice:
            log.warning("%s", notice)
        self._logged_notice = notice

    def fetch_source_topics_or_last_known(self) -> tuple[str, ...]:
        """Return the topics that are read, for the group's subscription, as they are now.

        Kafka keeps the committed offsets of topics to which a group subscribes. Where no broker
        answers these are the topics of the last look.
        """
        if self._topology.patterns:
            with suppress(OutcomeUnknown, StreamsError):
                existing = self._admin.fetch_partition_counts()
                self._known_sources = self._resolve_topology(existing).source_topics
        return self._known_sources

    def mend_topics_and_compare_inputs(self) -> HaveInputsChanged:
        """Check and mend the internal topics; return whether input partitions have changed.

        The group's leader calls it, and compares with what was there when it assigned the tasks.
        A leader that has not assigned, since it came back as a static member, compares what its
        assignment says.

        Raises: StreamsError where an input does not exist any more, or an internal topic would lose
        records. Source: KafkaConsumer's leader, which joins again when its metadata have changed
        (ConsumerCoordinator.java).
        """
        existing = self._admin.fetch_partition_counts()
        own = self._require_input_counts(existing)
        self._topic_check.check_and_mend_topics(existing)
        if self._assigned_input_counts is None:
            if self._adopted_inputs_hash not in (0, hash_partition_counts(own)):
                return True
            self._assigned_input_counts = own
        application_id = self._topology.application_id
        try:
            versions = [
                each.resolve_patterns(existing, application_id) for each in self._assigned_versions
            ]
        except TopologyError:
            return True  # two patterns of another version match a topic: it is refused at a join
        inputs = {topic for each in versions for topic in each.input_topics}
        return {topic: existing.get(topic) for topic in inputs} != self._assigned_input_counts

    def _require_input_counts(self, existing_counts: Mapping[str, int]) -> dict[str, int]:
        """Return the partition counts of the input topics.

        Raises: StreamsError if one is missing, AuthorizationError if it may not be read.
        """
        inputs = self._resolve_topology(existing_counts).input_topics
        missing = [topic for topic in inputs if topic not in existing_counts]
        if missing:
            self._admin.check_topic_rights(dict.fromkeys(missing, ("Read",)))
            raise StreamsError(f"input topics {missing} do not exist any more: create them again")
        return {topic: existing_counts[topic] for topic in inputs}

    def _resolve_topology(self, existing_counts: Mapping[str, int]) -> Topology:
        """Return the own topology with the topics that match its patterns."""
        try:
            return resolve_topology(self._topology, existing_counts)
        except TopologyError as error:
            raise StreamsError(str(error)) from error

    def _find_source_partition_counts(self, existing_counts: Mapping[str, int]) -> dict[str, int]:
        """Return the partition counts of all source topics, internal ones included."""
        try:
            return self._resolve_topology(existing_counts).derive_partition_counts(
                self._require_input_counts(existing_counts)
            )
        except TopologyError as error:
            raise StreamsError(str(error)) from error

    def _create_internal_topics(
        self,
        existing_counts: Mapping[str, int],
        source_counts: Mapping[str, int],
        *,
        is_only_version: bool,
    ) -> None:
        """Create missing internal topics; raise StreamsError for wrong partition counts.

        `is_only_version`: no other version is known to run beside this one. The stores of one would
        look like leftovers of this one's.
        """
        topology = self._resolve_topology(existing_counts)
        wanted = derive_internal_counts(topology, source_counts, existing_counts)
        check_internal_counts(
            topology, existing_counts, wanted, self._admin, self._fetch_committed_offsets
        )
        new = {topic: count for topic, count in wanted.items() if topic not in existing_counts}
        if is_only_version:
            self._warn_of_leftovers(new, existing_counts)
            if self._unread_topic_check is not None:
                read = {*topology.repartition_topics, *topology.input_topics}
                self._unread_topic_check.warn_once(existing_counts, read)
        settings = list_topic_settings(
            topology,
            cut_retention_ms=self._config.cut_retention_ms,
            defaults=self._config.topic_defaults,
        )
        self._admin.create_topics(new, settings, self._config.replication_factor)
        self._topic_check.check_topics(existing_counts)

    def _warn_of_leftovers(
        self, new_topics: Collection[str], existing_topics: Collection[str]
    ) -> None:
        """Warn of new, empty stores while changelogs or directories of unknown stores exist."""
        topology, application_id = self._topology, self._topology.application_id
        specs = [spec for sub in topology.subtopologies for spec in sub.stores]
        begun = {
            s.name for s in specs if s.logged and topology.restore_topic_of(s.name) in new_topics
        }
        if not begun:
            return
        names = [spec.name for spec in specs]
        left = find_leftovers(
            application_id, names, existing_topics, self._config.state_dir, self._admin.list_groups
        )
        if left:
            log.warning("%s", format_leftover_warning(begun, left))
