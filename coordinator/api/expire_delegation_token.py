"""Handles ExpireDelegationToken, which is not allowed without authentication.

There are no tokens (see CreateDelegationToken). The code is DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
as with Kafka.

Behaviour: as above.
Versions: 2 flexible.
Simplifications: none.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.api.create_delegation_token import NEVER
from coordinator.errors import Code

API_KEY = 40
VERSIONS = range(1, 3)


def handle_request(request: Any, context: RequestContext) -> Any:
    return build_error_response(request, context, Code.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    return context.build_response(error_code=code, expiry_timestamp=NEVER)
