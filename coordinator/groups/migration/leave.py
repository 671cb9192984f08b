"""Decide LeaveGroup in a consumer group, by classic members or an administrator."""

from __future__ import annotations

from coordinator.errors import Code, Refused
from coordinator.groups.classic.leave import LeaveGroup, Leaving
from coordinator.groups.consumer.heartbeat import member_named
from coordinator.groups.consumer.state import ConsumerGroup, Member


def leaving(group: ConsumerGroup, command: LeaveGroup) -> tuple[list[Member], list[Code]]:
    """Return the members that leave, of either protocol, and a code for each that is named.

    The codes are in the order of the request.
    """
    leaving_members: dict[str, Member] = {}
    codes = []
    for named_member in command.members:
        try:
            member = _named(group, named_member)
        except Refused as refused:
            codes.append(refused.code)
        else:
            leaving_members[member.member_id] = member
            codes.append(Code.NONE)
    return list(leaving_members.values()), codes


def _named(group: ConsumerGroup, named: Leaving) -> Member:
    """Return the member that a LeaveGroup names; an instance id alone is enough."""
    if named.instance_id is not None and not named.member_id:
        static_member = group.static_member(named.instance_id)
        if static_member is not None:
            return static_member
    return member_named(group, named.member_id, named.instance_id)
