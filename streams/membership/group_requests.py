"""Send the requests of the classic group protocol that a member sends within its generation.

`ClassicProtocolMember` and its `HeartbeatThread` decide when they are sent; each function here
sends one and returns the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kio.schema.errors import ErrorCode

from streams.errors import GenerationOver, StreamsError
from streams.membership.authorization import check_authorized
from streams.membership.connection import (
    BrokerConnection,
    ConnectionLost,
    build_entity,
    load_request_classes,
)
from streams.membership.group_member import Membership
from streams.membership.group_offsets import COORDINATOR_UNAVAILABLE_ERRORS, MEMBERSHIP_LOST_ERRORS

_HEARTBEAT_API_KEY, _SYNC_GROUP_API_KEY = 12, 14


def send_heartbeat(
    connection: BrokerConnection, group_id: str, instance_id: str, membership: Membership
) -> ErrorCode:
    """Send a heartbeat and return the error code of its answer.

    NONE does not prove membership: a coordinator that is still loading the group answers NONE to
    anybody (GroupCoordinatorService.heartbeat).
    """
    request = build_entity(
        load_request_classes(connection, _HEARTBEAT_API_KEY, 4)["HeartbeatRequest"],
        group_id=group_id,
        generation_id=membership.generation,
        member_id=membership.member_id,
        group_instance_id=instance_id,
    )
    code: ErrorCode = connection.send_request(request).error_code
    return code


def send_sync_group(
    connection: BrokerConnection,
    group_id: str,
    instance_id: str,
    membership: Membership,
    assignments: dict[str, bytes],
    *,
    timeout_s: float | None = None,
    is_given_up: Callable[[], bool] = lambda: False,
) -> Any:
    """Send SyncGroup with the leader's `assignments` by member id, and return its answer."""
    classes = load_request_classes(connection, _SYNC_GROUP_API_KEY, 5)
    entity = classes["SyncGroupRequestAssignment"]
    request = build_entity(
        classes["SyncGroupRequest"],
        group_id=group_id,
        generation_id=membership.generation,
        member_id=membership.member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocol_name="stream",
        assignments=tuple(
            build_entity(entity, member_id=member_id, assignment=assigned)
            for member_id, assigned in assignments.items()
        ),
    )
    return connection.send_request(request, timeout_s=timeout_s, is_given_up=is_given_up)


def is_membership_confirmed(
    connection: BrokerConnection, group_id: str, instance_id: str, membership: Membership
) -> bool:
    """Return whether the coordinator still has this member in its generation.

    SyncGroup is what proves it: a stable group answers it at once with the assignment that the
    member has, and a coordinator that is loading the group refuses it. During a rebalance, and on
    brokers before 4.0 while the group is loaded, it is answered with REBALANCE_IN_PROGRESS; a
    heartbeat tells the two apart, since only a coordinator that knows the member repeats that.

    Raises GenerationOver for ILLEGAL_GENERATION: the group has left the member's generation. Raises
    ConnectionLost where it can't be known now: COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, or no answer. Raises StreamsError for any other
    refusal, such as AuthorizationError for GROUP_AUTHORIZATION_FAILED.
    """
    code: ErrorCode = send_sync_group(connection, group_id, instance_id, membership, {}).error_code
    if code is ErrorCode.none:
        return True
    if code is ErrorCode.rebalance_in_progress:
        code = send_heartbeat(connection, group_id, instance_id, membership)
        if code is ErrorCode.rebalance_in_progress:
            return True
        if code is ErrorCode.none:
            raise ConnectionLost(f"group {group_id!r} is being loaded by its coordinator")
    if code is ErrorCode.illegal_generation:
        raise GenerationOver(f"group {group_id!r} has left generation {membership.generation}")
    if code in MEMBERSHIP_LOST_ERRORS:
        return False
    check_authorized(code, "Read", group_id)
    if code in COORDINATOR_UNAVAILABLE_ERRORS:
        raise ConnectionLost(f"membership of group {group_id!r} is unknown: {code.name}")
    raise StreamsError(
        f"group {group_id!r} refused to confirm member {instance_id!r}: {code.name} ({code.value})"
    )
