"""Handle Heartbeat, which keeps the session of a member of the classic protocol alive.

Behaviour: restarts the session timeout of a member, whatever its group's kind;
REBALANCE_IN_PROGRESS tells it to join again.
Versions: v3 static members (FENCED_INSTANCE_ID); v4 flexible.
Simplifications: none.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.errors import Code
from coordinator.groups.classic.heartbeat import Heartbeat
from coordinator.wire.codec import EncodedResponse, build_entity, encode_for_reuse

if TYPE_CHECKING:
    from kio.schema.heartbeat.v4.request import HeartbeatRequest
    from kio.schema.heartbeat.v4.response import HeartbeatResponse

API_KEY = 12
VERSIONS = range(5)
CACHES_REQUESTS = True


def handle_request(
    request: HeartbeatRequest, context: RequestContext[HeartbeatResponse]
) -> EncodedResponse:
    code = context.services.coordinators.groups.classic_protocol.handle_heartbeat(
        Heartbeat(
            request.group_id,
            request.member_id,
            getattr(request, "group_instance_id", None),
            request.generation_id,
        )
    )
    return _encode_code_response(context.response_type, code)


@cache  # there are only a few codes in a few versions
def _encode_code_response(response_type: type, code: Code) -> EncodedResponse:
    return encode_for_reuse(build_entity(response_type, {"error_code": code}))
