"""Describe a streams group as its coordinator knows it (StreamsGroupDescribe, KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from streams.common.addresses import format_address
from streams.membership.connection import (
    BrokerConnection,
    OpenConnection,
    build_entity,
    find_coordinator,
    load_request_classes,
)
from streams.membership.group_description import check_described
from streams.membership.streams.task_roles import TasksByRole, name_tasks

STREAMS_GROUP_DESCRIBE_API_KEY = 89


class StreamsMemberDescription(NamedTuple):
    """Holds what a group knows of one member: who it is, its tasks, and those it is to have."""

    member_id: str
    epoch: int
    process_id: str
    client_host: str
    endpoint: str
    tags: Mapping[str, str]
    assigned: TasksByRole
    target: TasksByRole


class StreamsGroupDescription(NamedTuple):
    """Holds the state of a streams group, its epochs and its members.

    `sources` are the topics that each sub-topology reads, `changelogs` those it writes, by the
    number of the sub-topology.
    """

    state: str
    epoch: int
    assignment_epoch: int
    members: tuple[StreamsMemberDescription, ...]
    sources: Mapping[int, frozenset[str]]
    changelogs: Mapping[int, frozenset[str]]


def fetch_streams_group(
    open_connection: OpenConnection, group_id: str
) -> StreamsGroupDescription | None:
    """Fetch the description of a group over new connections; None if there is no streams group.

    Raises: ConnectionLost where the coordinator does not answer, AuthorizationError, StreamsError
    for another refusal.
    """
    with closing(open_connection(None)) as bootstrap:
        if STREAMS_GROUP_DESCRIBE_API_KEY not in bootstrap.api_versions:
            return None
        address = find_coordinator(bootstrap, group_id)
    with closing(open_connection(address)) as connection:
        return describe_streams_group(connection, group_id)


def describe_streams_group(
    connection: BrokerConnection, group_id: str
) -> StreamsGroupDescription | None:
    """Ask a group's coordinator for the group's description; None if there is no streams group.

    Raises as `fetch_streams_group`.
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
    check_described(group.error_code, group_id)
    subtopologies = () if group.topology is None else group.topology.subtopologies or ()
    return StreamsGroupDescription(
        group.group_state,
        int(group.group_epoch),
        int(group.assignment_epoch),
        tuple(_read_member(each) for each in group.members),
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
    )


def _read_member(member: Any) -> StreamsMemberDescription:
    """Convert a member of a group."""
    endpoint = member.user_endpoint
    return StreamsMemberDescription(
        member.member_id,
        int(member.member_epoch),
        member.process_id,
        member.client_host,
        "" if endpoint is None else format_address((endpoint.host, int(endpoint.port))),
        {tag.key: tag.value for tag in member.client_tags},
        _read_roles(member.assignment),
        _read_roles(member.target_assignment),
    )


def _read_roles(assignment: Any) -> TasksByRole:
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
