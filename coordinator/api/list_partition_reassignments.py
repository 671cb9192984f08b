"""Handles ListPartitionReassignments, which finds none: there is no other broker.

Behaviour: no partition is ever being reassigned, whatever is requested (KIP-455).
Versions: 0.
Simplifications: none.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code

API_KEY = 46
VERSIONS = range(1)


def handle_request(request: Any, context: RequestContext) -> Any:
    return build_error_response(request, context, Code.NONE)


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    return context.build_response(error_code=code, error_message=None, topics=())
