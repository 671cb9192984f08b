"""DescribeGroups.

Behaviour: exactly the groups that were asked for, each with its state and members.
Versions: v3 authorized operations (not computed: -2^31); v4 instance ids; v5 flexible; v6
GROUP_ID_NOT_FOUND (69) for a group that isn't, before that an entry in state Dead.
Simplifications: no authorization.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.errors import Code
from coordinator.groups.classic.state import Phase

API_KEY = 15
VERSIONS = range(7)


def handle(request: Any, context: Context) -> Any:
    return context.reply(groups=[_group(group_id, context) for group_id in request.groups])


def _group(group_id: str, context: Context) -> dict[str, Any]:
    found = context.broker.coordinators.groups.describe(group_id)
    if found is None:
        is_told = context.version >= 6
        return {
            "error_code": Code.GROUP_ID_NOT_FOUND if is_told else Code.NONE,
            "error_message": f"Group {group_id} not found." if is_told else None,
            "group_id": group_id,
            "group_state": Phase.DEAD.value,
            "protocol_type": "",
            "protocol_data": "",
            "members": [],
        }
    return {
        "error_code": Code.NONE,
        "group_id": group_id,
        "group_state": found.phase,
        "protocol_type": found.protocol_type,
        "protocol_data": found.protocol,
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "member_metadata": member.metadata,
                "member_assignment": member.assignment,
            }
            for member in found.members
        ],
    }
