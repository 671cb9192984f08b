"""LeaveGroup for a consumer group: classic members, and those that an administrator takes out."""

from __future__ import annotations

from coordinator.errors import Code, Refused
from coordinator.groups.classic.leave import LeaveGroup, Leaving
from coordinator.groups.consumer.heartbeat import member_named
from coordinator.groups.consumer.state import ConsumerGroup, Member


def leaving(group: ConsumerGroup, command: LeaveGroup) -> tuple[list[Member], list[Code]]:
    """Who goes, of either protocol, and a code for each that is named, in their order."""
    going: dict[str, Member] = {}
    codes = []
    for named in command.members:
        try:
            member = _named(group, named)
        except Refused as refused:
            codes.append(refused.code)
        else:
            going[member.member_id] = member
            codes.append(Code.NONE)
    return list(going.values()), codes


def _named(group: ConsumerGroup, named: Leaving) -> Member:
    """An instance id alone names the member that has it, as administrators do."""
    if named.instance_id is not None and not named.member_id:
        found = group.static_member(named.instance_id)
        if found is not None:
            return found
    return member_named(group, named.member_id, named.instance_id)
