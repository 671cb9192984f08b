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


def handle(request: Any, context: Context) -> Any:
    key_type = getattr(request, "key_type", GROUP)
    if key_type in (GROUP, TRANSACTION):
        found = {**context.broker.endpoint, "error_code": Code.NONE, "error_message": None}
    else:
        found = _nobody(Code.INVALID_REQUEST, f"key type {key_type} is not known")
    return _reply(request, context, found)


def refuse(request: Any, context: Context, code: Code) -> Any:
    """The code for every key."""
    return _reply(request, context, _nobody(code, None))


def _reply(request: Any, context: Context, found: dict[str, Any]) -> Any:
    """The same for every key; before version 4 there is only one."""
    if context.version < 4:
        return context.reply(**found)
    return context.reply(coordinators=[{"key": key, **found} for key in request.coordinator_keys])


def _nobody(code: Code, message: str | None) -> dict[str, Any]:
    return {"node_id": -1, "host": "", "port": -1, "error_code": code, "error_message": message}
