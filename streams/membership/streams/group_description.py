"""Describe a streams group as its coordinator knows it (StreamsGroupDescribe, KIP-1071)."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from streams.common.addresses import format_address
from streams.membership.connection import (
    BrokerConnection,
    build_entity,
    load_request_classes,
)
from streams.membership.group_description import raise_for_describe_error
from streams.membership.streams.described_group import (
    StreamsGroupDescription,
    StreamsMemberDescription,
)
from streams.membership.streams.task_roles import TasksByRole, name_tasks
from streams.membership.streams.topology_differences import read_described_topology

STREAMS_GROUP_DESCRIBE_API_KEY = 89


def describe_streams_group(
    connection: BrokerConnection, group_id: str
) -> StreamsGroupDescription | None:
    """Ask a group's coordinator for the group's description; None if there is no streams group.

    Raises: ConnectionLost where it does not answer, AuthorizationError, StreamsError for another
    refusal.
    """
    classes = load_request_classes(connection, STREAMS_GROUP_DESCRIBE_API_KEY, 0)
    request = build_entity(
        classes["StreamsGroupDescribeRequest"],
        group_ids=(group_id,),
        include_authorized_operations=False,
    )
    (group,) = connection.send_request(request).groups
    if group.error_code in (ErrorCode.group_id_not_found, ErrorCode.unsupported_version):
        return None
    raise_for_describe_error(group.error_code, group_id)
    subtopologies = () if group.topology is None else group.topology.subtopologies or ()
    return StreamsGroupDescription(
        group.group_state,
        int(group.group_epoch),
        int(group.assignment_epoch),
        tuple(_to_member_description(each) for each in group.members),
        {
            int(each.subtopology_id): frozenset(
                (
                    *map(str, each.source_topics),
                    *(str(topic.name) for topic in each.repartition_source_topics),
                )
            )
            for each in subtopologies
            if each.subtopology_id.isdecimal()
        },
        {
            int(each.subtopology_id): frozenset(str(t.name) for t in each.state_changelog_topics)
            for each in subtopologies
            if each.subtopology_id.isdecimal()
        },
        read_described_topology(subtopologies),
    )


def describe_streams_member(
    connection: BrokerConnection, group_id: str, member_id: str
) -> StreamsMemberDescription | None:
    """Ask a group's coordinator for the description of one member; None if the group has it not.

    Raises as `describe_streams_group` does.
    """
    group = describe_streams_group(connection, group_id)
    members = () if group is None else group.members
    return next((each for each in members if each.member_id == member_id), None)


def _to_member_description(member: Any) -> StreamsMemberDescription:
    """Convert a member of a group."""
    endpoint = member.user_endpoint
    return StreamsMemberDescription(
        member.member_id,
        int(member.member_epoch),
        member.process_id,
        member.client_host,
        "" if endpoint is None else format_address((endpoint.host, int(endpoint.port))),
        {tag.key: tag.value for tag in member.client_tags},
        _to_tasks_by_role(member.assignment),
        _to_tasks_by_role(member.target_assignment),
    )


def _to_tasks_by_role(assignment: Any) -> TasksByRole:
    """Return the tasks of an assignment by their roles."""
    return TasksByRole(
        *(
            name_tasks((each.subtopology_id, each.partitions) for each in role)
            for role in (
                assignment.active_tasks,
                assignment.standby_tasks,
                assignment.warmup_tasks,
            )
        )
    )
