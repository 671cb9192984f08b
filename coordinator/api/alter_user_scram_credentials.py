"""Handles AlterUserScramCredentials, which stores none: this broker authenticates no client.

Behaviour: UNSUPPORTED_SASL_MECHANISM for credentials that are to be kept, RESOURCE_NOT_FOUND for
ones that are to be deleted. Each user is answered once.
Versions: 0.
Simplifications: there is no authentication, so credentials would be kept for nothing.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code, Refused

API_KEY = 51
VERSIONS = range(1)


def handle_request(request: Any, context: RequestContext) -> Any:
    message = "Attempt to delete a user credential that does not exist"
    missing = Refused(Code.RESOURCE_NOT_FOUND, message)
    refused = Refused(
        Code.UNSUPPORTED_SASL_MECHANISM,
        "This broker authenticates no one: it takes no credentials.",
    )
    outcomes = {each.name: missing for each in request.deletions}
    outcomes |= {each.name: refused for each in request.upsertions}
    return _build_response(outcomes, context)


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    """Return a response with `code` for every user."""
    named = (*request.deletions, *request.upsertions)
    return _build_response({each.name: Refused(code) for each in named}, context)


def _build_response(outcomes: dict[str, Refused], context: RequestContext) -> Any:
    return context.build_response(
        results=[
            {
                "user": name,
                "error_code": refused.code,
                "error_message": refused.message or None,
            }
            for name, refused in outcomes.items()
        ]
    )
