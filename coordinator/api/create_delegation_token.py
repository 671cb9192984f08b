"""Handles CreateDelegationToken, which is not allowed without authentication.

The code is DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as with Kafka.

Behaviour: as above; the owner in the response is the user of every connection, `User:ANONYMOUS`.
Versions: 2 flexible, 3 the owner in the request (KIP-373).
Simplifications: none, for there is no authentication.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code

API_KEY = 38
VERSIONS = range(1, 4)

# Kafka writes -1 ms for a time that doesn't exist.
NEVER = datetime(1970, 1, 1, tzinfo=UTC) - timedelta(milliseconds=1)


def handle_request(request: Any, context: RequestContext) -> Any:
    return build_error_response(request, context, Code.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    return context.build_response(
        error_code=code,
        principal_type="User",
        principal_name="ANONYMOUS",
        token_requester_principal_type="User",
        token_requester_principal_name="ANONYMOUS",
        issue_timestamp=NEVER,
        expiry_timestamp=NEVER,
        max_timestamp=NEVER,
        token_id="",
        hmac=b"",
    )
