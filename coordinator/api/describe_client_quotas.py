"""Handles DescribeClientQuotas, which finds no quotas (see AlterClientQuotas).

Behaviour: no entries. A filter with an unknown entity type, the same entity type twice, or an
unknown match type is refused.
Versions: 1 flexible.
Simplifications: see AlterClientQuotas.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code, Refused

API_KEY = 48
VERSIONS = range(2)

_ENTITIES = ("user", "client-id", "ip")
_MATCHES = (0, 1, 2)  # exact, default, any


def handle_request(request: Any, context: RequestContext) -> Any:
    try:
        _check_filter(request.components)
    except Refused as refused:
        return _refuse_with_message(context, refused)
    return context.build_response(error_message="", entries=())


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    return _refuse_with_message(context, Refused(code))


def _refuse_with_message(context: RequestContext, refusal: Refused) -> Any:
    message = refusal.message or None
    return context.build_response(error_code=refusal.code, error_message=message, entries=None)


def _check_filter(components: Any) -> None:
    seen: set[str] = set()
    for component in components:
        if component.entity_type not in _ENTITIES:
            message = f"Unsupported entity type {component.entity_type}"
            raise Refused(Code.UNSUPPORTED_VERSION, message)
        if component.entity_type in seen:
            message = (
                f"Entity type {component.entity_type} cannot appear more than once in the filter."
            )
            raise Refused(Code.INVALID_REQUEST, message)
        if component.match_type not in _MATCHES:
            message = f"Unknown match type {component.match_type}"
            raise Refused(Code.INVALID_REQUEST, message)
        seen.add(component.entity_type)
