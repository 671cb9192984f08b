"""FindCoordinator.

Behaviour: this broker coordinates every group (key type 0) and every transactional id (1).
Versions: v1 key types; v3 flexible; v4 several keys in a request (KIP-699); v5
TRANSACTION_ABORTABLE, never the answer here; v6 share groups, whose key type (2) gets 42.
Simplifications: one broker.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.errors import Code

API_KEY = 10
VERSIONS = range(7)

GROUP, TRANSACTION = 0, 1
NOBODY: dict[str, Any] = {"node_id": -1, "host": "", "port": -1}


def handle(request: Any, context: Context) -> Any:
    key_type = getattr(request, "key_type", GROUP)
    if context.version < 4:
        return context.reply(**_coordinator(key_type, context))
    return context.reply(
        coordinators=[
            {"key": key, **_coordinator(key_type, context)} for key in request.coordinator_keys
        ]
    )


def _coordinator(key_type: int, context: Context) -> dict[str, Any]:
    if key_type not in (GROUP, TRANSACTION):
        return {
            **NOBODY,
            "error_code": Code.INVALID_REQUEST,
            "error_message": f"key type {key_type} is not known",
        }
    return {**context.broker.endpoint, "error_code": Code.NONE, "error_message": None}
