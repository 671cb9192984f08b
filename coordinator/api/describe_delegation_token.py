"""Handles DescribeDelegationToken, which is not allowed without authentication.

There are no tokens (see CreateDelegationToken). The code is DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
as with Kafka.

Behaviour: as above.
Versions: 2 flexible, 3 who asked for the token (KIP-373).
Simplifications: none.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.errors import Code

API_KEY = 41
VERSIONS = range(1, 4)


def handle(request: Any, context: Context) -> Any:
    return refuse(request, context, Code.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def refuse(request: Any, context: Context, code: Code) -> Any:
    return context.reply(error_code=code, tokens=())
