"""Handles DescribeGroups, which describes classic groups and their members.

Behaviour: describes the requested groups, each with its state and members. A group of the consumer
protocol (KIP-848) isn't a classic group, and not found here: see ConsumerGroupDescribe.
Versions: v3 authorized operations, if requested; v4 instance ids; v5 flexible; v6
GROUP_ID_NOT_FOUND for a group that doesn't exist, before that an entry in state Dead.
Simplifications: without an authoriser every operation is allowed.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.errors import Code, Refused
from coordinator.groups.classic.state import Phase

API_KEY = 15
VERSIONS = range(7)

# READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS, a bit each.
GROUP_OPERATIONS = 3_400


def handle(request: Any, context: Context) -> Any:
    groups = [_group(group_id, context) for group_id in request.groups]
    if getattr(request, "include_authorized_operations", False):
        for group in groups:
            if group["error_code"] == Code.NONE:
                group["authorized_operations"] = GROUP_OPERATIONS
    return context.reply(groups=groups)


def refuse(request: Any, context: Context, code: Code) -> Any:
    """Return a response with `code` for every group."""
    return context.reply(groups=[_unknown(group_id, code, "", None) for group_id in request.groups])


def _group(group_id: str, context: Context) -> dict[str, Any]:
    try:
        found = context.broker.coordinators.groups.describe(group_id)
    except Refused as refused:
        if refused.code is not Code.GROUP_ID_NOT_FOUND:  # its shard isn't available; others may be
            return _unknown(group_id, refused.code, "", None)
        if context.version < 6:
            return _unknown(group_id, Code.NONE, Phase.DEAD.value, None)
        return _unknown(group_id, refused.code, Phase.DEAD.value, refused.message)
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


def _unknown(group_id: str, code: Code, phase: str, message: str | None) -> dict[str, Any]:
    """Build the result of a group that has no content but the code."""
    return {
        "error_code": code,
        "error_message": message,
        "group_id": group_id,
        "group_state": phase,
        "protocol_type": "",
        "protocol_data": "",
        "members": (),
    }
