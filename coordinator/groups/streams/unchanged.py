"""Decide heartbeats of streams groups with nothing new at a glance: nearly all are such."""

from __future__ import annotations

from functools import lru_cache

from coordinator.groups.streams.command import (
    StreamsGroupContext,
    StreamsHeartbeat,
    StreamsHeartbeatAnswer,
)
from coordinator.groups.streams.effects import SetStreamsTimer, StreamsTimer
from coordinator.groups.streams.record_types import Record
from coordinator.groups.streams.state import JOINING_EPOCH, StreamsGroup
from coordinator.shard.decision import Decision


def has_no_streams_news(
    group: StreamsGroup, command: StreamsHeartbeat, context: StreamsGroupContext
) -> bool:
    """Return whether neither the member reports anything nor the group has anything for it.

    `decide_unchanged_streams_heartbeat` decides such a heartbeat. For those of which this can't be
    said at a glance it is False.
    """
    member, transient_state = group.members.get(command.member_id), context.transient_state
    configured, topology = transient_state.configured, group.topology
    return (
        member is not None
        and command.epoch == member.epoch
        and command.epoch > JOINING_EPOCH
        and member.has_reached(group.target_epoch)
        and group.target_epoch == group.epoch
        and command.reports_nothing
        and command.client_id == member.client_id
        and command.client_host == member.client_host
        and topology is not None
        and member.topology_epoch >= topology.epoch == group.validated_topology_epoch
        and configured is not None
        and configured.is_ready
        and transient_state.topics_version == context.topics.version
        and transient_state.shutdown_requester is None
        and transient_state.endpoint_epoch == command.endpoint_epoch
        and context.settings.assignment_configs == group.assignment_configs
        and not context.is_delayed
    )


@lru_cache(16_384)  # a member's decision is the same until it or its group changes
def decide_unchanged_streams_heartbeat(
    member_id: str,
    epoch: int,
    endpoint_epoch: int,
    session_timeout_ms: int,
    heartbeat_interval_ms: int,
    task_offset_interval_ms: int,
) -> Decision[Record, StreamsHeartbeatAnswer]:
    """Decide a heartbeat with nothing new as `process_streams_heartbeat` does.

    The member's session restarts.
    """
    session = SetStreamsTimer(StreamsTimer.SESSION, member_id, session_timeout_ms)
    answer = StreamsHeartbeatAnswer(
        member_id,
        epoch,
        heartbeat_interval_ms,
        task_offset_interval_ms,
        endpoint_epoch=endpoint_epoch,
    )
    return Decision((), answer, (session,))
