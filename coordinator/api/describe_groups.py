"""Handle DescribeGroups, which describes classic groups and their members.

Behaviour: describes the requested groups, each with its state and members. A group of the consumer
protocol (KIP-848) isn't a classic group, and not found here: see ConsumerGroupDescribe.
Versions: v3 authorized operations, if requested; v4 instance ids; v5 flexible; v6
GROUP_ID_NOT_FOUND for a group that doesn't exist, before that an entry in state Dead.
Simplifications: without an authoriser every operation is allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code, Refused
from coordinator.groups.classic.state import ClassicGroupPhase

if TYPE_CHECKING:
    from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
    from kio.schema.describe_groups.v6.response import DescribeGroupsResponse

API_KEY = 15
VERSIONS = range(7)

# READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS, a bit each.
GROUP_OPERATIONS = 3_400


def handle_request(
    request: DescribeGroupsRequest, context: RequestContext[DescribeGroupsResponse]
) -> DescribeGroupsResponse:
    groups = [_describe_group(group_id, context) for group_id in request.groups]
    if getattr(request, "include_authorized_operations", False):
        for group in groups:
            if group["error_code"] == Code.NONE:
                group["authorized_operations"] = GROUP_OPERATIONS
    return context.build_response(groups=groups)


def build_error_response(
    request: DescribeGroupsRequest, context: RequestContext[DescribeGroupsResponse], code: Code
) -> DescribeGroupsResponse:
    """Return a response with `code` for every group."""
    return context.build_response(
        groups=[_build_refused_group(group_id, code, "", None) for group_id in request.groups]
    )


def _describe_group(group_id: str, context: RequestContext) -> dict[str, Any]:
    try:
        found = context.services.coordinators.groups.describe_classic_group(group_id)
    except Refused as refused:
        if refused.code is not Code.GROUP_ID_NOT_FOUND:  # its shard isn't available; others may be
            return _build_refused_group(group_id, refused.code, "", None)
        if context.version < 6:
            return _build_refused_group(group_id, Code.NONE, ClassicGroupPhase.DEAD.value, None)
        return _build_refused_group(
            group_id, refused.code, ClassicGroupPhase.DEAD.value, refused.message
        )
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


def _build_refused_group(
    group_id: str, code: Code, phase: str, message: str | None
) -> dict[str, Any]:
    """Build the result of a group that can't be described: an error code without members."""
    return {
        "error_code": code,
        "error_message": message,
        "group_id": group_id,
        "group_state": phase,
        "protocol_type": "",
        "protocol_data": "",
        "members": (),
    }
