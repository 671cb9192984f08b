"""Handles DescribeAcls, which answers SECURITY_DISABLED, as Kafka does without an authorizer.

Behaviour: as above; every client may do anything.
Versions: 1 pattern types (KIP-290), 2 flexible, 3 users as resources (KIP-373).
Simplifications: none.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code

API_KEY = 29
VERSIONS = range(1, 4)


def handle_request(request: Any, context: RequestContext) -> Any:
    message = "No Authorizer is configured on the broker"
    return context.build_response(
        error_code=Code.SECURITY_DISABLED, error_message=message, resources=()
    )


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    return context.build_response(error_code=code, error_message=None, resources=())
