"""Describe a group of the classic protocol as its coordinator knows it (DescribeGroups).

The coordinator shows what members have said, and what they were assigned, while the group is
stable; in a rebalance only who they are. It does not tell the generation.
"""

from __future__ import annotations

from typing import NamedTuple

from kio.schema.errors import ErrorCode

from streams.errors import StreamsError
from streams.membership.authorization import check_authorized
from streams.membership.connection import (
    BrokerConnection,
    BrokerNotReady,
    build_entity,
    load_request_classes,
)
from streams.membership.group_offsets import COORDINATOR_UNAVAILABLE_ERRORS
from streams.membership.streams.described_group import StreamsGroupDescription

_DESCRIBE_GROUPS_API_KEY = 15
_DEAD = "Dead"
"""The state of a group that does not exist, in versions before GROUP_ID_NOT_FOUND (KIP-1043)."""


class MemberDescription(NamedTuple):
    """Holds who a member is, and the bytes of its subscription and its assignment, if known."""

    member_id: str
    instance_id: str | None
    client_host: str
    subscription: bytes
    assignment: bytes


class GroupDescription(NamedTuple):
    """Holds the state of a group, its protocol and its members.

    `streams` is what is known of a streams group besides; None for one of the classic protocol.
    """

    state: str
    protocol_type: str
    protocol: str
    members: tuple[MemberDescription, ...]
    streams: StreamsGroupDescription | None = None


def describe_group(connection: BrokerConnection, group_id: str) -> GroupDescription | None:
    """Ask a group's coordinator for the group's description; None if there is no classic group.

    Raises: ConnectionLost where it does not answer, AuthorizationError, StreamsError for another
    refusal.
    """
    classes = load_request_classes(connection, _DESCRIBE_GROUPS_API_KEY, 6)
    request = build_entity(
        classes["DescribeGroupsRequest"],
        groups=(group_id,),
        include_authorized_operations=False,
    )
    (group,) = connection.send_request(request).groups
    if group.error_code is ErrorCode.group_id_not_found or group.group_state == _DEAD:
        return None
    raise_for_describe_error(group.error_code, group_id)
    return GroupDescription(
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        tuple(
            MemberDescription(
                each.member_id,
                getattr(each, "group_instance_id", None),
                each.client_host,
                each.member_metadata,
                each.member_assignment,
            )
            for each in group.members
        ),
    )


def raise_for_describe_error(error_code: ErrorCode, group_id: str) -> None:
    """Raise the error for the code with which a coordinator refuses to describe a group.

    Raises: ConnectionLost where it is not available, AuthorizationError, StreamsError for another
    code.
    """
    check_authorized(error_code, "Describe", group_id)
    if error_code in COORDINATOR_UNAVAILABLE_ERRORS:
        raise BrokerNotReady(f"group {group_id!r} can't be described: {error_code.name}")
    if error_code is not ErrorCode.none:
        raise StreamsError(f"group {group_id!r} can't be described: {error_code.name}")
