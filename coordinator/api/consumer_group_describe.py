"""Handle ConsumerGroupDescribe, which describes groups of the consumer protocol (KIP-848).

Behaviour: describes each requested group; GROUP_ID_NOT_FOUND for one that doesn't exist, or isn't
of this kind. A member's assignment includes the partitions that it is still to revoke. Topics that
have been deleted aren't shown.
Versions: 0; 1 whether a member speaks the classic or the consumer protocol.
Simplifications: no authorization: every operation is allowed, and listed if the request asks so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from coordinator.api.context import RequestContext
from coordinator.api.coordinator_codes import translate_coordinator_code
from coordinator.api.describe_groups import GROUP_OPERATIONS
from coordinator.errors import Code, Refused
from coordinator.groups.consumer.describe import (
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedTopic,
)

if TYPE_CHECKING:
    from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
    from kio.schema.consumer_group_describe.v1.response import ConsumerGroupDescribeResponse

API_KEY = 69
VERSIONS = range(2)

_CLASSIC, _CONSUMER = 0, 1
_OPERATIONS_NOT_REQUESTED = -(2**31)


def handle_request(
    request: ConsumerGroupDescribeRequest, context: RequestContext[ConsumerGroupDescribeResponse]
) -> ConsumerGroupDescribeResponse:
    if not context.services.features.has_consumer_protocol():
        return build_error_response(request, context, Code.UNSUPPORTED_VERSION)
    operations = (
        GROUP_OPERATIONS if request.include_authorized_operations else _OPERATIONS_NOT_REQUESTED
    )
    return context.build_response(
        groups=[
            _describe_or_refuse_group(group_id, context, operations)
            for group_id in request.group_ids
        ]
    )


def build_error_response(
    request: ConsumerGroupDescribeRequest,
    context: RequestContext[ConsumerGroupDescribeResponse],
    code: Code,
) -> ConsumerGroupDescribeResponse:
    """Return a response with `code` for every group."""
    return context.build_response(
        groups=[_build_refused_group(group_id, Refused(code)) for group_id in request.group_ids]
    )


def _describe_or_refuse_group(
    group_id: str, context: RequestContext, operations: int
) -> dict[str, Any]:
    try:
        if not group_id:
            raise Refused(Code.INVALID_GROUP_ID)
        found = context.services.coordinators.groups.consumer.describe_group(group_id)
    except Refused as refused:
        return _build_refused_group(group_id, refused)
    return _describe_group(group_id, found, operations)


def _describe_group(
    group_id: str, described: DescribedConsumerGroup, operations: int
) -> dict[str, Any]:
    return {
        "error_code": Code.NONE,
        "error_message": None,
        "group_id": group_id,
        "group_state": described.phase,
        "group_epoch": described.epoch,
        "assignment_epoch": described.target_epoch,
        "assignor_name": described.assignor,
        "members": [_describe_member(each) for each in described.members],
        "authorized_operations": operations,
    }


def _describe_member(described: DescribedConsumer) -> dict[str, Any]:
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
        "assignment": _describe_assignment(described.assignment),
        "target_assignment": _describe_assignment(described.target),
        "member_type": _CONSUMER if member.classic is None else _CLASSIC,
    }


def _describe_assignment(topics: Sequence[DescribedTopic]) -> dict[str, Any]:
    return {
        "topic_partitions": [
            {"topic_id": topic.topic_id, "topic_name": topic.name, "partitions": topic.partitions}
            for topic in topics
        ]
    }


def _build_refused_group(group_id: str, refused: Refused) -> dict[str, Any]:
    """Build the result of a group that can't be described: an error code without members."""
    message = refused.message if refused.code is Code.GROUP_ID_NOT_FOUND else None
    return {
        "error_code": translate_coordinator_code(refused.code),
        "error_message": message,
        "group_id": group_id,
        "group_state": "",
        "group_epoch": 0,
        "assignment_epoch": 0,
        "assignor_name": "",
        "members": (),
        "authorized_operations": _OPERATIONS_NOT_REQUESTED,
    }
