"""Say which members of a group are not of this application, such as a plain consumer.

A coordinator refuses a member that has no protocol in common with the others
(INCONSISTENT_GROUP_PROTOCOL), and does not say who these are. Consumers of KIP-848 it lets in, and
the leader finds that it can't read their subscriptions.
"""

from __future__ import annotations

from streams.common.counted import format_count
from streams.errors import StreamsError
from streams.membership.connection import BrokerConnection, ConnectionLost
from streams.membership.group_description import describe_group
from streams.membership.streams.group_description import describe_streams_group

_NAMED_MEMBERS_MAX = 3


def explain_foreign_members(group_id: str, finding: str) -> str:
    """Return the message for a group with members of others; `finding` tells how they are known."""
    return (
        f"group {group_id!r} has members that are not of this application ({finding}): "
        "stop them, or choose another application id"
    )


def describe_foreign_members(connection: BrokerConnection, group_id: str) -> str:
    """Return who the members of a group are and what they speak, as its coordinator tells.

    Returns an empty text where that can't be asked, as without the right to describe the group.
    """
    try:
        group = describe_group(connection, group_id)
        if group is None:
            return _describe_streams_members(connection, group_id)
    except (ConnectionLost, StreamsError):
        return ""
    if not group.members:
        return ""
    members = ", ".join(
        f"{each.member_id} at {each.client_host.removeprefix('/')}"
        for each in group.members[:_NAMED_MEMBERS_MAX]
    )
    if len(group.members) > _NAMED_MEMBERS_MAX:
        members += f" and {len(group.members) - _NAMED_MEMBERS_MAX} more"
    protocol = f" with protocol {group.protocol!r}" if group.protocol else ""
    return (
        f"{members}, which speak {group.protocol_type!r}{protocol}; one that was killed is a "
        "member until its session time-out is over"
    )


def _describe_streams_members(connection: BrokerConnection, group_id: str) -> str:
    """Count the members of a streams group in words; empty if it is none or has none."""
    group = describe_streams_group(connection, group_id)
    if group is None or not group.members:
        return ""
    return (
        f"{format_count(len(group.members), 'member')} of the streams protocol; if they are of "
        "this application, set group_protocol='streams' or 'auto', or end all workers before the "
        "protocol changes (docs/upgrading.md)"
    )
