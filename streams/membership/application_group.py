"""Describe the group of an application, whichever of the two protocols its members speak.

Groups of the classic protocol tell what members have said and were assigned (DescribeGroups), those
of the streams protocol what the broker knows and has assigned (StreamsGroupDescribe).
"""

from __future__ import annotations

from contextlib import closing

from streams.membership.connection import OpenConnection, find_coordinator
from streams.membership.group_description import (
    GroupDescription,
    MemberDescription,
    describe_group,
)
from streams.membership.streams.group_description import (
    STREAMS_GROUP_DESCRIBE_API_KEY,
    describe_streams_group,
)

STREAMS = "streams"
"""The protocol of groups to whose members the broker assigns tasks."""


def fetch_group_description(
    open_connection: OpenConnection, group_id: str
) -> GroupDescription | None:
    """Fetch the description of a group over new connections; None if there is none of the two.

    Raises: ConnectionLost where the coordinator does not answer, AuthorizationError, StreamsError
    for another refusal.
    """
    with closing(open_connection(None)) as bootstrap:
        address = find_coordinator(bootstrap, group_id)
    with closing(open_connection(address)) as connection:
        described = describe_group(connection, group_id)
        if described is not None or STREAMS_GROUP_DESCRIBE_API_KEY not in connection.api_versions:
            return described
        group = describe_streams_group(connection, group_id)
    if group is None:
        return None
    return GroupDescription(
        group.state,
        STREAMS,
        STREAMS,
        tuple(
            MemberDescription(each.member_id, None, each.client_host, b"", b"")
            for each in group.members
        ),
        group,
    )
