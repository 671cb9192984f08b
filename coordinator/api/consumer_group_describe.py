"""Handles ConsumerGroupDescribe, which describes groups of the consumer protocol (KIP-848).

Behaviour: describes each requested group; GROUP_ID_NOT_FOUND for one that doesn't exist, or isn't
of this kind. A member's assignment includes the partitions that it is still to revoke. Topics that
have been deleted aren't shown.
Versions: 0; 1 whether a member speaks the classic or the consumer protocol.
Simplifications: no authorization: every operation is allowed, and listed if the request asks so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coordinator.api.context import Context
from coordinator.api.coordinator_codes import coordinator_code
from coordinator.api.describe_groups import GROUP_OPERATIONS
from coordinator.errors import Code, Refused
from coordinator.features import GROUP_VERSION
from coordinator.groups.consumer.describe import (
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedTopic,
)

API_KEY = 69
VERSIONS = range(2)

_CLASSIC, _CONSUMER = 0, 1
_NOT_ASKED = -(2**31)


def handle(request: Any, context: Context) -> Any:
    if context.broker.features.level(GROUP_VERSION) < 1:
        return refuse(request, context, Code.UNSUPPORTED_VERSION)
    operations = GROUP_OPERATIONS if request.include_authorized_operations else _NOT_ASKED
    return context.reply(
        groups=[_group(group_id, context, operations) for group_id in request.group_ids]
    )


def refuse(request: Any, context: Context, code: Code) -> Any:
    """Return a response with `code` for every group."""
    return context.reply(
        groups=[_unknown(group_id, Refused(code)) for group_id in request.group_ids]
    )


def _group(group_id: str, context: Context, operations: int) -> dict[str, Any]:
    try:
        if not group_id:
            raise Refused(Code.INVALID_GROUP_ID)
        found = context.broker.coordinators.groups.consumer.describe(group_id)
    except Refused as refused:
        return _unknown(group_id, refused)
    return _described(group_id, found, operations)


def _described(group_id: str, found: DescribedConsumerGroup, operations: int) -> dict[str, Any]:
    return {
        "error_code": Code.NONE,
        "error_message": None,
        "group_id": group_id,
        "group_state": found.phase,
        "group_epoch": found.epoch,
        "assignment_epoch": found.target_epoch,
        "assignor_name": found.assignor,
        "members": [_member(each) for each in found.members],
        "authorized_operations": operations,
    }


def _member(described: DescribedConsumer) -> dict[str, Any]:
    member = described.member
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "member_epoch": member.epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": sorted(member.topics),
        "subscribed_topic_regex": member.regex,
        "assignment": _assignment(described.assignment),
        "target_assignment": _assignment(described.target),
        "member_type": _CONSUMER if member.classic is None else _CLASSIC,
    }


def _assignment(topics: Sequence[DescribedTopic]) -> dict[str, Any]:
    return {
        "topic_partitions": [
            {"topic_id": topic.topic_id, "topic_name": topic.name, "partitions": topic.partitions}
            for topic in topics
        ]
    }


def _unknown(group_id: str, refused: Refused) -> dict[str, Any]:
    """Build the result of a group that has no content but the code."""
    message = refused.message if refused.code is Code.GROUP_ID_NOT_FOUND else None
    return {
        "error_code": coordinator_code(refused.code),
        "error_message": message,
        "group_id": group_id,
        "group_state": "",
        "group_epoch": 0,
        "assignment_epoch": 0,
        "assignor_name": "",
        "members": (),
        "authorized_operations": _NOT_ASKED,
    }
