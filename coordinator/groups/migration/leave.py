"""Decide LeaveGroup in a consumer group, by classic members or an administrator."""

from __future__ import annotations

from typing import NamedTuple

from coordinator.errors import Code, Refused
from coordinator.groups.classic.leave import LeaveGroup, LeavingMember
from coordinator.groups.consumer.heartbeat import require_member
from coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroupMember


class SelectedLeavers(NamedTuple):
    """Represents the members that a LeaveGroup removes, and its answer."""

    members: list[ConsumerGroupMember]
    codes: list[Code]  # one for each requested member, in the order of the request


def select_leaving_members(group: ConsumerGroup, command: LeaveGroup) -> SelectedLeavers:
    """Select the members that leave, of either protocol, and a code for each requested one."""
    leaving_members: dict[str, ConsumerGroupMember] = {}
    codes = []
    for named_member in command.members:
        try:
            member = _find_leaving_member(group, named_member)
        except Refused as refused:
            codes.append(refused.code)
        else:
            leaving_members[member.member_id] = member
            codes.append(Code.NONE)
    return SelectedLeavers(list(leaving_members.values()), codes)


def _find_leaving_member(
    group: ConsumerGroup, leaving_member: LeavingMember
) -> ConsumerGroupMember:
    """Return the member that a LeaveGroup names; an instance id alone is enough."""
    if leaving_member.instance_id is not None and not leaving_member.member_id:
        static_member = group.find_static_member(leaving_member.instance_id)
        if static_member is not None:
            return static_member
    return require_member(group, leaving_member.member_id, leaving_member.instance_id)
