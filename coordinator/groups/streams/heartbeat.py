"""Decide StreamsGroupHeartbeat: a member joins or reports changes, and learns its tasks.

1. The member is created or updated. The first one brings the topology of the group.
2. The topology is compared with the topics that exist, when either has changed (`configure`).
3. If the member, the topics or the group's settings have changed, the group gets its next epoch.
4. If the group's epoch is above the target's, the next target is computed (`target`), unless the
   initial delay of a new group or the assignment interval has not passed.
5. The member takes its next step towards the target (`reconcile`).

Most heartbeats change nothing: no record, and the session restarts.
Source: streamsGroupHeartbeat of GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from coordinator.errors import Code, Refused
from coordinator.groups.consumer.topics import compute_metadata_hash
from coordinator.groups.streams.command import (
    StreamsGroupContext,
    StreamsHeartbeat,
    StreamsHeartbeatAnswer,
)
from coordinator.groups.streams.configure import (
    ConfiguredTopology,
    StreamsStatus,
    StreamsStatusCode,
    check_owned_tasks,
    configure_topology,
)
from coordinator.groups.streams.deletion import build_streams_member_tombstones
from coordinator.groups.streams.effects import (
    LOST_WITH_NEW_GROUP,
    CountStreamsEpoch,
    CountStreamsSettled,
    CountStreamsTarget,
    DropStreamsMember,
    DropTaskOffsets,
    KeepTaskOffsets,
    RememberTopology,
    RequestShutdown,
    SetEndpointEpoch,
    SetStreamsTimer,
    StartInitialDelay,
    StreamsEffect,
    StreamsTimer,
    select_revocation_timer,
)
from coordinator.groups.streams.endpoints import EndpointPartitions
from coordinator.groups.streams.epoch_cause import StreamsEpochCause
from coordinator.groups.streams.member_check import (
    check_member_epoch,
    check_static_member_is_away,
    check_streams_group_size,
    require_streams_member,
)
from coordinator.groups.streams.reconcile import reconcile_tasks
from coordinator.groups.streams.record_types import (
    NO_EPOCH,
    Record,
    StreamsGroupSaved,
    StreamsTargetAssignmentSaved,
    StreamsTopologySaved,
)
from coordinator.groups.streams.state import JOINING_EPOCH, StreamsGroup, StreamsGroupMember
from coordinator.groups.streams.target import (
    build_target_records,
    compute_task_targets,
    count_moved_tasks,
    has_assignment_interval_passed,
)
from coordinator.groups.streams.tasks import NO_ROLES, TaskId, TaskRoles
from coordinator.groups.streams.topology import StreamsTopology
from coordinator.shard.decision import Decision

MetadataHash: TypeAlias = int
TargetEpoch: TypeAlias = int
EndpointEpoch: TypeAlias = int


def process_streams_heartbeat(
    group: StreamsGroup, command: StreamsHeartbeat, context: StreamsGroupContext, *, is_new: bool
) -> Decision[Record, StreamsHeartbeatAnswer]:
    """Decide a heartbeat of a member that joins or stays in a group.

    A group that doesn't exist yet is handed in empty, if the member joins (`is_new`).

    Raises Refused: GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
    UNRELEASED_INSTANCE_ID, FENCED_MEMBER_EPOCH, INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY.
    """
    step = _HeartbeatStep(group, command, context, is_new=is_new)
    return step.decide()


class _HeartbeatStep:
    """Collects the records, effects and statuses of one heartbeat while it is decided."""

    def __init__(
        self,
        group: StreamsGroup,
        command: StreamsHeartbeat,
        context: StreamsGroupContext,
        *,
        is_new: bool,
    ) -> None:
        self._group = group
        self._command = command
        self._context = context
        self._transient = context.transient_state
        self._is_new = is_new
        self._records: list[Record] = []
        self._effects: list[StreamsEffect] = []
        self._statuses: list[StreamsStatus] = []
        self._cause: StreamsEpochCause | None = None  # of the next epoch, if there is to be one
        self._replaced: StreamsGroupMember | None = None  # whose place the member takes

    def decide(self) -> Decision[Record, StreamsHeartbeatAnswer]:
        command, group = self._command, self._group
        member = self._find_or_create_member()
        updated = self._update_and_record_member(member)
        topology = self._require_or_record_topology(updated)
        configured, metadata_hash = self._reconfigure_topology_if_topics_changed(topology)
        validated_epoch = topology.epoch if configured.is_ready else NO_EPOCH
        check_owned_tasks(configured, command.owned)
        if command.task_offsets is not None or command.task_end_offsets is not None:
            self._effects.append(
                KeepTaskOffsets(member.member_id, command.task_offsets, command.task_end_offsets)
            )
        if validated_epoch != group.validated_topology_epoch:
            self._request_epoch(StreamsEpochCause.TOPICS_CHANGED)
        if self._context.settings.assignment_configs != group.assignment_configs:
            self._request_epoch(StreamsEpochCause.SETTINGS_CHANGED)
        epoch = self._increment_epoch_if_due(metadata_hash, validated_epoch)
        target_epoch, target = self._update_target(epoch, updated, configured)
        moved = reconcile_tasks(group, updated, target_epoch, target, command.owned)
        if moved != updated:
            self._records.append(moved.to_assignment_record(group.group_id))
            self._effects.append(select_revocation_timer(moved))
        self._effects.append(
            SetStreamsTimer(
                StreamsTimer.SESSION, moved.member_id, self._context.settings.session_timeout_ms
            )
        )
        answer = self._build_answer_and_add_effects(member, moved, configured)
        if self._replaced is not None:
            drop_id = self._replaced.member_id
            is_same = drop_id == moved.member_id
            self._effects.append(
                DropTaskOffsets(drop_id) if is_same else DropStreamsMember(drop_id)
            )
        if self._records:
            self._effects.append(CountStreamsSettled())
        effects = self._effects
        if self._is_new:
            effects = [each for each in effects if not isinstance(each, LOST_WITH_NEW_GROUP)]
        return Decision(self._records, answer, effects)

    # The member

    def _find_or_create_member(self) -> StreamsGroupMember:
        """Return the member that sends the heartbeat, or a new one."""
        group, command = self._group, self._command
        if not command.is_joining:
            member = require_streams_member(group, command.member_id, command.instance_id)
            check_member_epoch(member, command.epoch, command.owned)
            return member
        check_streams_group_size(
            group, command.member_id, command.instance_id, self._context.config.max_size
        )
        static_member = (
            None if command.instance_id is None else group.find_static_member(command.instance_id)
        )
        if static_member is None:
            found = group.members.get(command.member_id)
            return found or StreamsGroupMember(command.member_id)
        check_static_member_is_away(static_member, command.member_id)
        self._replaced = static_member
        member = replace(
            static_member,
            member_id=command.member_id,
            epoch=JOINING_EPOCH,
            previous_epoch=JOINING_EPOCH,
        )
        group_id, old_id = group.group_id, static_member.member_id
        self._records += [
            *build_streams_member_tombstones(group_id, old_id),
            member.to_member_record(group_id),
            StreamsTargetAssignmentSaved(group_id, member.member_id, group.target_of(old_id)),
            member.to_assignment_record(group_id),
        ]
        return member

    def _update_and_record_member(self, member: StreamsGroupMember) -> StreamsGroupMember:
        """Return the member with the fields that the request reports, and record changes.

        A static member that differs only in its client or time-out needs no other tasks.
        """
        command = self._command
        fields: dict[str, Any] = {
            "client_id": command.client_id,
            "client_host": command.client_host,
            "topology_epoch": None if command.topology is None else command.topology.epoch,
        }
        for name in (
            "instance_id",
            "rack_id",
            "rebalance_timeout_ms",
            "process_id",
            "endpoint",
            "client_tags",
        ):
            fields[name] = getattr(command, name)
        changes = {name: value for name, value in fields.items() if value is not None}
        if command.is_joining:
            changes["endpoint"] = command.endpoint
        updated = replace(member, **changes)
        if updated == member:
            return member
        self._records.append(updated.to_member_record(self._group.group_id))
        relevant = ("topology_epoch", "rack_id", "client_tags", "process_id")
        if command.instance_id is None or any(
            getattr(updated, name) != getattr(member, name) for name in relevant
        ):
            is_known = updated.member_id in self._group.members or self._replaced is not None
            self._request_epoch(
                StreamsEpochCause.MEMBER_CHANGED if is_known else StreamsEpochCause.MEMBER_JOINED
            )
        return updated

    # The topology

    def _require_or_record_topology(self, updated: StreamsGroupMember) -> StreamsTopology:
        """Return the topology of the group, which the first member brings.

        Raises Refused: INVALID_REQUEST if a member brings another one.
        """
        sent, known = self._command.topology, self._group.topology
        if known is None:
            if sent is None:
                raise Refused(Code.UNKNOWN_SERVER_ERROR, "the group has no topology yet")
            self._records.append(StreamsTopologySaved(self._group.group_id, sent))
            return sent
        if sent is not None and sent.epoch >= known.epoch and not known.is_equivalent_to(sent):
            raise Refused(Code.INVALID_REQUEST, "Topology updates are not supported yet.")
        if updated.topology_epoch < known.epoch:
            self._add_status(
                StreamsStatusCode.STALE_TOPOLOGY,
                f"The member's topology epoch {updated.topology_epoch} is behind the group's "
                f"topology epoch {known.epoch}.",
            )
        return known

    def _reconfigure_topology_if_topics_changed(
        self, topology: StreamsTopology
    ) -> tuple[ConfiguredTopology, MetadataHash]:
        """Return the topology with its partition counts, and the hash of the topics it needs."""
        group, topics = self._group, self._context.topics
        known = None if group.topology is None else self._transient.configured
        if known is not None and self._transient.topics_version == topics.version:
            return known, group.metadata_hash
        metadata_hash = compute_metadata_hash(topology.required_topics, topics)
        if metadata_hash != group.metadata_hash:
            self._request_epoch(StreamsEpochCause.TOPICS_CHANGED)
        if known is None or metadata_hash != group.metadata_hash:
            known = configure_topology(topology, topics)
        self._effects.append(RememberTopology(known, topics.version))
        return known, metadata_hash

    # The group

    def _request_epoch(self, cause: StreamsEpochCause) -> None:
        """Note that the group gets its next epoch, and why: the first cause counts."""
        self._cause = self._cause or cause

    def _increment_epoch_if_due(self, metadata_hash: int, validated_epoch: int) -> int:
        """Return the epoch of the group, one up if there is a cause, with its record."""
        group = self._group
        if self._cause is None:
            return group.epoch
        self._records.append(
            StreamsGroupSaved(
                group.group_id,
                group.epoch + 1,
                metadata_hash,
                validated_epoch,
                self._context.settings.assignment_configs,
                group.stored_description_epoch,
                group.failed_description_epoch,
            )
        )
        self._effects.append(CountStreamsEpoch(self._cause, self._command.member_id))
        return group.epoch + 1

    def _update_target(
        self, epoch: int, updated: StreamsGroupMember, configured: ConfiguredTopology
    ) -> tuple[TargetEpoch, TaskRoles]:
        """Return the target's epoch and the member's part; compute the next target if it is due."""
        group, context = self._group, self._context
        delay_ms = context.settings.initial_rebalance_delay_ms
        starts_delay = not group.members and delay_ms > 0
        if starts_delay:
            self._effects.append(StartInitialDelay(delay_ms))
        if starts_delay or context.is_delayed:
            self._add_delay("Assignment delayed due to the configured initial rebalance delay.")
            return group.target_epoch, NO_ROLES
        replaced_id = updated.member_id if self._replaced is None else self._replaced.member_id
        has_replaced = replaced_id in group.target_assignment
        current = group.target_of(replaced_id if has_replaced else updated.member_id)
        if group.target_epoch >= epoch:
            return group.target_epoch, current
        interval_ms = context.settings.assignment_interval_ms
        if not has_assignment_interval_passed(group, interval_ms, context.now_ms):
            self._add_delay("Assignment delayed due to the configured assignment interval.")
            return group.target_epoch, current
        targets = dict(group.target_assignment)
        members = dict(group.members)
        if replaced_id != updated.member_id:
            members.pop(replaced_id, None)
            if has_replaced:
                targets[updated.member_id] = targets.pop(replaced_id)
        members[updated.member_id] = updated
        new_targets = compute_task_targets(
            group, members, configured, context.settings.num_standby_replicas, self._merge_offsets()
        )
        self._records += build_target_records(group, targets, new_targets, epoch, context.now_ms)
        moved_count = count_moved_tasks(targets, new_targets.items())
        self._effects.append(CountStreamsTarget(moved_count, context.began_ns))
        return epoch, new_targets[updated.member_id]

    def _merge_offsets(self) -> Mapping[str, Mapping[TaskId, int]]:
        """Return the members' task offsets, with those that this heartbeat reports."""
        reported, member_id = self._command.task_offsets, self._command.member_id
        known = self._transient.task_offsets
        return known if reported is None else {**known, member_id: reported}

    # The answer

    def _add_status(self, code: StreamsStatusCode, detail: str) -> None:
        self._statuses.append(StreamsStatus(code, detail))

    def _add_delay(self, detail: str) -> None:
        self._add_status(StreamsStatusCode.ASSIGNMENT_DELAYED, detail)

    def _build_answer_and_add_effects(
        self,
        member: StreamsGroupMember,
        moved: StreamsGroupMember,
        configured: ConfiguredTopology,
    ) -> StreamsHeartbeatAnswer:
        context, command = self._context, self._command
        if configured.problem is not None:
            self._statuses.append(configured.problem)
        requester = self._transient.shutdown_requester
        if command.shutdown_application and requester is None:
            self._effects.append(RequestShutdown(command.member_id))
            requester = command.member_id
        if requester is not None:
            self._add_status(
                StreamsStatusCode.SHUTDOWN_APPLICATION,
                f"Streams group member {requester} encountered a fatal error and requested a "
                "shutdown for the entire application.",
            )
        tasks_changed = moved.assigned != member.assigned
        endpoint_epoch, endpoints = self._update_endpoints(
            moved, configured, tasks_changed, moved.endpoint != member.endpoint
        )
        return StreamsHeartbeatAnswer(
            member_id=moved.member_id,
            epoch=moved.epoch,
            heartbeat_interval_ms=context.settings.heartbeat_interval_ms,
            task_offset_interval_ms=context.settings.task_offset_interval_ms,
            statuses=tuple(self._statuses),
            assigned=moved.assigned if command.is_joining or tasks_changed else None,
            endpoint_epoch=0 if self._is_new else endpoint_epoch,
            endpoints=endpoints,
            topics_to_create=configured.missing_topics,
        )

    def _update_endpoints(
        self,
        moved: StreamsGroupMember,
        configured: ConfiguredTopology,
        tasks_changed: bool,
        endpoint_changed: bool,
    ) -> tuple[EndpointEpoch, tuple[EndpointPartitions, ...] | None]:
        """Return the endpoint epoch, and the endpoints' partitions if the member lacks them."""
        epoch = self._transient.endpoint_epoch
        if endpoint_changed or (tasks_changed and moved.endpoint is not None):
            epoch += 1
            self._effects.append(SetEndpointEpoch(epoch))
        if epoch == self._command.endpoint_epoch:
            return epoch, None
        replaced_id = None if self._replaced is None else self._replaced.member_id
        return epoch, self._transient.endpoint_cache.list_endpoints(
            self._group, moved, replaced_id, configured, self._context.topics
        )
