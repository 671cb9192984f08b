"""Handle LeaveGroup, with which members leave their group at once.

Behaviour: members leave at once, which starts a rebalance; static ones may be named by their
instance id alone (an empty member id). Members of a consumer group (KIP-848) can be removed, too.
Versions: v3 several members in a request, with a code each (KIP-345); v4 flexible; v5 a reason.
Simplifications: none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.api.coordinator_codes import translate_coordinator_code
from coordinator.errors import Code
from coordinator.groups.classic.leave import LeaveGroup, LeavingMember

if TYPE_CHECKING:
    from kio.schema.leave_group.v5.request import LeaveGroupRequest
    from kio.schema.leave_group.v5.response import LeaveGroupResponse

API_KEY = 13
VERSIONS = range(6)


def handle_request(
    request: LeaveGroupRequest, context: RequestContext[LeaveGroupResponse]
) -> LeaveGroupResponse:
    if context.version >= 3:
        leaving = [
            LeavingMember(member.member_id, member.group_instance_id) for member in request.members
        ]
    else:
        leaving = [LeavingMember(request.member_id, None)]  # type: ignore[attr-defined]  # up to version 2
    codes = context.services.coordinators.groups.classic_protocol.handle_leave(
        LeaveGroup(request.group_id, leaving)
    )
    if context.version < 3:
        return context.build_response(error_code=codes[0])
    return context.build_response(
        members=[
            {
                "member_id": member.member_id,
                "group_instance_id": member.instance_id,
                "error_code": code,
            }
            for member, code in zip(leaving, codes, strict=True)
        ]
    )


def build_error_response(
    request: LeaveGroupRequest, context: RequestContext[LeaveGroupResponse], code: Code
) -> LeaveGroupResponse:
    return context.build_response(error_code=translate_coordinator_code(code), members=[])
