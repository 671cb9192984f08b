"""Handles DeleteAcls, which answers SECURITY_DISABLED, as Kafka does without an authorizer.

Behaviour: SECURITY_DISABLED for each filter.
Versions: 1 pattern types (KIP-290), 2 flexible, 3 users as resources (KIP-373).
Simplifications: none.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.api.create_acls import NO_AUTHORIZER
from coordinator.errors import Code

API_KEY = 31
VERSIONS = range(1, 4)


def handle_request(request: Any, context: RequestContext) -> Any:
    return _build_response(request, context, Code.SECURITY_DISABLED, NO_AUTHORIZER)


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    """Return a response with `code` for every filter."""
    return _build_response(request, context, code, None)


def _build_response(request: Any, context: RequestContext, code: Code, message: str | None) -> Any:
    refused = {"error_code": code, "error_message": message, "matching_acls": ()}
    return context.build_response(filter_results=[refused for _ in request.filters])
