"""Handle SyncGroup, with which the leader sends assignments and members get theirs.

Behaviour: the leader sends the assignments, and every member gets its own once they are persisted.
In a consumer group (KIP-848) the broker assigns, and the leader's assignments are ignored.
Versions: v3 static members; v4 flexible; v5 protocol type and name, which must be there and match.
Simplifications: none.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.api.coordinator_codes import translate_coordinator_code
from coordinator.api.deferred_answer import Deferrable, answer_on_callback
from coordinator.errors import Code, Refused
from coordinator.groups.classic.effects import SyncAnswer
from coordinator.groups.classic.sync import SyncGroup

if TYPE_CHECKING:
    from kio.schema.sync_group.v5.request import SyncGroupRequest
    from kio.schema.sync_group.v5.response import SyncGroupResponse

API_KEY = 14
VERSIONS = range(6)


def handle_request(
    request: SyncGroupRequest, context: RequestContext[SyncGroupResponse]
) -> Deferrable[SyncGroupResponse]:
    if context.version >= 5 and None in (request.protocol_type, request.protocol_name):
        raise Refused(Code.INCONSISTENT_GROUP_PROTOCOL, "no protocol type or name")
    command = SyncGroup(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=getattr(request, "group_instance_id", None),
        generation=request.generation_id,
        protocol_type=getattr(request, "protocol_type", None),
        protocol=getattr(request, "protocol_name", None),
        assignments={found.member_id: found.assignment for found in request.assignments},
    )
    return answer_on_callback(
        partial(context.services.coordinators.groups.classic_protocol.handle_sync, command),
        partial(_build_response, context),
    )


def build_error_response(
    request: SyncGroupRequest, context: RequestContext[SyncGroupResponse], code: Code
) -> SyncGroupResponse:
    return _build_response(context, SyncAnswer(code=code))


def _build_response(
    context: RequestContext[SyncGroupResponse], answer: SyncAnswer
) -> SyncGroupResponse:
    return context.build_response(
        error_code=translate_coordinator_code(answer.code),
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol,
        assignment=answer.assignment,
    )
