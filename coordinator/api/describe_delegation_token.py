"""Handles DescribeDelegationToken, which is not allowed without authentication.

There are no tokens (see CreateDelegationToken). The code is DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
as with Kafka.

Behaviour: as above.
Versions: 2 flexible, 3 who asked for the token (KIP-373).
Simplifications: none.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code

API_KEY = 41
VERSIONS = range(1, 4)


def handle_request(request: Any, context: RequestContext) -> Any:
    return build_error_response(request, context, Code.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    return context.build_response(error_code=code, tokens=())
