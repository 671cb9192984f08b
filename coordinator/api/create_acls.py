"""Handles CreateAcls, which answers SECURITY_DISABLED, as Kafka does without an authorizer.

Behaviour: SECURITY_DISABLED for each ACL that is to be created.
Versions: 1 pattern types (KIP-290), 2 flexible, 3 users as resources (KIP-373).
Simplifications: none.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code

API_KEY = 30
VERSIONS = range(1, 4)

NO_AUTHORIZER = "No Authorizer is configured."


def handle_request(request: Any, context: RequestContext) -> Any:
    refused = {"error_code": Code.SECURITY_DISABLED, "error_message": NO_AUTHORIZER}
    return context.build_response(results=[refused for _ in request.creations])


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    """Return a response with `code` for every ACL."""
    refused = {"error_code": code, "error_message": None}
    return context.build_response(results=[refused for _ in request.creations])
