"""Handle StreamsGroupDescribe, which describes groups of the streams protocol (KIP-1071).

Behaviour: describes each requested group; GROUP_ID_NOT_FOUND for one that doesn't exist, or isn't
of this kind. The topology is shown with the numbers of partitions that follow from its topics, once
these are there; as the application has sent it before. A member's assignment is without the tasks
that it is still to revoke.
Versions: 0.
Simplifications: no authorization: every operation is allowed, and listed if the request asks so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from coordinator.api.context import RequestContext
from coordinator.api.coordinator_codes import translate_coordinator_code
from coordinator.api.describe_groups import GROUP_OPERATIONS
from coordinator.api.streams_heartbeat_answer import describe_tasks
from coordinator.errors import Code, Refused
from coordinator.groups.streams.configure import ConfiguredSubtopology
from coordinator.groups.streams.describe import DescribedStreamsGroup, DescribedStreamsMember
from coordinator.groups.streams.tasks import AssignedTasks, TaskId, TaskRoles
from coordinator.groups.streams.topology import InternalTopic, StreamsSubtopology

if TYPE_CHECKING:
    from kio.schema.streams_group_describe.v0.request import StreamsGroupDescribeRequest
    from kio.schema.streams_group_describe.v0.response import StreamsGroupDescribeResponse

API_KEY = 89
VERSIONS = range(1)

_OPERATIONS_NOT_REQUESTED = -(2**31)


def handle_request(
    request: StreamsGroupDescribeRequest, context: RequestContext[StreamsGroupDescribeResponse]
) -> StreamsGroupDescribeResponse:
    if not context.services.features.has_streams_protocol():
        return build_error_response(request, context, Code.UNSUPPORTED_VERSION)
    operations = (
        GROUP_OPERATIONS if request.include_authorized_operations else _OPERATIONS_NOT_REQUESTED
    )
    return context.build_response(
        groups=[
            _describe_or_refuse_group(group_id, context, operations)
            for group_id in request.group_ids
        ]
    )


def build_error_response(
    request: StreamsGroupDescribeRequest,
    context: RequestContext[StreamsGroupDescribeResponse],
    code: Code,
) -> StreamsGroupDescribeResponse:
    """Return a response with `code` for every group."""
    return context.build_response(
        groups=[_build_refused_group(group_id, Refused(code)) for group_id in request.group_ids]
    )


def _describe_or_refuse_group(
    group_id: str, context: RequestContext, operations: int
) -> dict[str, Any]:
    try:
        if not group_id:
            raise Refused(Code.INVALID_GROUP_ID)
        found = context.services.coordinators.groups.streams.describe_group(group_id)
    except Refused as refused:
        return _build_refused_group(group_id, refused)
    return _describe_group(group_id, found, operations)


def _describe_group(
    group_id: str, described: DescribedStreamsGroup, operations: int
) -> dict[str, Any]:
    return {
        "error_code": Code.NONE,
        "error_message": None,
        "group_id": group_id,
        "group_state": described.phase,
        "group_epoch": described.epoch,
        "assignment_epoch": described.target_epoch,
        "topology": {
            "epoch": described.topology_epoch,
            "subtopologies": [
                _describe_subtopology(subtopology_id, subtopology)
                for subtopology_id, subtopology in described.subtopologies.items()
            ],
        },
        "members": [_describe_member(each) for each in described.members],
        "authorized_operations": operations,
    }


def _describe_subtopology(
    subtopology_id: str, subtopology: StreamsSubtopology | ConfiguredSubtopology
) -> dict[str, Any]:
    return {
        "subtopology_id": subtopology_id,
        "source_topics": sorted(subtopology.source_topics),
        "repartition_sink_topics": sorted(subtopology.repartition_sink_topics),
        "state_changelog_topics": _describe_internal_topics(subtopology.changelog_topics),
        "repartition_source_topics": _describe_internal_topics(
            subtopology.repartition_source_topics
        ),
    }


def _describe_internal_topics(topics: Iterable[InternalTopic]) -> list[dict[str, Any]]:
    return [
        {
            "name": topic.name,
            "partitions": topic.partition_count,
            "replication_factor": topic.replication_factor,
            "topic_configs": _describe_pairs(topic.configs),
        }
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _describe_member(described: DescribedStreamsMember) -> dict[str, Any]:
    member = described.member
    endpoint = member.endpoint
    return {
        "member_id": member.member_id,
        "member_epoch": member.epoch,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "topology_epoch": member.topology_epoch,
        "process_id": member.process_id,
        "user_endpoint": None if endpoint is None else {"host": endpoint[0], "port": endpoint[1]},
        "client_tags": _describe_pairs(member.client_tags),
        "task_offsets": _describe_offsets(described.task_offsets),
        "task_end_offsets": _describe_offsets(described.task_end_offsets),
        "assignment": _describe_roles(member.assigned),
        "target_assignment": _describe_roles(described.target),
        "is_classic": False,
    }


def _describe_roles(tasks: AssignedTasks | TaskRoles) -> dict[str, Any]:
    return {
        "active_tasks": describe_tasks(tasks.active),
        "standby_tasks": describe_tasks(tasks.standby),
        "warmup_tasks": describe_tasks(tasks.warmup),
    }


def _describe_offsets(offsets: Mapping[TaskId, int]) -> list[dict[str, Any]]:
    return [
        {"subtopology_id": subtopology_id, "partition": partition, "offset": offset}
        for (subtopology_id, partition), offset in sorted(offsets.items())
    ]


def _describe_pairs(pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in pairs]


def _build_refused_group(group_id: str, refused: Refused) -> dict[str, Any]:
    """Build the result of a group that can't be described: an error code without members."""
    message = refused.message if refused.code is Code.GROUP_ID_NOT_FOUND else None
    return {
        "error_code": translate_coordinator_code(refused.code),
        "error_message": message,
        "group_id": group_id,
        "group_state": "",
        "group_epoch": 0,
        "assignment_epoch": 0,
        "topology": None,
        "members": (),
        "authorized_operations": _OPERATIONS_NOT_REQUESTED,
    }
