"""Handles Heartbeat, which keeps the session of a member of the classic protocol alive.

Behaviour: restarts the session timeout of a member, whatever its group's kind;
REBALANCE_IN_PROGRESS tells it to join again.
Versions: v3 static members (FENCED_INSTANCE_ID); v4 flexible.
Simplifications: none.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from coordinator.api.context import Context
from coordinator.errors import Code
from coordinator.groups.classic.heartbeat import Heartbeat
from coordinator.wire.codec import Written, build, write

API_KEY = 12
VERSIONS = range(5)


def handle(request: Any, context: Context) -> Any:
    code = context.broker.coordinators.groups.classic_protocol.heartbeat(
        Heartbeat(
            request.group_id,
            request.member_id,
            getattr(request, "group_instance_id", None),
            request.generation_id,
        )
    )
    return _told(context.response_type, code)


@cache  # there are only a few codes in a few versions
def _told(response_type: type, code: Code) -> Written:
    return write(build(response_type, {"error_code": code}))
