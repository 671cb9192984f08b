"""Send the requests of the classic group protocol that a member sends within its generation.

`ClassicProtocolMember` decides when they are sent; each function here sends one and returns the
answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kio.schema.errors import ErrorCode

from streams.errors import StreamsError
from streams.membership.connection import Connection, ConnectionLost, build, schema
from streams.membership.offsets import AWAY, LOST
from streams.membership.terms import Membership

_HEARTBEAT, _SYNC = 12, 14


def send_heartbeat(
    connection: Connection, group: str, instance_id: str, current: Membership
) -> ErrorCode:
    """Send a heartbeat and return the error code of its answer.

    NONE does not prove membership: a coordinator that is still loading the group answers NONE to
    anybody (GroupCoordinatorService.heartbeat).
    """
    request = build(
        schema(connection, _HEARTBEAT, 4)["HeartbeatRequest"],
        group_id=group,
        generation_id=current.generation,
        member_id=current.member_id,
        group_instance_id=instance_id,
    )
    code: ErrorCode = connection.request(request).error_code
    return code


def send_sync(
    connection: Connection,
    group: str,
    instance_id: str,
    current: Membership,
    assignments: dict[str, bytes],
    *,
    timeout_s: float | None = None,
    given_up: Callable[[], bool] = lambda: False,
) -> Any:
    """Send SyncGroup with the leader's `assignments` by member id, and return its answer."""
    classes = schema(connection, _SYNC, 5)
    entity = classes["SyncGroupRequestAssignment"]
    request = build(
        classes["SyncGroupRequest"],
        group_id=group,
        generation_id=current.generation,
        member_id=current.member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocol_name="stream",
        assignments=tuple(
            build(entity, member_id=member_id, assignment=assigned)
            for member_id, assigned in assignments.items()
        ),
    )
    return connection.request(request, timeout_s=timeout_s, given_up=given_up)


def confirm_membership(
    connection: Connection, group: str, instance_id: str, current: Membership
) -> bool:
    """Return whether the coordinator still has this member in its generation.

    SyncGroup is what proves it: a stable group answers it at once with the assignment that the
    member has, and a coordinator that is loading the group refuses it. During a rebalance, and on
    brokers before 4.0 while the group is loaded, it is answered with REBALANCE_IN_PROGRESS; a
    heartbeat tells the two apart, since only a coordinator that knows the member repeats that.

    Raises ConnectionLost where it can't be known now: COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, or no answer. Raises StreamsError for any other
    refusal, such as GROUP_AUTHORIZATION_FAILED.
    """
    code: ErrorCode = send_sync(connection, group, instance_id, current, {}).error_code
    if code is ErrorCode.none:
        return True
    if code is ErrorCode.rebalance_in_progress:
        code = send_heartbeat(connection, group, instance_id, current)
        if code is ErrorCode.rebalance_in_progress:
            return True
        if code is ErrorCode.none:
            raise ConnectionLost(f"group {group!r} is being loaded by its coordinator")
    if code in LOST:
        return False
    if code in AWAY:
        raise ConnectionLost(f"membership of group {group!r} is unknown: {code.name}")
    raise StreamsError(
        f"group {group!r} refused to confirm member {instance_id!r}: {code.name} ({code.value})"
    )
