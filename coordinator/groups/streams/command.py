"""Define what a heartbeat of a streams group says, its answer, and what a decision reads beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.streams.config import StreamsGroupConfig, StreamsGroupSettings
from coordinator.groups.streams.configure import ConfiguredTopology, StreamsStatus
from coordinator.groups.streams.endpoints import EndpointCache, EndpointPartitions
from coordinator.groups.streams.record_types import Endpoint, Tags
from coordinator.groups.streams.state import JOINING_EPOCH
from coordinator.groups.streams.tasks import AssignedTasks, TaskId, TaskRoles
from coordinator.groups.streams.topology import InternalTopic, StreamsTopology


class StreamsHeartbeat(NamedTuple):
    """Represents a StreamsGroupHeartbeat request; a field is None if it reports no change."""

    group_id: str
    member_id: str
    epoch: int
    client_id: str
    client_host: str
    endpoint_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int | None = None
    topology: StreamsTopology | None = None
    owned: TaskRoles | None = None
    process_id: str | None = None
    endpoint: Endpoint | None = None
    client_tags: Tags | None = None
    task_offsets: Mapping[TaskId, int] | None = None
    task_end_offsets: Mapping[TaskId, int] | None = None
    shutdown_application: bool = False

    @property
    def is_joining(self) -> bool:
        """Return whether the member joins, or joins again."""
        return self.epoch == JOINING_EPOCH

    @property
    def reports_nothing(self) -> bool:
        """Return whether all fields that may report a change are left out."""
        return self[_FIRST_REPORTED:] == _NOTHING_REPORTED


_FIRST_REPORTED = StreamsHeartbeat._fields.index("instance_id")
_NOTHING_REPORTED = StreamsHeartbeat("", "", 0, "", "")[_FIRST_REPORTED:]


class StreamsHeartbeatAnswer(NamedTuple):
    """Represents the answer to a heartbeat.

    `assigned` None: the tasks haven't changed. `endpoints` None: the member knows them.
    `topics_to_create`: internal topics that are missing.
    """

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    task_offset_interval_ms: int = 0
    statuses: tuple[StreamsStatus, ...] = ()
    assigned: AssignedTasks | None = None
    endpoint_epoch: int = 0
    endpoints: tuple[EndpointPartitions, ...] | None = None
    topics_to_create: tuple[InternalTopic, ...] = ()


@dataclass(slots=True)
class TransientStreamsState:
    """Tracks the state of a streams group that no record has, so that a restart loses it."""

    configured: ConfiguredTopology | None = None
    topics_version: int = -1  # of the topics that the topology was compared with
    # What the topology came to in a heartbeat that was refused, and where the log ended then.
    refused_topology: tuple[ConfiguredTopology, int] | None = None
    shutdown_requester: str | None = None  # the member that wants the application to shut down
    endpoint_epoch: int = 0
    endpoint_cache: EndpointCache = field(default_factory=EndpointCache)
    task_offsets: dict[str, Mapping[TaskId, int]] = field(default_factory=dict)
    task_end_offsets: dict[str, Mapping[TaskId, int]] = field(default_factory=dict)
    unstable_since_ms: int | None = None


class StreamsGroupContext(NamedTuple):
    """Holds what a decision reads beside the group: topics, settings, transient state, time.

    `is_delayed`: whether the initial delay of the group is running.
    """

    topics: TopicList
    config: StreamsGroupConfig
    settings: StreamsGroupSettings
    transient_state: TransientStreamsState
    is_delayed: bool
    now_ms: int
    began_ns: int = 0  # the monotonic time at which the request began
