"""Handles AlterClientQuotas, which refuses every quota: this broker throttles no client.

Behaviour: setting a quota is refused with INVALID_REQUEST, because a quota that is stored but not
enforced would mislead. Removing one succeeds with NONE: there is none.
Versions: 1 flexible.
Simplifications: there are no quotas.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code, Refused

API_KEY = 49
VERSIONS = range(2)


def handle_request(request: Any, context: RequestContext) -> Any:
    refused = Refused(Code.INVALID_REQUEST, "This broker throttles no one: it takes no quotas.")
    answers = [
        _build_entry_result(
            entry, Refused(Code.NONE) if all(op.remove for op in entry.ops) else refused
        )
        for entry in request.entries
    ]
    return context.build_response(entries=answers)


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    """Return a response with `code` for every entry."""
    return context.build_response(
        entries=[_build_entry_result(entry, Refused(code)) for entry in request.entries]
    )


def _build_entry_result(entry: Any, refused: Refused) -> dict[str, Any]:
    return {
        "error_code": refused.code,
        "error_message": refused.message or None,
        "entity": [
            {"entity_type": part.entity_type, "entity_name": part.entity_name}
            for part in entry.entity
        ],
    }
