"""Handle JoinGroup, with which a member joins the next generation of its group.

Behaviour: the response is sent when all members of a classic group have joined, to the leader with
the metadata of all. In a consumer group (KIP-848) it is sent at once with the member's epoch, and
there is no leader (see `groups.migration.join`).
Versions: v1 rebalance time-out; v4 MEMBER_ID_REQUIRED (KIP-394); v5 static members (KIP-345); v6
flexible; v7 protocol type; v8 a reason (logged by Kafka, not here); v9 skip_assignment (KIP-814).
Simplifications: none.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.api.coordinator_codes import translate_coordinator_code
from coordinator.api.deferred_answer import Deferrable, answer_on_callback
from coordinator.errors import Code
from coordinator.groups.classic.effects import JoinAnswer
from coordinator.groups.classic.join import JoinGroup
from coordinator.log.data_directory import uuid_to_base64
from coordinator.wire.codec import to_ms

if TYPE_CHECKING:
    from kio.schema.join_group.v9.request import JoinGroupRequest
    from kio.schema.join_group.v9.response import JoinGroupResponse

API_KEY = 11
VERSIONS = range(10)

_CODES_WITH_MEMBER_ID = frozenset(
    {
        Code.INVALID_GROUP_ID,
        Code.INVALID_SESSION_TIMEOUT,
        Code.UNKNOWN_MEMBER_ID,
        Code.FENCED_INSTANCE_ID,
    }
)


def handle_request(
    request: JoinGroupRequest, context: RequestContext[JoinGroupResponse]
) -> Deferrable[JoinGroupResponse]:
    coordinators = context.services.coordinators
    instance_id = getattr(request, "group_instance_id", None)
    session_timeout_ms = to_ms(request.session_timeout)
    new_id = coordinators.new_id()
    command = JoinGroup(
        group_id=request.group_id,
        member_id=request.member_id,
        new_member_id=f"{instance_id or context.client_id}-{new_id}",
        new_bare_id=uuid_to_base64(new_id),
        instance_id=instance_id,
        client_id=context.client_id,
        client_host=f"/{context.client_host}",
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=(
            to_ms(request.rebalance_timeout) if context.version >= 1 else session_timeout_ms
        ),
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        requires_member_id=context.version >= 4,
        can_skip_assignment=context.version >= 9,
    )
    return answer_on_callback(
        partial(coordinators.groups.classic_protocol.handle_join, command),
        partial(_build_response, context),
    )


def build_error_response(
    request: JoinGroupRequest, context: RequestContext[JoinGroupResponse], code: Code
) -> JoinGroupResponse:
    """Return a response with `code`, and with the member id if the request itself was refused.

    If the group's shard isn't available, the response has no member id, as with Kafka.
    """
    member_id = request.member_id if code in _CODES_WITH_MEMBER_ID else ""
    return _build_response(
        context, JoinAnswer(code=translate_coordinator_code(code), member_id=member_id)
    )


def _build_response(
    context: RequestContext[JoinGroupResponse], answer: JoinAnswer
) -> JoinGroupResponse:
    no_protocol = None if context.version >= 7 else ""
    return context.build_response(
        error_code=answer.code,
        generation_id=answer.generation,
        protocol_type=answer.protocol_type,
        protocol_name=no_protocol if answer.protocol is None else answer.protocol,
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[
            {"member_id": member_id, "group_instance_id": instance_id, "metadata": metadata}
            for member_id, instance_id, metadata in answer.members
        ],
    )
