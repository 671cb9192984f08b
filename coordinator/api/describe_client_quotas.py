"""Handles DescribeClientQuotas, which finds no quotas (see AlterClientQuotas).

Behaviour: no entries. A filter with an unknown entity type, the same entity type twice, or an
unknown match type is refused.
Versions: 1 flexible.
Simplifications: see AlterClientQuotas.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.errors import Code, Refused

API_KEY = 48
VERSIONS = range(2)

_ENTITIES = ("user", "client-id", "ip")
_MATCHES = (0, 1, 2)  # exact, default, any


def handle(request: Any, context: Context) -> Any:
    try:
        _check(request.components)
    except Refused as refused:
        return _refuse(context, refused)
    return context.reply(error_message="", entries=())


def refuse(request: Any, context: Context, code: Code) -> Any:
    return _refuse(context, Refused(code))


def _refuse(context: Context, refused: Refused) -> Any:
    message = refused.message or None
    return context.reply(error_code=refused.code, error_message=message, entries=None)


def _check(components: Any) -> None:
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
