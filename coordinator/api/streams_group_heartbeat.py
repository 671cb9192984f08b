"""Handle StreamsGroupHeartbeat, through which members of streams groups join, stay and leave.

Behaviour: epoch 0 joins and brings the topology, -1 leaves, -2 leaves for a while (static members
only); any other is the member epoch that the broker gave the member last. Fields that a member
leaves out haven't changed. Internal topics that are missing are created once the heartbeat is
answered; the members' next heartbeats find them. A refusal carries Kafka's message (KIP-1071).
Versions: 0.
Simplifications: no authorization. Topics that can't be created are tried again at each heartbeat;
Kafka waits before it does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.api.coordinator_codes import translate_coordinator_refusal
from coordinator.api.internal_topics import create_internal_topics
from coordinator.api.streams_heartbeat_answer import (
    build_streams_response,
    encode_streams_answer,
)
from coordinator.api.streams_topology import refuse_changelog_partition_counts, to_topology
from coordinator.errors import Code, Refused
from coordinator.groups.streams.command import StreamsHeartbeat, StreamsHeartbeatAnswer
from coordinator.groups.streams.configure import StreamsStatus, StreamsStatusCode
from coordinator.groups.streams.state import AWAY_EPOCH, JOINING_EPOCH
from coordinator.groups.streams.tasks import TaskId, TaskRoles, TaskSet
from coordinator.wire.codec import EncodedResponse, to_ms

if TYPE_CHECKING:
    from kio.schema.streams_group_heartbeat.v0.request import (
        StreamsGroupHeartbeatRequest,
        TaskIds,
        TaskOffset,
    )
    from kio.schema.streams_group_heartbeat.v0.response import StreamsGroupHeartbeatResponse

logger = logging.getLogger(__name__)

API_KEY = 88
VERSIONS = range(1)
CACHES_REQUESTS = True

TIMEOUT_NOT_GIVEN = -1


def handle_request(
    request: StreamsGroupHeartbeatRequest, context: RequestContext[StreamsGroupHeartbeatResponse]
) -> StreamsGroupHeartbeatResponse | EncodedResponse:
    try:
        if not context.services.features.has_streams_protocol():
            raise Refused(Code.UNSUPPORTED_VERSION)
        command = _to_checked_command(request, context)
        answer = context.services.coordinators.groups.streams.handle_heartbeat(command)
    except Refused as refused:
        return _refuse_with_message(context, refused)
    problems = create_internal_topics(context.services.topics, answer.topics_to_create)
    return encode_streams_answer(
        context.response_type, _add_creation_problems_to_status(answer, problems)
    )


def build_error_response(
    request: StreamsGroupHeartbeatRequest,
    context: RequestContext[StreamsGroupHeartbeatResponse],
    code: Code,
) -> StreamsGroupHeartbeatResponse:
    return _refuse_with_message(context, Refused(code))


def _refuse_with_message(
    context: RequestContext[StreamsGroupHeartbeatResponse], refusal: Refused
) -> StreamsGroupHeartbeatResponse:
    code, message = translate_coordinator_refusal(refusal)
    refused: StreamsGroupHeartbeatResponse = build_streams_response(
        context.response_type, error_code=code, error_message=message
    )
    return refused


# Requests


def _to_checked_command(
    request: StreamsGroupHeartbeatRequest, context: RequestContext
) -> StreamsHeartbeat:
    """Check a request and convert it to a command.

    Raises Refused: INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY.
    """
    topology = None if request.topology is None else to_topology(request.topology)
    _check_request(request)
    if request.topology is not None:
        refuse_changelog_partition_counts(request.topology)
    timeout_ms = to_ms(request.rebalance_timeout)
    endpoint, tags = request.user_endpoint, request.client_tags
    return StreamsHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        client_id=context.client_id,
        client_host=f"/{context.client_host}",
        endpoint_epoch=request.endpoint_information_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=None if timeout_ms == TIMEOUT_NOT_GIVEN else timeout_ms,
        topology=topology,
        owned=_to_owned_tasks(request),
        process_id=request.process_id,
        endpoint=None if endpoint is None else (endpoint.host, int(endpoint.port)),
        client_tags=None
        if tags is None
        else tuple(sorted({tag.key: tag.value for tag in tags}.items())),
        task_offsets=_to_offsets(request.task_offsets),
        task_end_offsets=_to_offsets(request.task_end_offsets),
        shutdown_application=request.shutdown_application,
    )


def _check_request(request: StreamsGroupHeartbeatRequest) -> None:
    """Raise Refused (INVALID_REQUEST) if fields of a heartbeat contradict each other or its epoch.

    Source: GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid.
    """
    epoch = request.member_epoch
    tasks = request.active_tasks, request.standby_tasks, request.warmup_tasks
    _require_valid(bool(request.member_id.strip()), "MemberId can't be empty.")
    _require_valid(bool(request.group_id.strip()), "GroupId can't be empty.")
    for name, text in (("InstanceId", request.instance_id), ("RackId", request.rack_id)):
        _require_valid(text is None or bool(text.strip()), f"{name} can't be empty.")
    if epoch == JOINING_EPOCH:
        _require_valid(
            to_ms(request.rebalance_timeout) != TIMEOUT_NOT_GIVEN,
            "RebalanceTimeoutMs must be provided in first request.",
        )
        for name, role in zip(("Active", "Standby", "Warmup"), tasks, strict=True):
            _require_valid(role == (), f"{name}Tasks must be empty when (re-)joining.")
        _require_valid(request.topology is not None, "Topology must be non-null when (re-)joining.")
    elif epoch == AWAY_EPOCH:
        _require_valid(request.instance_id is not None, "InstanceId can't be null.")
    else:
        _require_valid(
            epoch > AWAY_EPOCH,
            f"MemberEpoch is {epoch}, but must be greater than or equal to -2.",
        )
    _require_valid(
        all(role is None for role in tasks) or None not in tasks,
        "If one task-type is non-null, all must be non-null.",
    )
    _require_valid(
        epoch == JOINING_EPOCH or request.topology is None,
        "Topology can only be provided when (re-)joining.",
    )


def _require_valid(is_valid: bool, message: str) -> None:
    if not is_valid:
        raise Refused(Code.INVALID_REQUEST, message)


def _to_owned_tasks(request: StreamsGroupHeartbeatRequest) -> TaskRoles | None:
    if request.active_tasks is None:
        return None
    return TaskRoles(
        *map(_to_tasks, (request.active_tasks, request.standby_tasks, request.warmup_tasks))
    )


def _to_tasks(ids: Iterable[TaskIds] | None) -> TaskSet:
    return frozenset(
        (each.subtopology_id, index) for each in ids or () for index in each.partitions
    )


def _to_offsets(offsets: Iterable[TaskOffset] | None) -> Mapping[TaskId, int] | None:
    """Return offsets by task; raise Refused (INVALID_REQUEST) for a task that is named twice."""
    if offsets is None:
        return None
    found: dict[TaskId, int] = {}
    for each in offsets:
        task = each.subtopology_id, int(each.partition)
        _require_valid(
            task not in found,
            f"Task offsets contain a duplicate entry for subtopology {each.subtopology_id} and "
            f"partition {each.partition}.",
        )
        found[task] = each.offset
    return found


# Responses


def _add_creation_problems_to_status(
    answer: StreamsHeartbeatAnswer, problems: Mapping[str, str]
) -> StreamsHeartbeatAnswer:
    """Return the answer with what kept missing topics from being created in its status."""
    if not problems:
        return answer
    listed = ", ".join(f"{name} ({reason})" for name, reason in problems.items())
    logger.warning("internal topics can't be created: %s", listed)
    statuses = tuple(
        StreamsStatus(status.code, f"{status.detail}; Creation failed: {listed}.")
        if status.code is StreamsStatusCode.MISSING_INTERNAL_TOPICS
        else status
        for status in answer.statuses
    )
    return answer._replace(statuses=statuses)
