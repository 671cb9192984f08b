"""Send StreamsGroupHeartbeat, and read its answer (KIP-1071, version 0)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from kio.schema.errors import ErrorCode

from streams.common.addresses import format_address, parse_address
from streams.membership.connection import BrokerConnection, build_entity, load_request_classes
from streams.membership.protocol import EndpointTasks
from streams.membership.streams.member_state import EndpointsTold, HeartbeatAnswer, MemberHeartbeat
from streams.membership.streams.statuses import GroupStatus
from streams.membership.streams.task_roles import (
    NO_TASKS,
    TasksByRole,
    list_partitions_by_subtopology,
    name_tasks,
)
from streams.membership.streams.topology_request import TopologyToSend, build_topology

STREAMS_GROUP_HEARTBEAT_API_KEY = 88
_VERSION = 0


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """Holds what a member tells its group of itself when it joins.

    `process_id` is one for all members that share a state directory: the broker gives a task to one
    of them at a time, in whatever role. `endpoint` is the host:port at which its worker answers
    queries; empty if it answers none.
    """

    group_id: str
    member_id: str
    process_id: str
    topology: TopologyToSend
    rebalance_timeout_ms: int
    endpoint: str = ""
    client_tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    rack: str = ""


@dataclass(frozen=True, slots=True)
class HeartbeatRefusal:
    """Represents the error code with which a heartbeat was refused, and the broker's message."""

    code: ErrorCode
    message: str


def send_heartbeat(
    connection: BrokerConnection,
    metadata: MemberMetadata,
    heartbeat: MemberHeartbeat,
    *,
    shutdown_application: bool = False,
    is_given_up: Callable[[], bool] = lambda: False,
) -> HeartbeatAnswer | HeartbeatRefusal:
    """Send a heartbeat and return its answer, or the code with which it was refused.

    Raises: ConnectionLost if no answer comes, or before it does once `is_given_up()` is true.
    """
    classes = load_request_classes(connection, STREAMS_GROUP_HEARTBEAT_API_KEY, _VERSION)
    request = _build_request(
        classes, metadata, heartbeat, shutdown_application=shutdown_application
    )
    answer = connection.send_request(request, is_given_up=is_given_up)
    if answer.error_code is not ErrorCode.none:
        return HeartbeatRefusal(answer.error_code, answer.error_message or "")
    return read_answer(answer, metadata.topology)


def _build_request(
    classes: Mapping[str, Any],
    metadata: MemberMetadata,
    heartbeat: MemberHeartbeat,
    *,
    shutdown_application: bool,
) -> Any:
    """Build the request: all of the metadata if it joins, else only what may have changed."""
    owned = heartbeat.owned
    request: dict[str, Any] = {
        "group_id": metadata.group_id,
        "member_id": metadata.member_id,
        "member_epoch": heartbeat.epoch,
        "endpoint_information_epoch": heartbeat.endpoint_epoch,
        "active_tasks": None if owned is None else _build_task_ids(classes, owned.active),
        "standby_tasks": None if owned is None else _build_task_ids(classes, owned.standby),
        "warmup_tasks": None if owned is None else _build_task_ids(classes, owned.warmup),
        "client_tags": None,
        "task_offsets": None,
        "task_end_offsets": None,
        "shutdown_application": shutdown_application,
    }
    if heartbeat.is_join:
        request |= {
            "rebalance_timeout": timedelta(milliseconds=metadata.rebalance_timeout_ms),
            "topology": build_topology(classes, metadata.topology),
            "process_id": metadata.process_id,
            "rack_id": metadata.rack or None,
            "user_endpoint": _build_endpoint(classes, metadata.endpoint),
            "client_tags": tuple(
                classes["KeyValue"](key=key, value=tag) for key, tag in metadata.client_tags.items()
            ),
        }
    return build_entity(classes["StreamsGroupHeartbeatRequest"], **request)


def _build_endpoint(classes: Mapping[str, Any], endpoint: str) -> Any:
    """Return the endpoint of the member's worker as an entity; None if it has none."""
    if not endpoint:
        return None
    host, port = parse_address(endpoint)
    return classes["Endpoint"](host=host, port=port)


def _build_task_ids(classes: Mapping[str, Any], tasks: Iterable[str]) -> tuple[Any, ...]:
    """Return tasks as entities of the request."""
    return tuple(
        classes["TaskIds"](subtopology_id=subtopology, partitions=tuple(partitions))
        for subtopology, partitions in list_partitions_by_subtopology(tasks).items()
    )


def read_answer(answer: Any, topology: TopologyToSend) -> HeartbeatAnswer:
    """Decode a heartbeat answer without an error into tasks, statuses and endpoints."""
    told = None
    if answer.active_tasks is not None:
        told = TasksByRole(
            *(
                NO_TASKS
                if role is None
                else name_tasks((each.subtopology_id, each.partitions) for each in role)
                for role in (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)
            )
        )
    return HeartbeatAnswer(
        epoch=int(answer.member_epoch),
        interval_ms=answer.heartbeat_interval // timedelta(milliseconds=1),
        told=told,
        statuses=tuple(
            GroupStatus(int(each.status_code), each.status_detail) for each in answer.status or ()
        ),
        endpoints=_read_endpoints(answer, topology),
    )


def _read_endpoints(answer: Any, topology: TopologyToSend) -> EndpointsTold | None:
    """Return the tasks behind each endpoint; None if the answer does not tell them.

    The broker names the partitions that they read, of which each belongs to one sub-topology.
    """
    if answer.partitions_by_user_endpoint is None:
        return None

    def name_readers(topics: Any) -> tuple[str, ...]:
        found = {
            f"{topology.subtopology_by_topic[str(each.topic)]}_{partition}"
            for each in topics
            if str(each.topic) in topology.subtopology_by_topic
            for partition in each.partitions
        }
        return tuple(sorted(found))

    return EndpointsTold(
        int(answer.endpoint_information_epoch),
        {
            format_address((each.user_endpoint.host, int(each.user_endpoint.port))): EndpointTasks(
                name_readers(each.active_partitions), name_readers(each.standby_partitions)
            )
            for each in answer.partitions_by_user_endpoint
        },
    )
