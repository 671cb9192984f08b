"""DeleteGroups: groups that are empty, with all their offsets (KIP-229).

Behaviour: each group is answered for itself, once even if it is named twice: GROUP_ID_NOT_FOUND;
NON_EMPTY_GROUP for one with members. Offsets that an open transaction holds go too.
Versions: v1 nothing new; v2 flexible.
An empty group id is as good as any other, for old clients' sake.
Simplifications: none.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.api.coordinator_codes import coordinator_code
from coordinator.errors import Code, Refused

API_KEY = 42
VERSIONS = range(3)


def handle(request: Any, context: Context) -> Any:
    return context.reply(
        results=[
            {"group_id": group_id, "error_code": _delete(group_id, context)}
            for group_id in dict.fromkeys(request.groups_names)
        ]
    )


def _delete(group_id: str, context: Context) -> Code:
    try:
        context.broker.coordinators.groups.offsets.delete_group(group_id)
    except Refused as refused:
        return coordinator_code(refused.code)
    return Code.NONE


def refuse(request: Any, context: Context, code: Code) -> Any:
    return context.reply(
        results=[
            {"group_id": group_id, "error_code": code}
            for group_id in dict.fromkeys(request.groups_names)
        ]
    )
