"""Handle ConsumerGroupHeartbeat, through which members of consumer groups join, stay and leave.

Behaviour: epoch 0 joins, -1 leaves, -2 leaves for a while (static members only); any other is the
member epoch that the broker gave the member last. Fields that a member leaves out haven't changed.
A refusal carries Kafka's message (KIP-848).
Versions: 0; 1 the subscription by regular expression, and a member id that the member makes up
itself. In version 0 the broker makes one for a member that joins without.
Simplifications: no authorization.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coordinator.api.context import RequestContext
from coordinator.api.coordinator_codes import translate_coordinator_refusal
from coordinator.errors import Code, Refused
from coordinator.groups.consumer.heartbeat import ConsumerHeartbeat, ConsumerHeartbeatAnswer
from coordinator.groups.consumer.state import AWAY_EPOCH, JOINING_EPOCH, LEFT_EPOCH
from coordinator.log.data_directory import uuid_to_base64
from coordinator.wire.codec import EncodedResponse, build_entity, encode_for_reuse, to_ms

if TYPE_CHECKING:
    from kio.schema.consumer_group_heartbeat.v1.request import (
        ConsumerGroupHeartbeatRequest,
        TopicPartitions,
    )
    from kio.schema.consumer_group_heartbeat.v1.response import ConsumerGroupHeartbeatResponse

API_KEY = 68
VERSIONS = range(2)
CACHES_REQUESTS = True

TIMEOUT_NOT_GIVEN = -1


def handle_request(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext[ConsumerGroupHeartbeatResponse]
) -> ConsumerGroupHeartbeatResponse | EncodedResponse:
    try:
        if not context.services.features.has_consumer_protocol():
            raise Refused(Code.UNSUPPORTED_VERSION)
        coordinators = context.services.coordinators
        command = _to_checked_command(request, context, coordinators.consumer_config.assignors)
        answer = coordinators.groups.consumer.handle_heartbeat(command)
    except Refused as refused:
        return _refuse_with_message(context, refused)
    return _build_response(context, answer)


def build_error_response(
    request: ConsumerGroupHeartbeatRequest,
    context: RequestContext[ConsumerGroupHeartbeatResponse],
    code: Code,
) -> ConsumerGroupHeartbeatResponse:
    return _refuse_with_message(context, Refused(code))


def _refuse_with_message(
    context: RequestContext[ConsumerGroupHeartbeatResponse], refusal: Refused
) -> ConsumerGroupHeartbeatResponse:
    code, message = translate_coordinator_refusal(refusal)
    return context.build_response(
        error_code=code,
        error_message=message,
        member_id=None,
        member_epoch=0,
        heartbeat_interval=0,
        assignment=None,
    )


def _build_response(
    context: RequestContext[ConsumerGroupHeartbeatResponse], answer: ConsumerHeartbeatAnswer
) -> ConsumerGroupHeartbeatResponse | EncodedResponse:
    arguments = context.response_type, answer.member_id, answer.epoch, answer.heartbeat_interval_ms
    if answer.assigned is None:
        return _encode_answer_without_assignment(*arguments)
    assigned = [
        {"topic_id": topic_id, "partitions": sorted(epochs)}
        for topic_id, epochs in answer.assigned.items()
    ]
    response: ConsumerGroupHeartbeatResponse = _build_success_response(
        *arguments, {"topic_partitions": assigned}
    )
    return response


def _build_success_response(
    response_type: type, member_id: str, epoch: int, interval_ms: int, assignment: Any
) -> Any:
    return build_entity(
        response_type,
        {
            "error_code": Code.NONE,
            "error_message": None,
            "member_id": member_id,
            "member_epoch": epoch,
            "heartbeat_interval": interval_ms,
            "assignment": assignment,
        },
    )


@lru_cache(4_096)  # most responses to a member equal the one before
def _encode_answer_without_assignment(
    response_type: type, member_id: str, epoch: int, interval_ms: int
) -> EncodedResponse:
    return encode_for_reuse(
        _build_success_response(response_type, member_id, epoch, interval_ms, None)
    )


def _to_checked_command(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext, assignors: tuple[str, ...]
) -> ConsumerHeartbeat:
    """Check a request and convert it to a command. Raises Refused as `_check_request` does."""
    client = context.client_id, context.client_host
    if (
        request.member_epoch > JOINING_EPOCH
        and request.topic_partitions is None
        and request.subscribed_topic_names is None
    ):
        return _to_cached_command(request, context.version, assignors, *client)
    _check_request(request, context.version, assignors)
    new_id = None if request.member_id else context.services.coordinators.new_id()
    return _to_command(request, *client, new_id)


@lru_cache(4_096)  # most requests of a member equal the one before
def _to_cached_command(
    request: ConsumerGroupHeartbeatRequest,
    version: int,
    assignors: tuple[str, ...],
    client_id: str,
    client_host: str,
) -> ConsumerHeartbeat:
    _check_request(request, version, assignors)
    return _to_command(request, client_id, client_host, None)


def _check_request(
    request: ConsumerGroupHeartbeatRequest, version: int, assignors: tuple[str, ...]
) -> None:
    """Raise Refused if the fields of a heartbeat contradict each other or its epoch.

    INVALID_REQUEST, or UNSUPPORTED_ASSIGNOR. Source:
    GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid.
    """
    epoch = request.member_epoch
    if version >= 1 or epoch > JOINING_EPOCH or epoch == LEFT_EPOCH:
        _require_valid(bool(request.member_id.strip()), "MemberId can't be empty.")
    _require_valid(bool(request.group_id.strip()), "GroupId can't be empty.")
    if request.instance_id is not None:
        _require_valid(bool(request.instance_id.strip()), "InstanceId can't be empty.")
    if request.rack_id is not None:
        _require_valid(bool(request.rack_id.strip()), "RackId can't be empty.")
    if epoch == JOINING_EPOCH:
        _require_valid(
            to_ms(request.rebalance_timeout) != TIMEOUT_NOT_GIVEN,
            "RebalanceTimeoutMs must be provided in first request.",
        )
        _require_valid(
            request.topic_partitions == (), "TopicPartitions must be empty when (re-)joining."
        )
        _require_valid(
            request.subscribed_topic_names is not None or _subscribed_regex(request) is not None,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        )
    elif epoch == AWAY_EPOCH:
        _require_valid(request.instance_id is not None, "InstanceId can't be null.")
    else:
        _require_valid(epoch > AWAY_EPOCH, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise Refused(
            Code.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )


def _require_valid(is_valid: bool, message: str) -> None:
    if not is_valid:
        raise Refused(Code.INVALID_REQUEST, message)


def _subscribed_regex(request: ConsumerGroupHeartbeatRequest) -> str | None:
    regex: str | None = getattr(request, "subscribed_topic_regex", None)
    return regex


def _to_command(
    request: ConsumerGroupHeartbeatRequest, client_id: str, client_host: str, new_id: UUID | None
) -> ConsumerHeartbeat:
    """Convert a request to a command; `new_id`: that of a member that joins without one."""
    names = request.subscribed_topic_names
    timeout_ms = to_ms(request.rebalance_timeout)
    owned = request.topic_partitions
    return ConsumerHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id if new_id is None else uuid_to_base64(new_id),
        has_generated_id=new_id is not None,
        epoch=request.member_epoch,
        client_id=client_id,
        client_host=f"/{client_host}",
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=None if timeout_ms == TIMEOUT_NOT_GIVEN else timeout_ms,
        topics=None if names is None else frozenset(names),
        regex=_subscribed_regex(request),
        assignor=request.server_assignor,
        owned=None if owned is None else _collect_owned_partitions(owned),
    )


def _collect_owned_partitions(topics: Iterable[TopicPartitions]) -> dict[UUID, frozenset[int]]:
    owned: dict[UUID, frozenset[int]] = {}
    for topic in topics:
        topic_id = topic.topic_id or UUID(int=0)
        owned[topic_id] = owned.get(topic_id, frozenset()) | frozenset(topic.partitions)
    return owned
