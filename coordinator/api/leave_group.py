"""Handles LeaveGroup, with which members leave their group at once.

Behaviour: members leave at once, which starts a rebalance; static ones may be named by their
instance id alone (an empty member id). Members of a consumer group (KIP-848) can be removed, too.
Versions: v3 several members in a request, with a code each (KIP-345); v4 flexible; v5 a reason.
Simplifications: none.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.api.coordinator_codes import coordinator_code
from coordinator.errors import Code
from coordinator.groups.classic.leave import LeaveGroup, Leaving

API_KEY = 13
VERSIONS = range(6)


def handle(request: Any, context: Context) -> Any:
    if context.version >= 3:
        leaving = [
            Leaving(member.member_id, member.group_instance_id) for member in request.members
        ]
    else:
        leaving = [Leaving(request.member_id, None)]
    codes = context.broker.coordinators.groups.classic_protocol.leave(
        LeaveGroup(request.group_id, leaving)
    )
    if context.version < 3:
        return context.reply(error_code=codes[0])
    return context.reply(
        members=[
            {
                "member_id": member.member_id,
                "group_instance_id": member.instance_id,
                "error_code": code,
            }
            for member, code in zip(leaving, codes, strict=True)
        ]
    )


def refuse(request: Any, context: Context, code: Code) -> Any:
    return context.reply(error_code=coordinator_code(code), members=[])
