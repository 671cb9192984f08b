"""AlterClientQuotas: say how much clients may ask for. This broker throttles no one, and says so.

Behaviour: a quota that is to be set is refused with INVALID_REQUEST, for one that is kept and not
held would be a lie. One that is to be removed is not there: NONE.
Versions: 1 flexible.
Simplifications: there are no quotas.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.errors import Code, Refused

API_KEY = 49
VERSIONS = range(2)


def handle(request: Any, context: Context) -> Any:
    refused = Refused(Code.INVALID_REQUEST, "This broker throttles no one: it takes no quotas.")
    answers = [
        _answer(entry, Refused(Code.NONE) if all(op.remove for op in entry.ops) else refused)
        for entry in request.entries
    ]
    return context.reply(entries=answers)


def refuse(request: Any, context: Context, code: Code) -> Any:
    """The code for every entry."""
    return context.reply(entries=[_answer(entry, Refused(code)) for entry in request.entries])


def _answer(entry: Any, refused: Refused) -> dict[str, Any]:
    return {
        "error_code": refused.code,
        "error_message": refused.message or None,
        "entity": [
            {"entity_type": part.entity_type, "entity_name": part.entity_name}
            for part in entry.entity
        ],
    }
