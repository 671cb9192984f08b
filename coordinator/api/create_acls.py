"""CreateAcls: say who may do what. Without an authoriser that is SECURITY_DISABLED, as with Kafka.

Behaviour: as said, for each that is to be made.
Versions: 1 pattern types (KIP-290), 2 flexible, 3 users as resources (KIP-373).
Simplifications: none.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.errors import Code

API_KEY = 30
VERSIONS = range(1, 4)

NO_AUTHORIZER = "No Authorizer is configured."


def handle(request: Any, context: Context) -> Any:
    refused = {"error_code": Code.SECURITY_DISABLED, "error_message": NO_AUTHORIZER}
    return context.reply(results=[refused for _ in request.creations])


def refuse(request: Any, context: Context, code: Code) -> Any:
    """The code for every one."""
    refused = {"error_code": code, "error_message": None}
    return context.reply(results=[refused for _ in request.creations])
