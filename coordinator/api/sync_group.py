"""Handles SyncGroup, with which the leader sends assignments and members get theirs.

Behaviour: the leader sends the assignments, and every member gets its own once they are persisted.
In a consumer group (KIP-848) the broker assigns, and the leader's assignments are ignored.
Versions: v3 static members; v4 flexible; v5 protocol type and name, which must be there and match.
Simplifications: none.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from coordinator.api.context import Context
from coordinator.api.coordinator_codes import coordinator_code
from coordinator.api.waiting import answer_of
from coordinator.errors import Code, Refused
from coordinator.groups.classic.draft import SyncAnswer
from coordinator.groups.classic.sync import SyncGroup

API_KEY = 14
VERSIONS = range(6)


def handle(request: Any, context: Context) -> Any:
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
    return answer_of(
        partial(context.broker.coordinators.groups.classic_protocol.sync, command),
        partial(_reply, context),
    )


def refuse(request: Any, context: Context, code: Code) -> Any:
    return _reply(context, SyncAnswer(code=code))


def _reply(context: Context, answer: SyncAnswer) -> Any:
    return context.reply(
        error_code=coordinator_code(answer.code),
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol,
        assignment=answer.assignment,
    )
