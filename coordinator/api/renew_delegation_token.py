"""Handles RenewDelegationToken, which is not allowed without authentication.

There are no tokens (see CreateDelegationToken). The code is DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
as with Kafka.

Behaviour: as above.
Versions: 2 flexible.
Simplifications: none.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.api.create_delegation_token import NEVER
from coordinator.errors import Code

API_KEY = 39
VERSIONS = range(1, 3)


def handle(request: Any, context: Context) -> Any:
    return refuse(request, context, Code.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def refuse(request: Any, context: Context, code: Code) -> Any:
    return context.reply(error_code=code, expiry_timestamp=NEVER)
